"""An inbox in which every text that others write attacks the page that shows it."""

import json
import unicodedata
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.browser.seeded import RIGHT, Names, SeededInbox, target_of
from tests.unit.support import holding
from tests.unit.support.world import ACME, GITHUB, handler
from tests.webhookctl.commands.stage import MANIFEST, Inbox
from tests.webhookctl.commands.test_doctor import passed
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec

# Elements, ends of what surrounds the text, addresses with a scheme, and templates.
MARKUP = (
    "\"'></title></textarea></script><script>alert(1)</script>"
    "<img src=http://evil.example/x onerror=alert(1)><svg onload=alert(1)>"
    "<form action=http://evil.example/><button autofocus onfocus=alert(1)>"
    "<base href=http://evil.example/><meta http-equiv=refresh content=0;url=http://evil.example/>"
    "javascript:alert(1) {{7*7}} {% raw %} &lt;script&gt; `alert(1)`"
)
# A terminal's sequences, bidirectional and zero-width characters, a filler.
UNSEEN = "\x1b[31m\x07\u202e\u2066\u200b\u200d\ufeff\u3164\u2028"
EVIL = MARKUP + UNSEEN
# Ingest refuses control characters in an id; this source's signature, a full stop.
ID = MARKUP.replace(".", "") + "".join(
    c for c in UNSEEN if unicodedata.category(c) not in {"Cc", "Zl"}
)


class AlertError(Exception):
    """An exception with a name that attacks."""


AlertError.__name__ = AlertError.__qualname__ = MARKUP
HANDLER, OTHER = f"acme.{MARKUP}", "acme.other"
DECLARED = replace(
    MANIFEST,
    sources={
        "acme": replace(ACME, tenant=("header", "x-tenant")),
        MARKUP: replace(GITHUB, name=MARKUP),
    },
    handlers={
        HANDLER: handler(HANDLER, "*", destinations=(MARKUP,)),
        OTHER: handler(OTHER, "refund"),
    },
    destinations={MARKUP: DestinationSpec(MARKUP, f"https://{MARKUP}", breaker=BreakerSpec())},
)
BODY = json.dumps({EVIL: [EVIL, {EVIL: EVIL}]}, ensure_ascii=False).encode()


def hostile(*, other: Any) -> SeededInbox:
    """Returns the inbox; its ids are those of `Names`, each with the markup behind it."""
    world = Inbox()
    world.deploy(DECLARED)
    names = Names(*(f"evt_{name}{ID}" for name in ("first", "retrying", "dead", "held", "held")))
    target = target_of(world, other, stage="test", local=False)
    found = SeededInbox(target, world.clock, names, world)
    parts = {"body": BODY, "headers": {"x-tenant": EVIL, "x-evil": EVIL}, "type_": EVIL}
    world.script(HANDLER, AlertError(EVIL), Permanent(EVIL), Transient(EVIL), Transient(EVIL))
    for event_id in (names.done, names.dead, names.retrying):
        world.deliver(event_id, **parts)
        world.work()
    request = holding.hold(
        world, names.doubtful, type_="refund", subject="effect:" + EVIL, reason=EVIL, shows=EVIL
    )
    holding.effect(world, request.run, name=EVIL, error=EVIL)
    world.deliver("evt_rejected" + ID, secret=RIGHT, body=BODY, type_=EVIL)
    world.deliver("ignored", source=MARKUP, type_=EVIL, body=b"{}")
    _acted(found)
    passed(world, age=timedelta(seconds=20))
    held = found.call().client.holds.list()
    names.holds = {each.event_id: each.hold for each in held}
    return found


def _acted(found: SeededInbox) -> None:
    client = found.call().client
    by = client.actor(EVIL)
    client.handlers.pause(OTHER, reason=EVIL, by=by)
    client.tenants.pause(EVIL, reason=EVIL, by=by)
    client.destinations.open(MARKUP, reason=EVIL, by=by)
    found.world.deliver("evt_waiting", type_="refund")
    found.world.work()
