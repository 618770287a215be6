"""The reconciler's Lambda function."""
