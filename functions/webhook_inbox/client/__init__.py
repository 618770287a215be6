"""The operations on an inbox, for programs: `InboxClient`. It never ships to Lambda."""
