"""The checks of `webhookctl preflight`: what an AWS account needs before a deployment."""
