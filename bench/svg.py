"""Small charts as SVG, readable on light and dark pages. Pure."""

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

import attrs

_COLORS: Final = ("#3b82c4", "#d9822b", "#4a9d5b", "#a35bb5")
_GREY: Final = "#888888"
_WIDTH: Final = 640
_LEFT: Final = 150
_RIGHT: Final = 620
_ROW: Final = 18
_TOP: Final = 44
_PLOT_HEIGHT: Final = 200


@attrs.frozen
class Series:
    """One line of a chart, or the bars of one colour; a value may be unknown."""

    name: str
    values: Sequence[float | None]


def bars(title: str, labels: Sequence[str], series: Sequence[Series], *, mark: float) -> str:
    """Return horizontal bars, grouped by label, with a line at a value to compare with."""
    known = [value for one in series for value in one.values if value is not None]
    scale = (_RIGHT - _LEFT - 40) / max([mark, *known])
    parts, y = [*_legend(title, series)], _TOP
    for index, label in enumerate(labels):
        parts.append(_text(_LEFT - 8, y + _ROW * len(series) / 2 + 4, label, anchor="end"))
        for one, color in zip(series, _COLORS, strict=False):
            value = one.values[index]
            if value is not None:
                width = value * scale
                parts.append(_rect(_LEFT, y, width, _ROW - 3, color))
                parts.append(_text(_LEFT + width + 5, y + 12, f"{value:.2f}"))
            y += _ROW
        y += 8
    parts.append(_line([(_LEFT + mark * scale, _TOP - 6), (_LEFT + mark * scale, y)], _GREY, "4 3"))
    return _svg(parts, y + 8)


def lines(
    title: str, axis: str, xs: Sequence[float], series: Sequence[Series], *, log_x: bool = False
) -> str:
    """Return lines over a common axis; values start at zero, and the axis may be logarithmic."""
    places = [math.log10(x) for x in xs] if log_x else list(xs)
    low, span = min(places), max(places) - min(places) or 1.0
    known = [value for one in series for value in one.values if value is not None]
    top = _round_up(max(known, default=1.0))
    bottom = _TOP + _PLOT_HEIGHT

    def point(index: int, value: float) -> tuple[float, float]:
        x = 60 + (places[index] - low) / span * (_RIGHT - 60)
        return x, bottom - value / top * _PLOT_HEIGHT

    parts = [*_legend(title, series)]
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * _PLOT_HEIGHT
        parts.append(_line([(60, y), (_RIGHT, y)], _GREY, "1 3"))
        parts.append(_text(54, y + 4, f"{share * top:g}", anchor="end"))
    parts += [
        _text(point(index, 0)[0], bottom + 16, f"{xs[index]:,.0f}", anchor="middle")
        for index in _ticks(len(xs))
    ]
    parts.append(_text((60 + _RIGHT) / 2, bottom + 34, axis, anchor="middle"))
    for one, color in zip(series, _COLORS, strict=False):
        drawn = [point(i, value) for i, value in enumerate(one.values) if value is not None]
        parts.append(_line(drawn, color))
        if len(drawn) <= 20:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in drawn]
    return _svg(parts, bottom + 44)


def _ticks(count: int) -> Sequence[int]:
    """Return at most six of the indexes, the first and the last among them."""
    if count <= 6:
        return range(count)
    return sorted({round(index * (count - 1) / 5) for index in range(6)})


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 and so on."""
    decade = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= value)


def _legend(title: str, series: Sequence[Series]) -> list[str]:
    parts, x = [_text(8, 16, title, weight="bold")], 8.0
    for one, color in zip(series, _COLORS, strict=False):
        parts += [_rect(x, 24, 10, 10, color), _text(x + 14, 33, one.name)]
        x += 24 + 6.2 * len(one.name)
    return parts


def _svg(parts: Sequence[str], height: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'width="{_WIDTH}" height="{height:.0f}" font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def _rect(x: float, y: float, width: float, height: float, color: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}"'
    return f'<rect {place} width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" fill="{_GREY}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _line(points: Sequence[tuple[float, float]], color: str, dashes: str = "none") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f'stroke="{color}" stroke-width="2" stroke-dasharray="{dashes}"'
    return f'<polyline points="{path}" fill="none" {style}/>'
