"""The Markdown pages whose code and commands the tests execute or parse."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
START: Final = DOCS / "start.md"
HANDLERS: Final = DOCS / "handlers.md"
APPROVALS: Final = DOCS / "approvals.md"
OPERATE: Final = DOCS / "operate.md"
DEPLOY: Final = DOCS / "deploy.md"
RUNBOOK: Final = DOCS / "runbook.md"
# Pages with commands for readers to copy.
GUIDES: Final = (README, START, HANDLERS, APPROVALS, OPERATE, DEPLOY, RUNBOOK)
EVERY: Final = (README, ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")))
TEXTS: Final = {page: page.read_text(encoding="utf-8") for page in EVERY}


def anchors(text: str) -> set[str]:
    """Returns the anchors that a page's headings have on GitHub."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
