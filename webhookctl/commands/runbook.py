"""`runbook`: prints a section of the runbook, without a connection."""

import shlex
from typing import Annotated, Final

import typer

from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.suggestions import Command
from webhook_inbox.domain.similar_names import did_you_mean
from webhookctl.invocation import Invocation, takes_options
from webhookctl.runbook import COMMANDS, PROGRAM, RunbookSection, sections

# The section that precedes all others.
START: Final = "runbook"


@takes_options
def runbook(
    call: Invocation,
    section: Annotated[
        str, typer.Argument(metavar="SECTION", help="An alarm or a failure class.")
    ] = START,
) -> None:
    """Print a section of the runbook, or without one its start and the names of all sections.

    It reads no inbox. With --stack or --local, the section's commands have that target.
    """
    found = sections().get(section)
    if found is None:
        known = did_you_mean(section, sections()) or f"the sections are {', '.join(_names())}"
        raise WrongArgument(f"no section {section}; {known}")
    if call.as_json:
        text = _for_target(call, found.markdown)
        call.output.json({"section": section, "title": found.title, "markdown": text})
        return
    _print(call, found)
    if section == START:
        call.output.text(f"Sections: {', '.join(_names())}.")


def _names() -> list[str]:
    return [name for name in sections() if name != START]


def _print(call: Invocation, section: RunbookSection) -> None:
    """Prints the paragraphs, and the commands so that they can be pasted."""
    call.output.text(section.title)
    for part in section.parts():
        text = _for_target(call, part.text)
        call.output.line()
        if part.language == COMMANDS:
            for line in text.splitlines():
                # Words keep their quotes; a redirection is two words.
                call.output.command(Command(shlex.split(line, posix=False)))
        elif part.language:
            call.output.lines(text)
        else:
            call.output.text(text)
    call.output.line()


def _for_target(call: Invocation, text: str) -> str:
    """Returns a text whose commands have the selected target, if there is one."""
    if call.selection == Selection():
        return text
    return text.replace(PROGRAM, str(call.program.command("")))
