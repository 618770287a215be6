"""The project of the incidents: one handler that posts orders to an ERP behind a breaker."""

from pathlib import Path
from typing import Final

from tests.webhookctl.local.projects import APP

INBOX: Final = """
[sources.github]
provider = "github"
types = [{types}]

[destinations.erp]
base_url = "{erp}"
timeout = "2s"
breaker = {{ failures = 20, recovery = "2s", drain = "50/s" }}
"""
TYPES: Final = '"issues.opened", "issues.labeled"'
MORE_TYPES: Final = f'{TYPES}, "issues.closed"'

ORDERS: Final = """
from webhook_inbox import Router

github = Router("github")


@github.on("issues.opened", backoff="fast", max_attempts=2, destinations=["erp"])
def order(event, ctx):
    title = event.json()["issue"]["title"]
    ctx.http("erp").post("/orders", json={"title": title}, effect="order")
"""
# Fails for every event.
BROKEN: Final = ORDERS.replace('["title"]', '["headline"]')
MORE_ORDERS: Final = ORDERS.replace('"issues.opened"', '"issues.*"')


def write(root: Path, *, erp: str) -> Path:
    """Writes the project to a directory; `erp` is the address of its destination."""
    handlers = root / "functions" / "handlers"
    handlers.mkdir(parents=True)
    (root / "app.py").write_text(APP)
    (handlers / "__init__.py").write_text('MODULES = ("orders",)\n')
    write_types(root, TYPES, erp=erp)
    write_handlers(root, ORDERS)
    return root


def write_types(root: Path, types: str, *, erp: str) -> None:
    """Writes `inbox.toml` with these types."""
    (root / "functions" / "inbox.toml").write_text(INBOX.format(types=types, erp=erp))


def write_handlers(root: Path, text: str) -> None:
    """Puts a version of the handlers in place at once, so that no look finds half of it."""
    draft = root / "draft.py"
    draft.write_text(text)
    draft.replace(root / "functions" / "handlers" / "orders.py")
