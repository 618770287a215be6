"""The guarded inbox with a source of batches."""

from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.guarded_inbox import GuardedInbox
from tests.e2e.http_call import Answer
from tests.e2e.inquiry import FRAGILE
from webhook_inbox import providers
from webhook_inbox.configuration.handler_modules import registered_modules
from webhook_inbox.domain.provider import Sample
from webhook_inbox.domain.secret_document import SOURCES

SOURCE = '\n[sources.mail]\nprovider = "sendgrid"\ntypes = ["delivered", "bounce"]\n'
HANDLERS = f"""
from handlers._downstream import post
from webhook_inbox import Router

mail = Router("mail")


@mail.on("*")
def note(event, ctx):
    post(ctx, "/mails", effect="note", body={{"event": event.id}})


@mail.on("bounce", lane="{FRAGILE}")
def suppress(event, ctx):
    post(ctx, "/suppressed", effect="suppress", body={{"event": event.id}})
"""


class MailInbox(GuardedInbox):
    """A deployed inbox with a source of batches, signed as SendGrid does."""

    private_key: str

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        settings, handlers = self.functions / "inbox.toml", self.functions / "handlers"
        settings.write_text(settings.read_text() + SOURCE)
        modules = (*registered_modules(self.functions), "mail")
        (handlers / "mail.py").write_text(HANDLERS)
        (handlers / "__init__.py").write_text(f"MODULES = {modules!r}\n")

    def enrol(self) -> None:
        """Gives the source a public key, and these tests the private one."""
        pair = providers.load(self.manifest.sources["mail"]).pair
        assert pair is not None
        self.private_key, public = pair()
        self.documents.set(SOURCES, "mail", public)

    def send(self, body: bytes) -> Answer:
        """Posts a batch."""
        provider = providers.load(self.manifest.sources["mail"])
        sent = provider.send(Sample("", "", body), self.private_key, datetime.now(UTC))
        return self.post("mail", sent.body, dict(sent.headers))
