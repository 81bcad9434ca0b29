"""The CEL environment for validation rules of custom resources: functions and expressions.

Expressions are checked without the schema's types, so a misspelt field is found when the rule runs,
not when it is compiled. Everything that knows the CEL library is here.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import attrs
import re2
from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings


class CelError(Exception):
    """An expression does not compile, or its evaluation failed; the message says why."""


def _is_sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(items))


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    # Otherwise the library writes errors to stderr.
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"Illegal regex: {error.args[0].decode()}") from error


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [match[0] for match in _compiled(pattern).finditer(text)]


def _functions() -> list[Any]:
    any_, list_, text = cel.Type.DYN, cel.Type.LIST, cel.Type.STRING

    def member(name: str, result: Any, parameters: list[Any], impl: Any) -> Any:
        kind = parameters[0].name().lower().partition("<")[0]
        overload = cel.Overload(f"{kind}_{name}", result, parameters, is_member=True, impl=impl)
        return cel.FunctionDecl(name, [overload])

    # The list and regular expression functions that Kubernetes adds to CEL.
    return [
        member("isSorted", cel.Type.BOOL, [list_], _is_sorted),
        member("sum", any_, [list_], sum),
        member("min", any_, [list_], min),
        member("max", any_, [list_], max),
        member("find", text, [text, text], _find),
        member("findAll", list_, [text, text], _find_all),
    ]


@lru_cache(maxsize=1)
def _environment() -> Any:
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, _OLD: cel.Type.LIST},
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_math.ExtMath(),
            ext_bindings.ExtBindings(),
        ],
        functions=_functions(),
    )


# The variable with the old value, if there is one, for rules that take it as an optional.
_OLD: Final = "oldSelves"
_OPTIONAL: Final = f"{_OLD}.size() == 0 ? optional.none() : optional.of({_OLD}[0])"
_STRINGS: Final = re.compile(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"")
_IDENTIFIER: Final = re.compile(r"\b[A-Za-z_]\w*")
# The last field is not read.
_PRESENCE: Final = re.compile(r"\bhas\(([\w.]+)\.\w+\)")


@attrs.frozen
class Expression:
    """A compiled expression over ``self`` and ``oldSelf``."""

    # The identifiers in the source, without fields of which it checks only whether they are there.
    names: frozenset[str]
    returns: str
    _program: Any

    @classmethod
    def compile(cls, source: str, *, optional_old: bool = False) -> "Expression":
        """Compile the source; raise CelError if it is invalid."""
        text = f"cel.bind(oldSelf, {_OPTIONAL}, ({source}\n))" if optional_old else source
        try:
            program = _environment().compile(text)
        except RuntimeError as error:
            message = str(error).removeprefix("INVALID_ARGUMENT: ")
            raise CelError(message.removesuffix(" [INVALID_ARGUMENT]")) from error
        names = frozenset(_IDENTIFIER.findall(_PRESENCE.sub(r"\1", _STRINGS.sub("''", source))))
        return cls(names, program.return_type().name(), program)

    @property
    def uses_old(self) -> bool:
        return "oldSelf" in self.names

    def value(self, self_: Any, old: tuple[Any, ...]) -> Any:
        """Evaluate; ``old`` holds the old value, or nothing. Raise CelError if that fails."""
        data: Mapping[str, Any] = {"self": self_, _OLD: list(old)} | (
            {"oldSelf": old[0]} if old else {}
        )
        try:
            result = self._program.eval(data=data)
        except RuntimeError as error:
            # The library bounds the steps of loops.
            raise CelError("operation cancelled: actual cost limit exceeded") from error
        if result.type() == cel.Type.ERROR:
            raise CelError(_runtime_message(str(result.value())))
        return result.plain_value()


_RUNTIME: Final = (
    (re.compile(r'.*Key not found in map : "(.*)"$', re.DOTALL), r"no such key: \1"),
    (re.compile(r".*Index error: index=(-?\d+).*", re.DOTALL), r"index out of bounds: \1"),
    (re.compile(r".*(divide by zero|division by zero).*", re.DOTALL), "division by zero"),
    (re.compile(r".*No matching overloads found.*", re.DOTALL), "no such overload"),
)


def _runtime_message(message: str) -> str:
    # The messages of cel-go, which users of kube-apiserver know.
    for pattern, words in _RUNTIME:
        if pattern.match(message):
            return pattern.sub(words, message)
    return message.partition(": ")[2] or message
