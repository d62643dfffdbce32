"""Throughput and latency against population, as an SVG that needs nothing but a browser.

`python -m benchmarks.plot RESULTS.json PLOT.svg`. It knows the growth benchmark's result; both axes are logarithmic,
because what is asked is whether a line stays level while the population grows a hundredfold.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 880, 360
LEFT, TOP, PANEL, BOTTOM = 70, 50, 330, 290
SPACE = 110
COLOURS = ("#1b6ca8", "#c4572f", "#4a8a3c", "#7a5195")


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    spread: Sequence[tuple[float, float]] = ()
    """(lowest, highest) of each point."""


def growth_svg(result: Mapping[str, Any]) -> str:
    """The plot of one run of `benchmarks.growth`."""
    rows = [(float(population), row) for population, row in result["by_population"].items()]

    def rate(name: str, field: str) -> Line:
        points = [(population, row[field]["median"]) for population, row in rows]
        return Line(name, points, [(row[field]["min"], row[field]["max"]) for _, row in rows])

    def latency(name: str, field: str) -> Line:
        return Line(name, [(population, row["latency"][field]) for population, row in rows])

    rates = [rate("wakes", "wakes_per_s"), rate("start and park", "starts_per_s")]
    waits = [latency("p50", "p50_ms"), latency("p90", "p90_ms"), latency("p99", "p99_ms")]
    load = ", ".join(f"{each:g}" for each in result["machine"]["load"])
    below = f"{result['machine']['cores']} cores, appendfsync always, load average {load} when the run ended"
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_panel(LEFT, "a second", rates),
        *_panel(LEFT + PANEL + SPACE, "publish to committed effect, ms", waits),
        f'<text x="{LEFT}" y="{HEIGHT - 12}" fill="#666">{escape(below)}</text>',
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def _panel(left: int, title: str, lines: Sequence[Line]) -> list[str]:
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points] + [y for line in lines for pair in line.spread for y in pair]
    across = _scale(xs, left, left + PANEL)
    up = _scale(ys, BOTTOM, TOP)
    out = [
        f'<text x="{left}" y="{TOP - 22}" font-size="14">{escape(title)}</text>',
        f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{BOTTOM - TOP}" fill="none" stroke="#999"/>',
        f'<text x="{left + PANEL / 2}" y="{BOTTOM + 34}" text-anchor="middle">instances waiting</text>',
    ]
    out += [
        f'<text x="{across(x):.1f}" y="{BOTTOM + 16}" text-anchor="middle">{x:,.0f}</text>' for x in sorted(set(xs))
    ]
    for y in _ticks(min(ys), max(ys)):
        at = up(y)
        out.append(f'<line x1="{left}" x2="{left + PANEL}" y1="{at:.1f}" y2="{at:.1f}" stroke="#eee"/>')
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{y:,g}</text>')
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line.points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>' for x, y in line.points]
        for (x, _), (low, high) in zip(line.points, line.spread, strict=False):
            ends = f'x1="{across(x):.1f}" x2="{across(x):.1f}" y1="{up(low):.1f}" y2="{up(high):.1f}"'
            out.append(f'<line {ends} stroke="{colour}"/>')
        out.append(f'<text x="{left + 8 + 110 * number}" y="{TOP - 6}" fill="{colour}">{escape(line.name)}</text>')
    return out


def _scale(values: Sequence[float], begin: float, end: float) -> Callable[[float], float]:
    """Logarithmic, with a margin, so that a level line does not lie on the frame."""
    low, high = math.log10(min(values)) - 0.15, math.log10(max(values)) + 0.15
    return lambda value: begin + (math.log10(value) - low) / (high - low) * (end - begin)


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, within the frame."""
    found = []
    for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1):
        found += [step * 10.0**power for step in (1, 2, 5)]
    return [tick for tick in found if low / 1.4 <= tick <= high * 1.4]


def main() -> None:
    results, svg = (Path(argument) for argument in sys.argv[1:3])
    svg.write_text(growth_svg(json.loads(results.read_text(encoding="utf-8"))["growth"]), encoding="utf-8")


if __name__ == "__main__":
    main()
