"""AWS SNS: RSA over some fields of the body, under a certificate from SNS's own host.

`SignatureVersion` 1 is SHA-1, 2 is SHA-256. `MessageAttributes` are not signed. Signed fields end
at a line break: only `Message` may contain one, so `MessageId` is certain. The topic is pinned,
because any AWS account can have SNS sign messages of its own topics. A subscription is confirmed by
fetching `SubscribeURL`, only for the pinned topic and SNS's host.
Source: aws/aws-js-sns-message-validator, aws/aws-php-sns-message-validator (which also accepts
UnsubscribeConfirmation, as this provider does).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from cryptography.hazmat.primitives import hashes

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import document, text_at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import (
    PLAIN_TEXT,
    Answer,
    Facts,
    Provider,
    Sample,
    Sent,
    Verified,
)
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import pinned
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.asymmetric import Rsa
from webhook_inbox.providers.schemes.signatures.encodings import matches

SETTINGS: Final = frozenset({"topic_arn"})
EXAMPLE: Final = {"topic_arn": "arn:aws:sns:eu-west-1:123456789012:orders"}
_PLACE: Final = r"(central|(north|south)(east|west)?|east|west)-[1-9][0-9]?"
# Every region of each partition, those of later years included, and no other name: anyone may own
# the bucket `sns`, which is also addressed as sns.s3-us-west-2.amazonaws.com.
HOST: Final = re.compile(
    rf"sns\.((?!cn-)[a-z]{{2}}-(gov-)?{_PLACE}\.amazonaws\.com"
    rf"|cn-{_PLACE}\.amazonaws\.com\.cn"
    rf"|eusc-[a-z]{{2}}-{_PLACE}\.amazonaws\.eu"
    rf"|us-iso-{_PLACE}\.c2s\.ic\.gov"
    rf"|us-isob-{_PLACE}\.sc2s\.sgov\.gov"
    rf"|eu-isoe-{_PLACE}\.cloud\.adc-e\.uk"
    rf"|us-isof-{_PLACE}\.csp\.hci\.ic\.gov)",
    re.ASCII,
)
CERTIFICATE: Final = re.compile(r"/[A-Za-z0-9._-]{1,128}\.pem", re.ASCII)
# The only signed field of free text, so the only one with line breaks.
TEXT: Final = "Message"
FIELDS: Final = (
    TEXT, "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type",
)  # fmt: skip
REQUIRED: Final = (TEXT, "MessageId", "Timestamp", "TopicArn", "Type")
# A notification has neither, whatever its body holds.
CONFIRMING: Final = frozenset({"SubscribeURL", "Token"})
NOTIFICATION: Final = "Notification"
FACTS: Final = Facts(
    title="AWS SNS",
    body="partly",
    scheme="RSA PKCS#1 v1.5 with SHA-1 or SHA-256 over fields of the body, certificate fetched",
    event_id="`MessageId`",
    handshake="SubscriptionConfirmation of the pinned topic: its `SubscribeURL` is fetched",
    answer_within="15 s",
    retries="about 50 in four phases by default",
    key_from="none: pin the topic with `topic_arn`",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of one topic."""
    topic = given.text(settings, "topic_arn")

    def precheck(delivery: Delivery, keys: Sequence[str] = ()) -> None:
        scheme = _scheme(delivery)
        scheme.precheck(delivery, keys)
        scheme.contents(delivery, "")
        if not matches(text_at(delivery, "TopicArn") or "", topic):
            raise Rejected(Reason.INVALID_SIGNATURE, "the message is of another topic")

    def verify(delivery: Delivery, keys: Sequence[str]) -> Verified:
        verified = _scheme(delivery).verify(delivery, keys)
        precheck(delivery)
        return verified

    def compose(sample: Sample, secret: str, now: datetime) -> Sent:
        return _sent(sample, secret, now, topic)

    made = build_provider("aws-sns", SHA256, NAMING, facts=FACTS, guard=None)
    return replace(
        made,
        verify=verify,
        precheck=precheck,
        compose=compose,
        needs_secret=False,
        fetches=_certificate,
        handshake=_confirm,
        accepted_status=200,
    )


def _content(delivery: Delivery) -> Sequence[bytes]:
    body = document(delivery)
    if not isinstance(body, dict):
        raise Rejected(Reason.MALFORMED, "the body is not an SNS message")
    signed = [n for n in FIELDS if body.get("Type") != NOTIFICATION or n not in CONFIRMING]
    values = {name: body[name] for name in signed if body.get(name) is not None}
    if not all(isinstance(value, str) for value in values.values()):
        raise Rejected(Reason.MALFORMED, "a signed field of the message is not text")
    if any("\n" in value for name, value in values.items() if name != TEXT):
        # The same signature would fit other fields.
        raise Rejected(Reason.MALFORMED, "a signed field of the message has a line break")
    if not values.keys() >= set(REQUIRED):
        raise Rejected(Reason.MALFORMED, "a signed field of the message is missing")
    text = "".join(f"{name}\n{value}\n" for name, value in values.items())
    return [text.encode(errors="surrogatepass")]


SHA256: Final = Rsa(find=lambda delivery: text_at(delivery, "Signature"), signs=_content)
SHA1: Final = replace(SHA256, algorithm=hashes.SHA1)
NAMING: Final = Naming(
    id=(in_json("MessageId"),),
    type=(in_json("Type"), header("x-amz-sns-message-type")),
    occurred_at=(in_json("Timestamp"),),
)


def _scheme(delivery: Delivery) -> Rsa:
    schemes = {"1": SHA1, "2": SHA256}
    version = text_at(delivery, "SignatureVersion") or ""
    if version not in schemes:
        raise Rejected(Reason.MALFORMED, "the message's SignatureVersion is neither 1 nor 2")
    return schemes[version]


def _certificate(delivery: Delivery, _: Sequence[str]) -> Fetch:
    if not text_at(delivery, "Signature"):
        raise Rejected(Reason.MISSING_SIGNATURE, "the message has no Signature")
    # Messages in the form that Lambda receives use the other spelling.
    url = text_at(delivery, "SigningCertURL") or text_at(delivery, "SigningCertUrl")
    return pinned(url, host=HOST, path=CERTIFICATE)


def _confirm(delivery: Delivery, _: str) -> Answer | None:
    kind = text_at(delivery, "Type")
    if kind == "SubscriptionConfirmation":
        return Answer(200, visit=pinned(text_at(delivery, "SubscribeURL"), host=HOST))
    return Answer(200) if kind == "UnsubscribeConfirmation" else None


def _sent(sample: Sample, secret: str, now: datetime, topic: str) -> Sent:
    message = {
        "Type": NOTIFICATION,
        "MessageId": sample.event_id,
        "TopicArn": topic,
        "Message": sample.body.decode(errors="replace"),
        "Timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "SignatureVersion": "2",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/sample.pem",
    }
    headers = {"content-type": PLAIN_TEXT, "x-amz-sns-message-type": NOTIFICATION}
    return sealed(message, headers, secret, now)


def sealed(
    message: Mapping[str, object], headers: Mapping[str, str], secret: str, now: datetime
) -> Sent:
    """Returns a delivery of a message with its signature; raises ConfigurationError."""
    body = json.dumps(message).encode()
    delivery = Delivery("it", "POST", "/webhooks/it", "", headers, body, now)
    signature = SHA256.signature(secret, SHA256.contents(delivery, "")[0])
    return Sent(headers, json.dumps({**message, "Signature": signature}).encode())
