"""SQS: messages, lanes, visibility, message groups, dead letters."""
