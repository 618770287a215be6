"""Ingest writes one line a delivery, with its metrics, and no secrets (G10)."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.functions.embedded_metrics import points
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import SECRET, Inbox
from tests.functions.invocations import http_event

PRIVATE = "jenny.rosen@example.com"
CREDENTIAL = "Bearer eyJhbGciOiJIUzI1NiJ9"
# Letters only: digits alone may occur in a metric's timestamp.
SESSION = "jennys-session-cookie"


def private(inbox: Inbox, source: str = "acme", **changes: str) -> dict[str, Any]:
    """Returns a valid delivery with data that must not appear in a log."""
    body = json.dumps({"type": "lab.fine", "id": "evt_1", "email": PRIVATE}).encode()
    headers = inbox.sign(source, body) | {"authorization": CREDENTIAL, "cookie": f"sid={SESSION}"}
    return http_event(f"/webhooks/{source}", headers=headers | changes, body=body)


def assert_discreet(inbox: Inbox, event: dict[str, Any]) -> None:
    """Nothing private of the delivery was written out."""
    inbox.output.read()
    headers = event["headers"]
    signatures = [value for name, value in headers.items() if "signature" in name]
    assert signatures
    for text in (SECRET, PRIVATE, CREDENTIAL, SESSION, *signatures):
        assert text not in inbox.output.text
        assert text[-24:] not in inbox.output.text


def test_an_accepted_delivery_is_one_line(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")

    [line] = inbox.output.logs()

    known = {name: line[name] for name in ("level", "message", "source", "outcome", "status")}
    assert known == {
        "level": "INFO",
        "message": "delivery accepted",
        "source": "acme",
        "outcome": "accepted",
        "status": 202,
    }
    assert (line["event_id"], line["type"]) == ("evt-1", "lab.fine")
    assert line["request_id"] == "JKJaXmPLvHcESHA="
    # What the ledger has, what Lambda says of failures only, and the log group's name.
    assert not {"handlers", "function_request_id", "service"} & line.keys()
    assert datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z").utcoffset() == timedelta()


def test_a_line_has_no_empty_value_and_tells_of_a_cold_start_once(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")
    inbox.deliver("lab.fine", event_id="evt-2")

    first, second = inbox.output.logs()
    assert first.pop("cold_start") is True
    assert "cold_start" not in second
    assert {"", None} & {value for value in second.values() if isinstance(value, str)} == set()
    assert second.keys() == first.keys()


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1", True),
        ("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0", False),
    ],
)
def test_a_line_names_the_trace_of_x_ray_if_there_is_one(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, header: str, told: bool
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", header)

    inbox.deliver("lab.fine")

    [line] = inbox.output.logs()
    expected = "1-5759e988-bd862e3fe1be46a994272793" if told else None
    assert line.get("xray_trace_id") == expected


@pytest.mark.parametrize("level", ["ERROR", "error", "nonsense"])
def test_a_higher_level_costs_no_metric(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)

    inbox.deliver("lab.fine")
    inbox.request(http_event("/status/unknown", method="GET"))

    assert ("Accepted", {"source": "acme"}) in counted(inbox)


def test_a_rejected_delivery_is_one_line_that_says_why(inbox: Inbox) -> None:
    inbox.post("acme", b"{}", inbox.sign("acme", b"{ }"))

    [line] = inbox.output.logs()

    assert (line["level"], line["outcome"], line["status"]) == ("INFO", "rejected", 401)
    assert (line["reason"], line["detail"]) == (
        "invalid-signature",
        "no live secret verifies this signature",
    )


@pytest.mark.parametrize(
    ("delivery", "outcome"),
    [
        ({"source": "cycles"}, "no-secret"),
        ({"event_id": "evt-1", "amount": 2}, "conflict"),
    ],
)
def test_a_log_line_for_the_operator_is_an_error(
    inbox: Inbox, delivery: dict[str, Any], outcome: str
) -> None:
    inbox.deliver("lab.fine")
    inbox.output.read()

    inbox.deliver("lab.fine", **delivery)

    [line] = inbox.output.logs()
    assert (line["level"], line["outcome"]) == ("ERROR", outcome)


def test_an_outage_is_an_error_that_names_the_call(inbox: Inbox, faults: Faults) -> None:
    faults.set("PutItem", Fault.THROTTLED)

    inbox.deliver("lab.fine")

    [line] = inbox.output.logs()
    assert (line["level"], line["outcome"], line["status"]) == ("ERROR", "unavailable", 503)
    assert line["detail"] == "dynamodb PutItem: ThrottlingException: this is a test"
    # Lambda's own line of a failure has the same id.
    assert line["function_request_id"]


def test_a_fault_of_our_own_is_counted_however_long_its_text_is(
    inbox: Inbox, faults: Faults
) -> None:
    """CloudWatch reads no metrics in a longer line."""

    def bug(_: dict[str, Any]) -> None:
        raise KeyError("\N{PILE OF POO}" * 500_000)

    faults.rewrite("PutItem", bug)

    inbox.deliver("lab.fine")

    [line] = inbox.output.logs()
    assert len(json.dumps(line)) < 1024 * 1024
    assert "IngestFailures" in {point.name for point in points(line)}
    assert line["detail"].startswith("Traceback")
    assert "KeyError: " in line["detail"]


def counted(inbox: Inbox) -> list[tuple[str, dict[str, str]]]:
    """Returns the metrics of the deliveries but their times."""
    points = inbox.output.points()
    assert all(point.values == [1] for point in points if point.name != "AcknowledgementTime")
    found = [(name, dict(named)) for name, _, named in points if name != "AcknowledgementTime"]
    return sorted(found, key=str)


def test_an_accepted_delivery_is_counted_by_source_in_one_line(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")

    [line] = inbox.output.metrics()
    assert {point.name: point.dimensions for point in points(line)} == {
        "AcknowledgementTime": {},
        "Accepted": {"source": "acme"},
    }
    assert 0 < line["AcknowledgementTime"][0] < 60_000


def test_every_answer_has_its_time(inbox: Inbox) -> None:
    for path in ("/webhooks/acme", "/webhooks/unknown"):
        inbox.request(http_event(path))

    times = [point for point in inbox.output.points() if point.name == "AcknowledgementTime"]
    assert len(times) == 2


def test_a_guess_at_a_source_makes_no_metric_of_its_own(inbox: Inbox) -> None:
    for guess in ("wp-login.php", "acme'--", "x" * 300):
        inbox.request(http_event(f"/webhooks/{guess}"))

    assert counted(inbox) == []


def test_a_rejection_is_counted_by_reason_and_in_total(inbox: Inbox) -> None:
    inbox.request(http_event("/webhooks/acme", body=b"{}"))

    assert counted(inbox) == [("Rejected", {"reason": "missing-signature"}), ("Rejected", {})]


def test_a_conflict_is_counted(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")
    inbox.output.read()

    inbox.deliver("lab.fine", more=1)

    assert counted(inbox) == [("Conflicts", {})]


def test_a_duplicate_is_counted_by_its_kind(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")
    inbox.work()
    inbox.output.read()

    inbox.deliver("lab.fine")

    assert counted(inbox) == [("Duplicates", {"kind": "retry"})]


def test_a_delivery_under_the_previous_secret_is_counted(inbox: Inbox) -> None:
    """So that an operator sees when the old one can go."""
    inbox.account.set_secret("acme", "bmV3IHNlY3JldCwgYWxzbyBhIHRlc3Q=")

    inbox.deliver("lab.fine")

    assert ("VerifiedWithPrevious", {"source": "acme"}) in counted(inbox)


@pytest.mark.parametrize("source", ["acme", "stripe"])
@pytest.mark.parametrize("twist", ["valid", "wrong body", "wrong method", "not base64"])
def test_nothing_private_is_written_whatever_becomes_of_a_delivery(
    inbox: Inbox, source: str, twist: str
) -> None:
    event = private(inbox, source)
    event |= {
        "valid": {},
        "wrong body": {"body": f'{{"email":"{PRIVATE}"'},
        "wrong method": {"requestContext": {"http": {"method": "PUT"}}},
        "not base64": {"isBase64Encoded": True},
    }[twist]

    inbox.request(event)

    assert_discreet(inbox, event)


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.SILENT], ids=["throttled", "silent"])
def test_nothing_private_is_written_in_an_outage(
    inbox: Inbox, faults: Faults, fault: Fault
) -> None:
    event = private(inbox)
    for operation in ("GetSecretValue", "PutItem", "SendMessageBatch"):
        faults.set(operation, fault)
        inbox.request(event)

    assert_discreet(inbox, event)


def test_nothing_private_is_written_where_a_secret_is_missing(inbox: Inbox) -> None:
    event = private(inbox, "cycles")

    inbox.request(event)

    assert_discreet(inbox, event)


def test_the_event_is_not_logged_even_where_powertools_is_told_to(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This debugging option would log every signature."""
    monkeypatch.setenv("POWERTOOLS_LOGGER_LOG_EVENT", "true")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    event = private(inbox)

    inbox.request(event)

    assert_discreet(inbox, event)


def test_no_table_holds_what_is_private_but_the_body(inbox: Inbox) -> None:
    event = private(inbox)

    inbox.request(event)

    [row] = inbox.account.rows("event#")
    text = repr(row)
    for secret in (SECRET, CREDENTIAL, SESSION, event["headers"]["x-acme-signature"]):
        assert secret not in text
    assert len(row["signature_hash"]) == 32


def test_a_name_with_half_a_character_in_it_does_not_cost_the_line(inbox: Inbox) -> None:
    body = b'{"id":"evt_\\ud83d","type":"invoice.\\ud83d"}'

    inbox.post("stripe", body, inbox.sign("stripe", body))

    [line] = inbox.output.logs()
    assert line["source"] == "stripe"
