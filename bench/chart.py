"""Draws the ratios as an SVG that reads on light and on dark pages."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from bench.results import Results, Step
from bench.subjects import BARE, INBOX

# Pixels.
WIDTH: Final = 840
LEFT: Final = 130
RIGHT: Final = 60
TOP: Final = 92
ROW: Final = 34
RADIUS: Final = 6
# Beyond this ratio a mark lies at the border, with its value.
LIMIT: Final = 4.0
STYLE: Final = """\
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--text); }
.title { font-size: 15px; font-weight: 600; }
.quiet { fill: var(--quiet); }
.value { font-weight: 600; }
.grid { stroke: var(--grid); }
.bare { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 4 3; }
.spread { stroke: var(--text); stroke-width: 1.5; }
.page { fill: var(--page); }
svg { --page: #ffffff; --text: #1f2328; --quiet: #59636e; --grid: #d1d9e0;
  --c0: #0969da; --c1: #bc4c00; --c2: #8250df; --c3: #1a7f37; }
@media (prefers-color-scheme: dark) {
  svg { --page: #0d1117; --text: #f0f6fc; --quiet: #9198a1; --grid: #3d444d;
    --c0: #4493f8; --c1: #f0883e; --c2: #ab7df8; --c3: #3fb950; }
}
"""


def draw(results: Results) -> str:
    """Returns the SVG: a row for each step; a bar for the inbox, a mark for each baseline."""
    names = [name for name in results.handlers if name != BARE]
    most = min(LIMIT, max(s.ratio(n).high for s in results.steps for n in names))
    scale = (WIDTH - LEFT - RIGHT) / (ceil(most * 2) / 2)
    bottom = TOP + ROW * len(results.steps)
    parts = [
        f'<text class="title" x="16" y="26">CPU per event as a ratio to the {BARE} handler</text>',
        '<text class="quiet" x="16" y="46">less is better; a bar is the median of the processes,'
        " its whisker their least and greatest; on the right, the inbox</text>",
        *_legend(names),
        *_axis(scale, bottom),
    ]
    for number, step in enumerate(results.steps):
        parts += _row(step, names, TOP + ROW * number + ROW / 2, scale)
    height = bottom + 34
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{_summary(results)}">\n<style>\n{STYLE}</style>\n'
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _summary(results: Results) -> str:
    ratios = ", ".join(f"{s.title} {s.ratio(INBOX).median:.2f}" for s in results.steps)
    return f"CPU of the inbox as a ratio to the {BARE} handler: {ratios}"


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = 16.0
    for number, name in enumerate(names):
        yield mark(number, x + 6, 68)
        yield f'<text x="{x + 18:.0f}" y="72">{name}</text>'
        x += 50 + 7.2 * len(name)


def _axis(scale: float, bottom: float) -> Iterator[str]:
    steps = round((WIDTH - LEFT - RIGHT) / scale * 2)
    for half in range(steps + 1):
        x = LEFT + half / 2 * scale
        kind = "bare" if half == 2 else "grid"
        yield f'<line class="{kind}" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        label = f"{BARE} 1" if half == 2 else f"{half / 2:g}"
        yield (
            f'<text class="quiet" x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{label}</text>'
        )


def _row(step: Step, names: Sequence[str], y: float, scale: float) -> Iterator[str]:
    yield f'<text x="16" y="{y + 4:.1f}">{step.title}</text>'
    for number, name in enumerate(names):
        ratio = step.ratio(name)
        x = LEFT + min(ratio.median, LIMIT) * scale
        if name == INBOX:
            low, high = (LEFT + min(r, LIMIT) * scale for r in (ratio.low, ratio.high))
            yield (
                f'<rect x="{LEFT}" y="{y - 7:.1f}" width="{x - LEFT:.1f}" height="14"'
                ' style="fill: var(--c0)"/>'
            )
            yield f'<line class="spread" x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}"/>'
            yield (
                f'<text class="value" x="{WIDTH - 16}" y="{y + 4:.1f}" text-anchor="end">'
                f"{ratio.median:.2f}</text>"
            )
        else:
            yield mark(number, x, y)


def mark(number: int, x: float, y: float) -> str:
    """Returns the mark of a handler; its form tells it apart without its colour."""
    r, style = RADIUS, f'style="fill: var(--c{number}); stroke: var(--page); stroke-width: 1.5"'
    if number == 0:
        return f'<rect x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12" {style}/>'
    if number == 1:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {style}/>'
    if number == 2:
        points = f"{x - r},{y} {x},{y - r - 1} {x + r},{y} {x},{y + r + 1}"
    else:
        points = f"{x - r},{y + r - 1} {x},{y - r} {x + r},{y + r - 1}"
    return f'<polygon points="{points}" {style}/>'
