"""The sink's page for a browser: its effects as HTML, newest first, without scripts."""

import json
from collections.abc import Mapping
from datetime import datetime
from html import escape
from typing import Any, Final

from webhookctl.display.untrusted import printable, printable_lines

# A page of a few thousand effects must still open; the JSON has all of them.
SHOWN: Final = 500
BODY_SHOWN: Final = 20_000  # characters
# The content is of strangers: nothing in it may load or run.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem; }
h1 { font-size: 1.3rem; margin-bottom: 0.2rem; }
article { border: 1px solid #8886; border-radius: 6px; margin: 1rem 0; padding: 0.6rem 0.9rem; }
h2 { font: 600 1rem ui-monospace, monospace; margin: 0; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; margin: 0.4rem 0; }
dt { color: light-dark(#555, #aaa); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { background: #8882; border-radius: 4px; margin: 0.4rem 0 0; padding: 0.5rem 0.7rem;
  overflow-wrap: anywhere; white-space: pre-wrap; }
"""


def page(effects: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the page of the effects by idempotency key, which are in order of arrival."""
    newest = list(effects.items())[::-1]
    articles = "\n".join(_article(key, effect) for key, effect in newest[:SHOWN])
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Sink</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n'
        "<h1>Sink</h1>\n"
        f"<p>{_summary(len(newest))} Reload the page to see later ones."
        " <code>curl</code> gets the same as JSON.</p>\n"
        f"{articles}\n</html>\n"
    )


def _summary(number: int) -> str:
    if not number:
        return "No request has arrived yet."
    many = f"{number:,} effect{'s' if number > 1 else ''} of handlers, newest first."
    return many if number <= SHOWN else f"{many} The page shows {SHOWN}."


def _article(key: str, effect: Mapping[str, Any]) -> str:
    repeated = effect["requests"] - 1
    rows = {
        "key": key,
        "status": "201" + (f", then 200 to {_times(repeated)}" if repeated else ""),
        "first": _clock(effect["first_at"]),
        **({"last": _clock(effect["last_at"])} if repeated else {}),
    }
    listed = "".join(
        f"<dt>{name}</dt><dd>{escape(printable(value))}</dd>" for name, value in rows.items()
    )
    title = escape(printable(f"{effect['method']} {effect['path']}"))
    return f"<article><h2>{title}</h2><dl>{listed}</dl>{_body(effect['body'])}</article>"


def _body(body: Any) -> str:
    text = json.dumps(body, indent=2, ensure_ascii=False)
    if len(text) > BODY_SHOWN:
        text = f"{text[:BODY_SHOWN]}\n… (the JSON has the whole body)"
    return f"<pre>{escape(printable_lines(text))}</pre>"


def _times(repeated: int) -> str:
    return f"{repeated} repetition{'s' if repeated > 1 else ''}"


def _clock(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
