"""Sample files become deliveries that their provider could have sent."""

import json
from pathlib import Path

import pytest

from tests.unit.providers.cases import NAMES, example, pair_of, samples_of, signed
from tests.unit.support.world import ACME, SECRET
from webhook_inbox import providers
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified
from webhook_inbox.ingest import events
from webhookctl.deliveries.samples import Draft, Forge
from webhookctl.errors import CommandError

CLOCK = ManualClock()
HASHED = SourceSpec(
    "hashed",
    "hmac",
    "hashed",
    settings={"signature": {"header": "X-Signature"}, "event_id": {"body": "sha256"}},
)
SLACK = SourceSpec("slack", "slack", "slack")


def forge(spec: SourceSpec = ACME, secret: str = SECRET) -> Forge:
    return Forge(provider=providers.load(spec), spec=spec, secret=secret, clock=CLOCK)


def verified(draft: Draft, spec: SourceSpec) -> str:
    """Returns the id that ingest will see; raises where the signature is not right."""
    provider = providers.load(spec)
    path = f"/webhooks/{spec.name}"
    delivery = Delivery(spec.name, "POST", path, "", draft.headers, draft.body, CLOCK.now())
    provider.verify(delivery, (SECRET,))
    return provider.identify(delivery).event_id


def sample(directory: Path, text: str, name: str = "paid__order.json") -> Path:
    file = directory / name
    file.write_text(text)
    return file


def test_a_draft_is_verified_as_the_providers_own(tmp_path: Path) -> None:
    draft = forge().draft(sample(tmp_path, "{}"))
    assert verified(draft, ACME) == draft.event_id
    assert not draft.id_in_body


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("paid__order.json", "paid"),
        ("paid.json", "paid"),
        ("invoice.paid__thin.v2.json", "invoice.paid"),
        ("paid", "paid"),
    ],
)
def test_a_files_name_says_its_type(tmp_path: Path, name: str, type_: str) -> None:
    assert forge().draft(sample(tmp_path, "{}", name)).type == type_


def test_the_body_is_sent_byte_for_byte(tmp_path: Path) -> None:
    body = b'{ "a":1 }\r\n\xff'
    file = tmp_path / "paid.json"
    file.write_bytes(body)
    assert forge().draft(file).body == body


def test_slacks_id_is_replaced_in_its_body(tmp_path: Path) -> None:
    body = {"event_id": "Ev123", "event": {"type": "message"}, "type": "event_callback"}
    draft = forge(SLACK).draft(sample(tmp_path, json.dumps(body)), event_id="Ev999")
    assert verified(draft, SLACK) == "Ev999"
    assert json.loads(draft.body) == {**body, "event_id": "Ev999"}
    assert draft.id_in_body


def test_an_id_with_quotes_is_written_as_json(tmp_path: Path) -> None:
    body = json.dumps({"event_id": "Ev123", "type": "event_callback"})
    draft = forge(SLACK).draft(sample(tmp_path, body), event_id='a"b')
    assert verified(draft, SLACK) == 'a"b'


def test_an_id_made_of_the_content_changes_with_white_space_alone(tmp_path: Path) -> None:
    file = sample(tmp_path, '{"a": 1}')
    first, same = forge(HASHED).draft(file), forge(HASHED).draft(file)
    other = forge(HASHED).draft(file, new_id=True)
    assert first.event_id == same.event_id != other.event_id
    assert json.loads(other.body) == {"a": 1}
    assert verified(other, HASHED) == other.event_id


def test_an_id_made_of_the_content_cannot_be_given(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="its id does not stand in it"):
        forge(HASHED).draft(sample(tmp_path, '{"a": 1}'), event_id="mine")


def test_content_that_is_no_json_has_to_be_changed_by_hand(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not JSON, so it has to be changed by hand"):
        forge(HASHED).draft(sample(tmp_path, "a=1"), new_id=True)


def test_a_secret_of_the_wrong_form_is_told_without_it(tmp_path: Path) -> None:
    spec = SourceSpec("billing", "standard-webhooks", "billing")
    with pytest.raises(CommandError, match="the secret does not have the form") as raised:
        forge(spec, "whsec_not!base64").draft(sample(tmp_path, "{}"))
    assert "not!base64" not in str(raised.value)


@pytest.mark.parametrize("provider_name", NAMES)
def test_every_providers_sample_is_sent_as_its_provider_would(provider_name: str) -> None:
    spec = SourceSpec("it", provider_name, "it", settings=example(provider_name))
    draft = forge(spec, pair_of(provider_name)[0]).draft(samples_of(provider_name)[0])
    headers = {"host": "inbox.example", **draft.headers}
    sent = Delivery("it", "POST", "/webhooks/it", draft.query, headers, draft.body, CLOCK.now())
    case = signed(provider_name)

    assert isinstance(case.verdict(sent), Verified)
    named = events.name_of(sent, case.provider)
    assert (named.event_id, named.type) == (draft.event_id, draft.type)


def test_what_stands_in_the_query_is_sent_there(tmp_path: Path) -> None:
    spec = SourceSpec("docker", "docker-hub", "docker")
    draft = forge(spec, "a b").draft(samples_of("docker-hub")[0])
    assert draft.query == "token=a+b"
