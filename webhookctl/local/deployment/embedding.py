"""A CDK app that embeds the inbox with the handlers of another directory.

`LocalInbox` synthesizes with it; the repository's own `app.py` is for the repository's own
handlers.
"""

import os
from pathlib import Path

os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from aws_cdk import App, Stack

from stacks.inbox import InboxProps, WebhookInbox


def main() -> None:
    """Writes the assembly to CDK_OUTDIR; `stage` and `functions` come as context."""
    app = App(analytics_reporting=False, outdir=os.environ["CDK_OUTDIR"])
    stage = app.node.get_context("stage")
    functions = Path(app.node.get_context("functions"))
    WebhookInbox(
        Stack(app, f"WebhookInbox-{stage}"),
        "Inbox",
        InboxProps(stage=stage, functions=functions, local=True),
    )
    app.synth()


if __name__ == "__main__":
    main()
