"""The sources as their page shows them."""

from collections.abc import Sequence
from typing import Final

from webhook_inbox.client.diagnosis.diagnose import Diagnosis
from webhook_inbox.client.sources import BACK, SourceState
from webhook_inbox.client.times import span
from webhook_inbox.domain.printable import counted
from webhookctl.checkout import Checkout
from webhookctl.console.inbox import ConsoleInbox

SECONDS: Final = 0.5
CURRENT: Final = ("the current value", "the previous value")


def source_states(inbox: ConsoleInbox) -> Sequence[SourceState]:
    """Returns the sources with their last events, within a bounded search."""
    return list(inbox.reading(SECONDS).sources.list())


def searched_text(each: SourceState) -> str:
    """Returns how far the last event of a source was searched."""
    if each.search_is_complete:
        return f"the last {span(BACK)}"
    return f"the newest {counted(each.events_searched, 'event')}, which is what one page reads"


def verified_text(each: SourceState) -> str:
    """Returns the value of the secret that verified the last event, "" if it is not known."""
    return "" if each.verified_with is None else CURRENT[each.verified_with]


def retention_text(each: SourceState) -> str:
    """Returns how long payloads are kept."""
    erased = each.spec is not None and each.spec.retention
    return f"{'erased after' if erased else 'kept with the event,'} {span(each.payloads_kept)}"


def diagnosis_of(inbox: ConsoleInbox, source: str, id_: str) -> Diagnosis:
    """Returns what `verify` says about a rejected delivery with the present secrets."""
    client = inbox.reading()
    manifest = Checkout.required().source_manifest(client.target.stage)
    return client.rejected.diagnose(id_, source=source, manifest=manifest)
