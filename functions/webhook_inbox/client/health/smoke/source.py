"""The source of the smoke test. Ingest knows it while its secret exists."""

import json
from base64 import b64encode
from secrets import token_bytes

from webhook_inbox import providers
from webhook_inbox.client.post import PostAnswer, post
from webhook_inbox.client.target import Target
from webhook_inbox.domain.manifest import SMOKE, SMOKE_SOURCE
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.provider import Sample
from webhook_inbox.domain.secret_document import SOURCES


def new_secret() -> str:
    """Returns a secret that no other call returns."""
    return f"whsec_{b64encode(token_bytes(32)).decode()}"


class SmokeSource:
    """Opens, uses and closes the source; smoke tests that run at the same time share its secret."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self._secrets = target.secret_documents
        self._clock = clock
        self._url = f"{target.api_url}/webhooks/{SMOKE}"

    def open(self) -> None:
        """Creates the secret, unless another smoke test has done so."""
        if not self._values():
            # If another one does so now, both values are live.
            self._secrets.set(SOURCES, SMOKE_SOURCE.secret, new_secret())

    def close(self) -> None:
        """Removes the secret; ingest forgets it within a minute."""
        self._secrets.remove(SOURCES, SMOKE_SOURCE.secret)

    def send(self, event_id: str, type_: str, *, forged: bool = False) -> PostAnswer:
        """Posts an event once; a forged one is signed with another secret."""
        now = self._clock.now()
        # The same for each sending of an event: other content under its id is a conflict.
        body = json.dumps({"type": type_}).encode()
        values = () if forged else self._values()
        secret = values[0] if values else new_secret()
        sample = Sample(event_id, type_, body)
        sent = providers.load(SMOKE_SOURCE).send(sample, secret, now)
        return post(self._url, sent.body, sent.headers)

    def _values(self) -> tuple[str, ...]:
        return self._secrets.read(SOURCES).get(SMOKE_SOURCE.secret, ())
