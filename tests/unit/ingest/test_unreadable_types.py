"""An event whose type cannot be read from its signed body is stored and held, never filtered."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.world import SECRET, World, handler
from webhook_inbox import providers
from webhook_inbox.domain.manifest import SPLIT, SPLITTER, Manifest, SourceSpec
from webhook_inbox.domain.model import ApprovalOutcome, Delivery, EventStatus, Status
from webhook_inbox.domain.provider import Sample
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.ingest.ignored import find_ignored
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.providers.schemes.identity import event_identity
from webhook_inbox.replay.replay import ReplayOutcome

DEEP = b'{"type": "payment.paid", "a": ' + b"[" * 3000 + b"]" * 3000 + b"}"
REQUESTS = map(str, itertools.count())
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIGNED = {
    "signature": {"header": "X-Signature", "signs": "{id}.{timestamp}.{body}"},
    "timestamp": {"header": "X-Timestamp", "tolerance": "5m"},
    "event_id": {"header": "X-Id"},
}
JSON: Mapping[str, Any] = {**SIGNED, "event_type": {"json": "type"}}
NESTED: Mapping[str, Any] = {**SIGNED, "event_type": {"json": "event.type"}}
FORM: Mapping[str, Any] = {**SIGNED, "event_type": {"form": "type"}}
STANDARD = SourceSpec("shop", "standard-webhooks", "acme", types=("payment.*",))
SVIX = replace(STANDARD, provider="svix")
UNREADABLE = {
    "truncated": b'{"type": "payment.pa',
    "truncated behind the type": b'{"type": "payment.paid", "amount": 4',
    "empty": b"",
    "blank": b" \n",
    "not UTF-8": b'{"type": "payment.\xff"}',
    "text": b"payment.paid",
    "a bare string": b'"payment.paid"',
    "a bare number": b"42",
    "null": b"null",
    "an undeclared batch": b'[{"type": "payment.paid"}]',
    "a list": b'{"type": ["payment.paid"]}',
    "an object": b'{"type": {"name": "payment.paid"}}',
    "a truth value": b'{"type": true}',
    "a fraction": b'{"type": 1.5}',
    "NaN": b'{"type": NaN}',
    "a lone surrogate": b'{"type": "payment.\\ud800"}',
    "a control character": b'{"type": "payment.\\u0000"}',
    "blank text": b'{"type": "  "}',
    "a number of 5,000 digits": b'{"type": ' + b"1" * 5000 + b"}",
}


def world_of(source: SourceSpec, *, handlers: Mapping[str, Any] | None = None) -> World:
    specs = (
        {
            "shop.pay": handler("shop.pay", "payment.*", source="shop"),
            "shop.all": handler("shop.all", source="shop"),
            "other.all": handler("other.all", source="other"),
            SPLIT: SPLITTER,
        }
        if handlers is None
        else handlers
    )
    other = replace(source, name="other")
    world = World(Manifest("test", "1", {source.name: source, "other": other}, specs))
    world.vault.replace("acme", WHSEC if source.provider != "hmac" else SECRET)
    return world


def declared(settings: Mapping[str, Any], *types: str) -> World:
    return world_of(SourceSpec("shop", "hmac", "acme", types=types, settings=dict(settings)))


def send(world: World, body: bytes, event_id: str = "e1") -> Receipt:
    """Delivers this body, signed as it is."""
    source = world.manifest.sources["shop"]
    secret = SECRET if source.provider == "hmac" else WHSEC
    sent = providers.load(source).send(Sample(event_id, "", body), secret, world.now)
    headers = {name.lower(): value for name, value in sent.headers.items()}
    delivery = Delivery(
        "shop", "POST", "/webhooks/shop", "", headers, body, world.now, next(REQUESTS)
    )
    return world.ingest.receive(delivery)


def held_runs(world: World, event_id: str = "e1") -> dict[str, str]:
    """Returns the subject of each held run of an event, by handler."""
    runs = world.overview(event_id, "shop").runs
    return {run.handler: run.held["subject"] for run in runs if run.status is Status.HELD}


@pytest.mark.parametrize("types", [("payment.*",), ("*",)], ids=["filtered", "all types"])
@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_it_is_stored_and_each_handler_of_its_source_is_held(
    body: bytes, types: tuple[str, ...]
) -> None:
    world = declared(JSON, *types)

    receipt = send(world, body)

    assert (receipt.outcome, receipt.status) == (IngestOutcome.UNREADABLE, 202)
    assert world.body("e1", "shop") == body
    assert held_runs(world) == {"shop.pay": "unreadable", "shop.all": "unreadable"}
    assert world.overview("e1", "shop").status is EventStatus.HELD
    world.run_until_quiet()
    assert world.handled == []
    assert find_ignored(world.table, "shop", since=world.now, until=world.now, now=world.now) == []


@pytest.mark.parametrize("source", [STANDARD, SVIX], ids=["standard-webhooks", "svix"])
@pytest.mark.parametrize("name", ["truncated", "empty"])
def test_so_it_is_under_each_scheme_with_the_id_in_a_header(source: SourceSpec, name: str) -> None:
    world = world_of(source)
    assert send(world, UNREADABLE[name]).outcome is IngestOutcome.UNREADABLE
    assert held_runs(world) == {"shop.pay": "unreadable", "shop.all": "unreadable"}
    assert send(world, UNREADABLE[name]).outcome is IngestOutcome.DUPLICATE


def test_a_body_nested_too_deeply_is_held_or_its_type_is_read() -> None:
    """How deeply the parser follows depends on the version of Python."""
    world = declared(JSON, "order.*")
    try:
        json.loads(DEEP)
    except RecursionError:
        assert send(world, DEEP).outcome is IngestOutcome.UNREADABLE
        assert world.body("e1", "shop") == DEEP
    else:
        assert send(world, DEEP).outcome is IngestOutcome.IGNORED


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        (NESTED, b'{"event": "payment.paid"}'),
        (NESTED, b'{"event": [{"type": "payment.paid"}]}'),
        (FORM, b""),
        (FORM, b"type=payment.\xff"),
        (FORM, b'{"type": "payment.paid"}'),
        (JSON, b"type=payment.paid"),
    ],
)
def test_so_it_is_wherever_the_type_is_sought_in_the_body(
    settings: Mapping[str, Any], body: bytes
) -> None:
    world = declared(settings, "payment.*")
    assert send(world, body).outcome is IngestOutcome.UNREADABLE
    assert world.body("e1", "shop") == body


def large(size: int, *, first: bytes = b"", last: bytes = b"") -> bytes:
    """Returns an object of a size, with members before and behind its list of parts."""
    parts = b",".join([b'{"part": "}{", "n": [1, null]}'] * (size // 32))
    return b"{" + first + b'"parts": [' + parts + b"]" + last + b"}"


# A body of more than 16 KB is not parsed if its type is found at its edges; one of more than 8 KB
# is stored in S3.
SIZES = pytest.mark.parametrize("size", [100, 20_000, 200_000])
TYPES = pytest.mark.parametrize("type_", [b"payment.paid", b"order.paid"])


@SIZES
@TYPES
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, 6, 7, 17, 20, 0.3, 0.5])
def test_a_body_that_was_cut_is_unreadable_wherever_its_type_is(
    size: int, type_: bytes, cut: float
) -> None:
    world = declared(JSON, "payment.*")
    for name, body in {
        "first": large(size, first=b'"type": "%s", ' % type_),
        "last": large(size, last=b', "type": "%s"' % type_),
        "both": large(size, first=b'"type": "%s", ' % type_, last=b', "type": "%s"' % type_),
    }.items():
        cut_body = body[: -int(cut if cut >= 1 else len(body) * cut)]
        assert send(world, cut_body, name).outcome is IngestOutcome.UNREADABLE, name
        assert world.body(name, "shop") == cut_body
        assert held_runs(world, name) == {"shop.pay": "unreadable", "shop.all": "unreadable"}


@SIZES
@TYPES
def test_a_damaged_body_is_unreadable_whatever_its_size(size: int, type_: bytes) -> None:
    world = declared(JSON, "payment.*")
    for name, body in {
        "not UTF-8": large(size, first=b'"type": "%s", "name": "\xff", ' % type_),
        "without its begin": large(size, last=b', "type": "%s"' % type_)[1:],
        "an object too many": large(size, first=b'"type": "%s", ' % type_) + b"}",
        "a text behind it": large(size, first=b'"type": "%s", ' % type_) + b" end",
        "an undeclared batch": b"[" + large(size, first=b'"type": "%s", ' % type_) + b"]",
        "a batch without types": b"[" + large(size) + b"]",
    }.items():
        assert send(world, body, name).outcome is IngestOutcome.UNREADABLE, name


@SIZES
def test_an_event_is_ignored_only_by_what_a_parser_reads(size: int) -> None:
    """A look at the edges of a large body finds no error between them, and one of two types."""
    world = declared(JSON, "payment.*")
    order = b'"type": "order.paid", '
    wanted = b', "%s": "payment.paid"'
    unreadable = IngestOutcome.UNREADABLE
    for name, body, outcome in (
        ("no JSON", large(size, first=order + b'"a": ?, '), unreadable),
        ("a comma too many", large(size, last=b", , " + order[:-2]), unreadable),
        ("a control character", large(size, first=order + b'"a": "\0", '), unreadable),
        ("a digit too many", large(size, first=order + b'"a": 01, '), unreadable),
        ("two types", large(size, first=order, last=wanted % b"type"), IngestOutcome.ACCEPTED),
        ("escaped", large(size, first=order, last=wanted % rb"t\u0079pe"), IngestOutcome.ACCEPTED),
        ("whole", large(size, first=order), IngestOutcome.IGNORED),
        ("without a type", large(size), IngestOutcome.IGNORED),
    ):
        assert send(world, body, name).outcome is outcome, name


def test_a_body_of_more_than_256_kb_that_was_cut_behind_a_brace_is_not_ignored() -> None:
    """Its braces are not counted: its handlers run and fail, but no filter discards it."""
    world = declared(JSON, "payment.*")
    for type_, outcome in (
        (b"payment.paid", IngestOutcome.ACCEPTED),
        (b"order.paid", IngestOutcome.UNREADABLE),
    ):
        body = large(500_000, first=b'"type": "%s", ' % type_)
        for cut in range(1, 8):
            receipt = send(world, body[:-cut], f"{type_[:5].decode()}-{cut}")
            is_closed = body[:-cut].endswith(b"}")
            assert receipt.outcome is (outcome if is_closed else IngestOutcome.UNREADABLE), cut


def test_a_large_body_of_a_wanted_type_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = declared(JSON, "payment.*")
    body = large(500_000, first=b'"type": "payment.paid", ')

    def refused(_: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(event_identity, "parse", refused)
    assert send(world, body).outcome is IngestOutcome.ACCEPTED


@pytest.mark.parametrize(
    "body", [b'{"amount": 4}', b'{"type": null}', b'{"type": ""}', b"\xef\xbb\xbf{}"]
)
def test_a_readable_body_without_a_type_has_the_type_unknown_as_documented(body: bytes) -> None:
    world = declared(JSON, "payment.*")
    assert send(world, body).outcome is IngestOutcome.IGNORED
    [counted] = find_ignored(world.table, "shop", since=world.now, until=world.now, now=world.now)
    assert (counted.type, counted.count) == ("unknown", 1)

    world = declared(JSON, "*")
    assert send(world, body).outcome is IngestOutcome.ACCEPTED
    assert world.overview("e1", "shop").event.runs == ("shop.all",)


@pytest.mark.parametrize(
    "body",
    [b'{"type": "payment.paid"}', b'\xef\xbb\xbf{"type": "payment.paid"}', b'{"type": 5}'],
    ids=["plain", "byte order mark", "a whole number"],
)
def test_a_type_that_can_be_read_is_filtered_as_before(body: bytes) -> None:
    world = declared(JSON, "order.*")
    assert send(world, body).outcome is IngestOutcome.IGNORED


def test_a_source_without_handlers_stores_it_and_says_why_it_has_no_runs() -> None:
    world = world_of(replace(STANDARD), handlers={})
    assert send(world, b"").outcome is IngestOutcome.UNREADABLE
    overview = world.overview("e1", "shop")
    assert (overview.event.doubt, overview.event.held, overview.event.runs) == (
        "unreadable",
        False,
        (),
    )


def request(world: World, name: str) -> ApprovalRequest:
    return ApprovalRequest(world.run("e1", name, "shop"))


def test_an_approved_handler_runs_on_the_stored_body_and_a_denied_one_never_does() -> None:
    world = declared(JSON, "payment.*")
    send(world, b'{"type": "pay')
    decisions = deciding(world)

    decided = decisions.approve(request(world, "shop.pay"), by=person("ann"), reason="re-read")
    assert decided.outcome is ApprovalOutcome.APPROVED
    decided = decisions.deny(request(world, "shop.all"), by=person("ann"), reason="cut")
    assert decided.outcome is ApprovalOutcome.DENIED
    world.run_until_quiet()

    assert world.handled == [("shop.pay", "e1", 1)]
    assert world.run("e1", "shop.pay", "shop").status is Status.DONE
    assert world.run("e1", "shop.all", "shop").status is Status.SKIPPED


def test_a_replay_does_not_start_it_before_a_decision() -> None:
    world = declared(JSON, "payment.*")
    send(world, b"")
    report = world.replay(event_ids=["e1"])
    assert report.counts[ReplayOutcome.HELD] == 2
    world.run_until_quiet()
    assert world.handled == []


def test_the_reconciler_holds_what_a_crash_left_without_rows() -> None:
    world = declared(JSON, "payment.*")
    world.plan.fail("UpdateItem")
    assert send(world, b"").status == 503
    assert held_runs(world) == {}
    world.pass_minutes(30)
    assert held_runs(world) == {"shop.pay": "unreadable", "shop.all": "unreadable"}
    world.run_until_quiet()
    assert world.handled == []


@pytest.mark.parametrize("rule", ["hold", "run"])
def test_a_rule_for_identical_bodies_does_not_release_it(rule: str) -> None:
    settings = {**JSON, "signature": {"header": "X-Signature", "signs": "{timestamp}.{body}"}}
    source = SourceSpec("shop", "hmac", "acme", settings=settings, identical_body=rule)
    world = world_of(source)
    assert send(world, b"", "e0").outcome is IngestOutcome.UNREADABLE
    assert send(world, b"", "e1").outcome is IngestOutcome.UNREADABLE
    assert world.overview("e1", "shop").event.identical_to == "e0"
    assert held_runs(world) == {"shop.pay": "unreadable", "shop.all": "unreadable"}


def test_in_a_batch_the_item_is_held_and_the_others_run() -> None:
    settings = {**JSON, "event_id": {"json": "id"}, "batch": {"json": "events"}}
    settings["signature"] = {"header": "X-Signature", "signs": "{timestamp}.{body}"}
    world = declared(settings, "payment.*", "batch")
    body = json.dumps(
        {
            "events": [
                {"id": "a", "type": "payment.paid"},
                {"id": "b", "type": ["payment.paid"]},
                {"id": "c", "type": "order.paid"},
            ]
        }
    )
    assert send(world, body.encode()).outcome is IngestOutcome.ACCEPTED
    world.run_until_quiet()
    assert held_runs(world, "b") == {"shop.pay": "unreadable", "shop.all": "unreadable"}
    assert [(name, id_) for name, id_, _ in world.handled] == [
        ("shop.pay", "a"),
        ("shop.all", "a"),
    ]
    assert world.event_row("c", "shop") is None


def test_a_header_of_gitlab_that_contradicts_the_signed_body_holds_the_event() -> None:
    """GitLab disables a hook after 4xx, so nothing is refused."""
    source = SourceSpec("shop", "gitlab", "acme", types=("Push Hook",))
    specs = {
        "shop.push": handler("shop.push", "Push Hook", source="shop"),
        "shop.all": handler("shop.all", source="shop"),
    }
    world = world_of(source, handlers=specs)
    sent = providers.load(source).send(
        Sample("e1", "Push Hook", b'{"object_kind": "pipeline"}'), WHSEC, world.now
    )
    headers = {name.lower(): value for name, value in sent.headers.items()}
    parts = ("shop", "POST", "/webhooks/shop", "", {**headers, "x-gitlab-event": "Push Hook"})
    receipt = world.ingest.receive(Delivery(*parts, sent.body, world.now, "r1"))
    assert (receipt.outcome, receipt.status) == (IngestOutcome.CONTRADICTED, 202)
    assert receipt.type == "Pipeline Hook"
    assert held_runs(world) == {"shop.push": "contradicted", "shop.all": "contradicted"}
    world.run_until_quiet()
    assert world.handled == []


@pytest.mark.parametrize("action", [b'{"n": 1}', b'["paid"]', b"true"])
def test_a_part_of_a_joined_type_that_is_no_text_is_not_filtered(action: bytes) -> None:
    joined = {**SIGNED, "event_type": {"json": ["kind", "action"]}}

    receipt = send(declared(joined, "payment|*"), b'{"kind": "payment", "action": %s}' % action)

    assert receipt.outcome is IngestOutcome.UNREADABLE
