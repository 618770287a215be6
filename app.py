"""Synthesizes the inbox: `cdk synth -c stage=prod`, or `python app.py` without the CDK CLI."""

import json
import os
import sys
from pathlib import Path

# jsii prints a banner on the Node that most machines still have.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from aws_cdk import App

from stacks.inbox_stack import InboxStack
from webhook_inbox.domain.errors import ConfigurationError


def main() -> int:
    """Writes the assembly to CDK_OUTDIR, or cdk.out; returns the exit status."""
    settings = json.loads(Path(__file__).with_name("cdk.json").read_text(encoding="utf-8"))
    # The CLI hands cdk.json's context over by itself; without it, we do.
    app = App(context=settings["context"], analytics_reporting=False, outdir=_outdir())
    try:
        InboxStack(app)
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        return 1
    app.synth()
    return 0


def _outdir() -> str:
    return os.environ.get("CDK_OUTDIR", "cdk.out")


if __name__ == "__main__":
    sys.exit(main())
