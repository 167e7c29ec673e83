"""The report of a sweep: one file that opens offline.

The one idea: what is drawn is in `points.csv` too. A heat map shows the first two axes, each cell
the best of its points; the front shows what one objective costs in the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sweeps import Swept

BINS = 24
DOTS_MAX = 3000
FRONT_MAX = 50
WIDTH, HEIGHT, MARGIN = 720, 420, 70

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.1em .7em;text-align:right}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}"""


def page(swept: Swept, axes: Sequence[str], fixed: Mapping[str, Any]) -> str:
    """The whole page."""
    first, second = swept.objectives
    rows = swept.rows
    said = ", ".join(f"{escape(name)}={escape(str(value))}" for name, value in fixed.items())
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Sweep</title>",
        f"<style>{STYLE}</style><h1>Sweep of {len(rows)} simulations</h1>",
        f"<p>Simulated by a model, of no machine. Axes: {escape(', '.join(axes))}. {said}</p>",
    ]
    if swept.refused:
        why = escape(swept.refused[0]["why"])
        parts.append(f"<p>{len(swept.refused)} points make no sense; the first: {why}</p>")
    if rows and len(axes) > 1:
        parts += _heat(rows, axes[0], axes[1], first)
    if rows:
        parts += _front(swept, axes, first, second)
    return "\n".join(parts) + "\n"


class Scale:
    """Places on an axis: bins of numbers, or values as they come."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.names = list(dict.fromkeys(values))
        numbers = all(isinstance(value, (int, float)) for value in self.names)
        if numbers:
            self.names.sort()
        self.is_binned = numbers and len(self.names) > BINS
        if self.is_binned:
            self.low, self.high = float(self.names[0]), float(self.names[-1])
            self.is_log = self.low > 0 and self.high / self.low >= 100
            edges = [self._at(bin / BINS) for bin in range(BINS)]
            self.names = [f"{edge:.3g}" for edge in edges]
        self.places = {value: place for place, value in enumerate(self.names)}

    def _at(self, share: float) -> float:
        if self.is_log:
            return self.low * math.pow(self.high / self.low, share)
        return self.low + share * (self.high - self.low)

    def place(self, value: Any) -> int:
        """The number of its bin."""
        if not self.is_binned:
            return self.places[value]
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(BINS - 1, int(share * BINS))


def _heat(rows: Sequence[dict[str, Any]], across: str, up: str, of: str) -> list[str]:
    x, y = Scale([row[across] for row in rows]), Scale([row[up] for row in rows])
    cells: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        at = (x.place(row[across]), y.place(row[up]))
        if at not in cells or row[of] < cells[at][of]:
            cells[at] = row
    low = min(row[of] for row in cells.values())
    high = max(row[of] for row in cells.values())
    wide = (WIDTH - MARGIN) / len(x.names)
    tall = (HEIGHT - MARGIN) / len(y.names)
    drawn = []
    for (column, line), row in sorted(cells.items()):
        share = (row[of] - low) / (high - low) if high > low else 0.0
        # From light to dark, so that it reads in grey as well.
        colour = f"hsl(210 70% {92 - 65 * share:.0f}%)"
        top = HEIGHT - MARGIN - (line + 1) * tall
        title = f"{across}={row[across]} {up}={row[up]} {row['arm']}: {of} {row[of]}"
        drawn.append(
            f'<rect x="{MARGIN + column * wide:.1f}" y="{top:.1f}" width="{wide + 0.3:.1f}" '
            f'height="{tall + 0.3:.1f}" fill="{colour}"><title>{escape(title)}</title></rect>'
        )
    every_x, every_y = max(1, len(x.names) // 8), max(1, len(y.names) // 8)
    for place in range(0, len(x.names), every_x):
        along = MARGIN + (place + 0.5) * wide
        drawn.append(_text(along, HEIGHT - MARGIN + 16, str(x.names[place])))
    for place in range(0, len(y.names), every_y):
        along = HEIGHT - MARGIN - (place + 0.5) * tall + 4
        drawn.append(_text(MARGIN - 6, along, str(y.names[place]), "end"))
    drawn.append(_text(MARGIN + (WIDTH - MARGIN) / 2, HEIGHT - MARGIN + 36, across))
    drawn.append(_text(MARGIN, 12, up, "end"))
    return [
        f"<h2>{escape(of)} by {escape(across)} and {escape(up)}</h2>",
        f"<p>Each cell is the best of its points: {low:.4g} (light) to {high:.4g} (dark).</p>",
        f'<svg viewBox="0 -4 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>',
    ]


def _front(swept: Swept, axes: Sequence[str], first: str, second: str) -> list[str]:
    front, rows = swept.front(), swept.rows
    most = [max(row[name] for row in rows) or 1 for name in (first, second)]

    def at(row: dict[str, Any]) -> tuple[float, float]:
        across = MARGIN + row[first] / most[0] * (WIDTH - 2 * MARGIN)
        return across, HEIGHT - MARGIN - row[second] / most[1] * (HEIGHT - 2 * MARGIN)

    drawn = []
    for row in rows[:: -(-len(rows) // DOTS_MAX)]:
        x, y = at(row)
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="#9ab"/>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, front))
    drawn.append(f'<polyline points="{line}" fill="none" stroke="#c40" stroke-width="2"/>')
    for row in front:
        x, y = at(row)
        what = " ".join(f"{name}={row[name]}" for name in axes)
        title = f"{what} {row['arm']}: {first} {row[first]}, {second} {row[second]}"
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#c40">'
            f"<title>{escape(title)}</title></circle>"
        )
    drawn.append(_text(WIDTH / 2, HEIGHT - 30, f"{first}, 0 to {most[0]:.4g}"))
    drawn.append(_text(MARGIN, MARGIN - 20, f"{second}, 0 to {most[1]:.4g}", "start"))
    names = ["point", *axes, "arm", first, second]
    head = "".join(f"<th>{escape(name)}" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(row[name]))}" for name in names)
        for row in front[:FRONT_MAX]
    )
    shown = f" The first {FRONT_MAX} of them:" if len(front) > FRONT_MAX else ""
    return [
        f"<h2>Pareto front: {escape(first)} against {escape(second)}</h2>",
        f"<p>{len(front)} of {len(rows)} simulations are beaten by no other in both.{shown}</p>",
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>',
        f"<table><tr>{head}{body}</table>",
    ]


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
