"""The local runtime: the template of AWS, deployed to ministack, behind a stable address."""
