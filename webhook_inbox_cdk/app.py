"""The CDK app around your stacks, for `cdk synth` and for `python app.py` without the CDK CLI."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aws_cdk import App
from webhook_inbox_cdk import limits

from webhook_inbox.domain.errors import ConfigurationError


@contextmanager
def synthesis(file: str) -> Iterator[App]:
    """Yields the app to add stacks to, and synthesizes it afterwards.

    Writes the assembly to CDK_OUTDIR, or to cdk.out. A ConfigurationError is printed as one line,
    a template that exceeds limits of AWS as one line for each, and the process exits with status 1.

    Args:
        file: the path of your app.py; the context comes from the cdk.json beside it, as with the
            CDK CLI.
    """
    settings = json.loads(Path(file).with_name("cdk.json").read_text(encoding="utf-8"))
    outdir = os.environ.get("CDK_OUTDIR", "cdk.out")
    # CDK's own check of the resources' number raises an error that names no remedy.
    context = {"@aws-cdk/core:stackResourceLimit": 0, **settings.get("context", {})}
    app = App(context=context, analytics_reporting=False, outdir=outdir)
    try:
        yield app
        for stack in app.synth().stacks_recursively:  # also those of a cdk.Stage
            template = Path(stack.template_full_path).read_text(encoding="utf-8")
            limits.check(stack.stack_name, json.loads(template))
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        sys.exit(1)
