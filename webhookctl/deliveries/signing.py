"""The address of a source, and the secret that signs its deliveries."""

from webhook_inbox.client import InboxClient
from webhook_inbox.client.local_session import DIRECTORY
from webhook_inbox.client.names import unknown
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import SourceSpec
from webhookctl.checkout import Checkout
from webhookctl.errors import CommandError
from webhookctl.local import dev_secrets


def address_of(client: InboxClient, source: str) -> str:
    """Returns the URL of a source; raises CommandError if the inbox has no such source."""
    urls = client.target.urls
    if source not in urls:
        if client.target.local:
            raise CommandError(
                f"the source {source} is not loaded yet: wait until `webhookctl dev` prints"
                f" `new source: …/{source}`, or the reason why it did not reload"
            )
        problem = unknown("source", source, urls, where="is deployed")
        raise CommandError(f"{problem}; deploy a new source first")
    return urls[source]


def stored_secret(client: InboxClient, spec: SourceSpec) -> str:
    """Returns the secret that signs for a source; raises CommandError if it cannot be read."""
    if client.target.local:
        directory = Checkout.required().functions.parent / DIRECTORY
        # The private key of the local inbox's fake public key.
        if (private := dev_secrets.signing_key(directory, spec.secret)) is not None:
            return private
    try:
        values = client.target.secrets.fetch().get(spec.secret)
    except Unavailable as error:
        raise CommandError(
            f"the secret {spec.secret} cannot be read ({error}): pass it with --secret - or"
            " --secret-env"
        ) from error
    if not values:
        remedy = client.program.command("secrets set", argument=spec.secret)
        raise CommandError(f"the secret {spec.secret} is not set: run `{remedy}`")
    return values[0]
