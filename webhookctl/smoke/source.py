"""The source of the smoke test. Ingest knows it while its secret exists."""

import json
from base64 import b64encode
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final

from botocore.exceptions import ClientError

from webhook_inbox import providers
from webhook_inbox.domain.manifest import SMOKE, SMOKE_SOURCE
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.provider import Sample
from webhookctl.deliveries.post import Answer, post
from webhookctl.deliveries.samples import Draft
from webhookctl.target import Target

BODY: Final = Path("smoke.json")


def new_secret() -> str:
    """Returns a secret that no other call returns."""
    return f"whsec_{b64encode(token_bytes(32)).decode()}"


class SmokeSource:
    """Opens, uses and closes the source; smoke tests that run at the same time share its secret."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._url = f"{target.api_url}/webhooks/{SMOKE}"

    def open(self) -> None:
        """Creates the secret, unless another smoke test has done so."""
        if not self._target.secrets.fetch(SMOKE_SOURCE.secret):
            self._store(new_secret())

    def close(self) -> None:
        """Removes the secret; ingest forgets it within a minute."""
        try:
            self._vault.delete_secret(SecretId=self._name, ForceDeleteWithoutRecovery=True)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise

    def send(self, event_id: str, type_: str, *, forged: bool = False) -> Answer:
        """Posts an event once; a forged one is signed with another secret.

        Raises:
            Unavailable: the secret cannot be read.
        """
        now = self._clock.now()
        # The same for each sending of an event: other content under its id is a conflict.
        body = json.dumps({"type": type_}).encode()
        values = () if forged else self._target.secrets.fetch(SMOKE_SOURCE.secret)
        secret = values[0] if values else new_secret()
        sample = Sample(event_id, type_, body)
        sent = providers.load(SMOKE_SOURCE).send(sample, secret, now)
        return post(self._url, Draft(BODY, SMOKE, event_id, type_, sent.body, sent.headers))

    @property
    def _vault(self) -> Any:
        return self._target.client("secretsmanager")

    @property
    def _name(self) -> str:
        return self._target.secret_prefix + SMOKE_SOURCE.secret

    def _store(self, value: str) -> None:
        try:
            self._vault.create_secret(Name=self._name, SecretString=value)
        except ClientError as error:
            # Another smoke test has created it meanwhile.
            if error.response["Error"]["Code"] != "ResourceExistsException":
                raise
