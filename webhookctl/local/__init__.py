"""The laptop's runtime: the same template as in AWS, on ministack, behind a stable address."""
