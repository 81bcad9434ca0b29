"""Named health checks and their report, in the format of Kubernetes' own programs.

A line says whether a check passed, never why not: see the logs for that.
"""

from collections.abc import Callable, Mapping

from aiohttp import web
from multidict import MultiMapping

Checks = Mapping[str, Callable[[], bool]]


def health_response(path: str, checks: Checks, query: MultiMapping[str]) -> web.Response:
    """Run the checks that the query does not exclude; respond 200, or 500 if one failed."""
    excluded = set(query.getall("exclude", ()))
    passed = {name: name in excluded or passes() for name, passes in checks.items()}
    lines = [_line(name, passed[name], name in excluded) for name in checks]
    if unknown := ",".join(f'"{name}"' for name in sorted(excluded - set(checks))):
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
    if not all(passed.values()):
        return web.Response(status=500, text="\n".join([*lines, f"{path} check failed\n"]))
    if "verbose" in query:
        return web.Response(text="\n".join([*lines, f"{path} check passed\n"]))
    return web.Response(text="ok")


def _line(name: str, passed: bool, excluded: bool) -> str:
    if excluded:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if passed else f"[-]{name} failed"
