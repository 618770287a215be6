"""Synthesizes the CDK app and deploys the assembly to the local endpoint."""
