"""Makes the images of docs/console.md: `python -m scripts.screenshots`.

The pages are those of the console over the in-memory inbox of the tests, at a fixed time and with
fixed ids, so that an image changes only with its page or with the fonts of the machine.
"""

import os
import struct
import sys
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Final
from unittest.mock import patch

from moto import mock_aws
from playwright.sync_api import Page

from tests.browser.driving import Console, Opens, launched, opening, serving
from tests.browser.seeded import Names, seeded
from tests.webhookctl.commands.stage import client, documents
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.console.views import event_path

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
# Pixels; bytes.
WINDOW: Final = {"width": 960, "height": 560}
LARGEST: Final = 80_000
SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
# Rare colours get one of 16 values a channel: the edges of letters take half of an image's bytes.
FEWER_COLOURS: Final = """async (data) => {
  const image = new Image();
  image.src = `data:image/png;base64,${data}`;
  await image.decode();
  const size = { width: image.width, height: image.height };
  const canvas = Object.assign(document.createElement("canvas"), size);
  const context = canvas.getContext("2d", { alpha: false });
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height);
  const colours = new Uint32Array(pixels.data.slice().buffer), counts = new Map();
  for (const each of colours) counts.set(each, (counts.get(each) ?? 0) + 1);
  pixels.data.forEach((value, place, all) => {
    if (counts.get(colours[place >> 2]) < 2000) all[place] = 17 * Math.round(value / 17);
  });
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL().split(",")[1];
}"""
ACCOUNT: Final = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
}


@dataclass(frozen=True, slots=True)
class Shot:
    """An image.

    Attributes:
        name: its file in docs/images/, without the suffix.
        path: the address of the page.
        acts: what is done on the page first.
        local: whether the inbox is one on this machine, otherwise a production stack.
    """

    name: str
    path: Callable[[Names], str]
    acts: Callable[[Page], object] = lambda _: None
    local: bool = False


def _at(path: str) -> Callable[[Names], str]:
    return lambda _: path


def _plan(page: Page) -> None:
    page.locator(".group", has_text="KeyError").get_by_role("button").first.click()
    page.get_by_label("Reason").wait_for()


SHOTS: Final = (
    Shot("overview", _at("/")),
    Shot("events", _at("/events?since=1h")),
    Shot("event", lambda names: event_path("acme", names.dead)),
    Shot("dead-letters", _at("/dead-letters")),
    Shot("replay", _at("/dead-letters"), _plan),
    Shot("approvals", _at("/approvals")),
    Shot("rejected", _at("/rejected")),
    Shot("handlers", _at("/handlers")),
    Shot("destinations", _at("/destinations")),
    Shot("sources", _at("/sources"), local=True),
    Shot("send", _at("/send"), local=True),
    Shot("audit", _at("/audit")),
)


def take(directory: Path) -> None:
    """Writes all images into a directory."""
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as empty, patch.dict(os.environ, ACCOUNT), mock_aws():
        for name in ("acme", "github", "stripe"):
            documents().set(SOURCES, name, f"the-{name}-secret")
        before = Path.cwd()
        os.chdir(empty)  # without a checkout
        try:
            _take(directory)
        finally:
            os.chdir(before)


def _take(directory: Path) -> None:
    with launched() as browser:
        for local in (False, True):
            inbox = seeded(other=client, stage="local" if local else "production", local=local)
            with serving(inbox) as console, opening(browser) as opens:
                for shot in SHOTS:
                    if shot.local == local:
                        _shoot(shot, console, opens, directory)


def _shoot(shot: Shot, console: Console, opens: Opens, directory: Path) -> None:
    page = opens(console, viewport=WINDOW, color_scheme="light")
    page.goto(shot.path(console.names))
    shot.acts(page)
    # The overview reads its figures in the background.
    page.wait_for_load_state("networkidle")
    image = page.screenshot(animations="disabled", caret="hide")
    # The console's policy forbids such an image.
    page.goto("about:blank")
    fewer = page.evaluate(FEWER_COLOURS, b64encode(image).decode())
    (directory / f"{shot.name}.png").write_bytes(_packed(b64decode(fewer)))
    console.faults.clear()
    page.close()


def _packed(png: bytes) -> bytes:
    """Returns the same image in fewer bytes: Chromium compresses fast rather than well."""
    chunks, place = [], len(SIGNATURE)
    while place < len(png):
        (length,) = struct.unpack_from(">I", png, place)
        chunks.append((png[place + 4 : place + 8], png[place + 8 : place + 8 + length]))
        place += length + 12
    pixels = b"".join(data for kind, data in chunks if kind == b"IDAT")
    packed = (b"IDAT", zlib.compress(zlib.decompress(pixels), 9))
    head, *_, end = chunks
    return SIGNATURE + b"".join(starmap(_chunk, (head, packed, end)))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> int:
    """Writes the images; returns the exit status."""
    take(IMAGES)
    large = [each.name for each in IMAGES.glob("*.png") if each.stat().st_size > LARGEST]
    if large:
        sys.stderr.write(f"screenshots: more than {LARGEST} bytes: {', '.join(large)}\n")
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
