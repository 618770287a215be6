"""Synthesizes the inbox: `cdk synth -c stage=prod`, or `python app.py` without the CDK CLI."""

from webhook_inbox_cdk import synthesis

from stacks.inbox_stack import InboxStack

with synthesis(__file__) as app:
    InboxStack(app)
