"""A small table of figures and the goals they are held to."""

from collections.abc import Sequence

import attrs


@attrs.frozen
class Figure:
    """One measured value; ``held`` is None where there is no goal."""

    name: str
    value: str
    goal: str = ""
    held: bool | None = None


def show(title: str, figures: Sequence[Figure]) -> bool:
    """Print the figures and return whether all goals are held."""
    width = max(len(figure.name) for figure in figures)
    print(title)
    for figure in figures:
        result = "" if figure.held is None else "  ok" if figure.held else "  MISSED"
        goal = f"  goal {figure.goal}" if figure.goal else ""
        print(f"  {figure.name:<{width}}  {figure.value:>12}{goal}{result}")
    return all(figure.held is not False for figure in figures)
