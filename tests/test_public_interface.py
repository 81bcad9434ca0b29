"""Exported names are public: they are in ``__all__``, typed and documented."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

import dlctl

_PACKAGES: Final = [
    "dlctl",
    *(module.name for module in pkgutil.walk_packages(dlctl.__path__, "dlctl.") if module.ispkg),
]
_REFERENCE: Final = Path(__file__).parents[1] / "docs/reference/python.md"
_EXPORTS: Final = [
    (package, name)
    for package in _PACKAGES
    for name in getattr(importlib.import_module(package), "__all__", ())
]


@pytest.mark.parametrize("package", _PACKAGES)
def test_package_exports_what_it_names_and_nothing_else(package: str) -> None:
    module = importlib.import_module(package)
    exported: Any = getattr(module, "__all__", ())
    assert exported == tuple(sorted(exported))
    # Some are imported on first use.
    assert all(hasattr(module, name) for name in exported)
    assert set(exported) == set(_public(module))


@pytest.mark.parametrize(("package", "name"), _EXPORTS)
def test_export_has_a_docstring_of_its_own(package: str, name: str) -> None:
    export = getattr(importlib.import_module(package), name)
    assert "__doc__" in vars(export) or isinstance(export, FunctionType)
    assert inspect.getdoc(export)


def test_reference_has_every_export_and_nothing_else() -> None:
    shown = re.findall(r"^::: (\S+)$", _REFERENCE.read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(f"{package}.{name}" for package, name in _EXPORTS)


@pytest.mark.parametrize(("package", "name"), _EXPORTS)
def test_export_is_typed(package: str, name: str) -> None:
    export = getattr(importlib.import_module(package), name)
    untyped = [
        f"{function.__qualname__}: {part}"
        for function in _functions(export)
        for part in _untyped(function)
    ]
    assert untyped == []


def test_types_are_published() -> None:
    assert files("dlctl").joinpath("py.typed").is_file()


def _public(module: ModuleType) -> Iterator[str]:
    """Yield the names of what is defined in dlctl, by the module or by one that it imports."""
    for name, value in vars(module).items():
        ours = getattr(value, "__module__", module.__name__).startswith("dlctl")
        if ours and not name.startswith("_") and not inspect.ismodule(value):
            yield name


def _functions(export: Any) -> Iterator[FunctionType]:
    members = vars(export) if inspect.isclass(export) else {export.__name__: export}
    for name, value in members.items():
        plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(plain, FunctionType) and not name.startswith("__"):
            yield plain


def _untyped(function: FunctionType) -> Iterator[str]:
    signature = inspect.signature(function)
    if signature.return_annotation is signature.empty:
        yield "return"
    for name, parameter in signature.parameters.items():
        if name not in ("self", "cls") and parameter.annotation is parameter.empty:
            yield name
