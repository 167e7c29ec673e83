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

BINS_MAX = 24
DOTS_MAX = 3000
FRONT_MAX = 50
TICKS = 5
WIDTH, HEIGHT = 720, 400
# Where both pictures are drawn: what is left of it is for names.
LEFT, RIGHT, TOP, BOTTOM = 80, WIDTH - 30, 24, HEIGHT - 44

STYLE = """:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.1em .7em;text-align:right}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}
text{fill:currentColor}.ground{fill:currentColor;opacity:.07}
.axis{stroke:currentColor;opacity:.4}.dot{fill:#8aa0b4}.front{fill:#d9531e;stroke:#d9531e}"""

# Of what ends so: powers of what, and how they are called.
UNITS = {
    "_ns": (1000, ("ns", "µs", "ms", "s")),
    "_bytes": (1024, ("B", "KiB", "MiB", "GiB", "TiB")),
}


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


def called(name: str) -> str:
    """An objective without the unit that its numbers show."""
    for ending in UNITS:
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def shown(name: str, value: Any) -> str:
    """A number with four digits, by its unit where its name has one; anything else as it is."""
    if not isinstance(value, (int, float)):
        return str(value)
    for ending, (base, units) in UNITS.items():
        if name.endswith(ending):
            power = min(len(units) - 1, int(math.log(value, base) + 1e-9)) if value >= 1 else 0
            return f"{value / base**power:.4g} {units[power]}"
    whole = isinstance(value, int) or value.is_integer()
    return f"{value:.0f}" if whole and abs(value) < 1e7 else f"{value:.4g}"


class Scale:
    """Places on an axis: bins of numbers, so many that few stay empty, or values as they come."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.names = list(dict.fromkeys(values))
        numbers = all(isinstance(value, (int, float)) for value in self.names)
        if numbers:
            self.names.sort()
        self.bins = max(4, min(BINS_MAX, math.isqrt(len(values) // 4)))
        self.is_binned = numbers and len(self.names) > self.bins
        if self.is_binned:
            self.low, self.high = float(self.names[0]), float(self.names[-1])
            self.is_log = self.low > 0 and self.high / self.low >= 100
            middles = [self._at((bin + 0.5) / self.bins) for bin in range(self.bins)]
            self.names = [f"{float(f'{middle:.3g}'):.10g}" for middle in middles]
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
        return min(self.bins - 1, int(share * self.bins))


def _heat(rows: Sequence[dict[str, Any]], across: str, up: str, of: str) -> list[str]:
    x, y = Scale([row[across] for row in rows]), Scale([row[up] for row in rows])
    cells: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        at = (x.place(row[across]), y.place(row[up]))
        if at not in cells or row[of] < cells[at][of]:
            cells[at] = row
    low = min(row[of] for row in cells.values())
    high = max(row[of] for row in cells.values())
    wide = (RIGHT - LEFT) / len(x.names)
    tall = (BOTTOM - TOP) / len(y.names)
    drawn = [_ground()]
    for (column, line), row in sorted(cells.items()):
        share = (row[of] - low) / (high - low) if high > low else 0.0
        # From light to dark, so that it reads in grey as well.
        colour = f"hsl(210 70% {92 - 65 * share:.0f}%)"
        top = BOTTOM - (line + 1) * tall
        title = f"{across}={row[across]} {up}={row[up]} {row['arm']}: {shown(of, row[of])}"
        drawn.append(
            f'<rect x="{LEFT + column * wide:.1f}" y="{top:.1f}" width="{wide + 0.3:.1f}" '
            f'height="{tall + 0.3:.1f}" fill="{colour}"><title>{escape(title)}</title></rect>'
        )
    every_x, every_y = -(-len(x.names) // 10), -(-len(y.names) // 10)
    for place in range(0, len(x.names), every_x):
        along = LEFT + (place + 0.5) * wide
        drawn.append(_text(along, BOTTOM + 16, str(x.names[place])))
    for place in range(0, len(y.names), every_y):
        along = BOTTOM - (place + 0.5) * tall + 4
        drawn.append(_text(LEFT - 6, along, str(y.names[place]), "end"))
    drawn += _names(across, up)
    best, worst = shown(of, low), shown(of, high)
    without = " Where it is grey there is none." if len(cells) < len(x.names) * len(y.names) else ""
    middles = (
        " An axis of numbers has the middle of each cell." if x.is_binned or y.is_binned else ""
    )
    return [
        f"<h2>{escape(called(of))} by {escape(across)} and {escape(up)}</h2>",
        f"<p>Each cell is the best of its points: {best} (light) to {worst} (dark).{without}"
        f"{middles}</p>",
        _svg(drawn),
    ]


def _front(swept: Swept, axes: Sequence[str], first: str, second: str) -> list[str]:
    front, rows = swept.front(), swept.rows
    spans = [(min(row[of] for row in rows), max(row[of] for row in rows)) for of in (first, second)]

    def share(number: float, span: tuple[float, float]) -> float:
        low, high = span
        # Off the edges, so that a dot is whole.
        return 0.03 + 0.94 * ((number - low) / (high - low) if high > low else 0.5)

    def at(row: dict[str, Any]) -> tuple[float, float]:
        across, up = share(row[first], spans[0]), share(row[second], spans[1])
        return LEFT + across * (RIGHT - LEFT), BOTTOM - up * (BOTTOM - TOP)

    drawn = [_ground()]
    for tick in range(TICKS):
        across, up = ((high - low) * tick / (TICKS - 1) + low for low, high in spans)
        x, y = at({first: across, second: up})
        drawn.append(f'<path class="axis" d="M{x:.1f} {BOTTOM}v5M{LEFT} {y:.1f}h-5"/>')
        drawn.append(_text(x, BOTTOM + 18, shown(first, across)))
        drawn.append(_text(LEFT - 8, y + 4, shown(second, up), "end"))
    for row in rows[:: -(-len(rows) // DOTS_MAX)]:
        x, y = at(row)
        drawn.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="1.6"/>')
    # In steps: nothing was simulated between two points of the front.
    places = [at(row) for row in front]
    line = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    line += "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    drawn.append(f'<path class="front" d="{line}" style="fill:none;stroke-width:1.5"/>')
    for row in front:
        x, y = at(row)
        what = " ".join(f"{name}={row[name]}" for name in axes)
        title = f"{what} {row['arm']}: {shown(first, row[first])}, {shown(second, row[second])}"
        drawn.append(
            f'<circle class="front" cx="{x:.1f}" cy="{y:.1f}" r="3">'
            f"<title>{escape(title)}</title></circle>"
        )
    drawn += _names(called(first), called(second))
    names = ["point", *axes, "arm", first, second]
    head = "".join(f"<th>{escape(called(name))}" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(name, row[name]))}" for name in names)
        for row in front[:FRONT_MAX]
    )
    listed = f" The table has the first {FRONT_MAX}." if len(front) > FRONT_MAX else ""
    return [
        f"<h2>Pareto front: {escape(called(first))} against {escape(called(second))}</h2>",
        f"<p>{len(front)} of {len(rows)} simulations are beaten by no other in both.{listed}</p>",
        _svg(drawn),
        f"<table><tr>{head}{body}</table>",
    ]


def _svg(drawn: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>'


def _ground() -> str:
    wide, tall = RIGHT - LEFT, BOTTOM - TOP
    return f'<rect class="ground" x="{LEFT}" y="{TOP}" width="{wide}" height="{tall}"/>'


def _names(across: str, up: str) -> list[str]:
    """What the two axes are."""
    return [_text((LEFT + RIGHT) / 2, HEIGHT - 6, across), _text(LEFT - 6, TOP - 8, up, "end")]


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
