"""Converts exceptions of pure steps into errors about the object that they processed.

Decoding, planning, rendering and encoding statuses are functions of an object's content. Their
exceptions concern only that object: they are reported on it, and everything else continues.
"""

import enum
import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dlctl.errors import DlctlError, truncated

_STDLIB: Final = sysconfig.get_path("stdlib")
_OWN_PACKAGE: Final = str(Path(__file__).parents[1])
# A message may quote a tenant's input, and ends up in a status and an event.
_MAX_TEXT_CHARS: Final = 300


class Step(enum.StrEnum):
    """The pure steps of a reconcile, as messages and metrics name them."""

    READING = "reading"
    READING_STATUS = "reading the status"
    PLANNING = "planning"
    RENDERING = "rendering"
    WRITING_STATUS = "writing the status"


class FrameworkValueError(TypeError):
    """A framework's method has returned a value that cannot be part of a pod."""

    def __init__(self, message: str, method: Callable[..., Any]) -> None:
        super().__init__(message)
        code = inspect.unwrap(method).__code__
        self.place = (code.co_filename, code.co_firstlineno)


class ContentError(DlctlError):
    """A pure step failed on an object's content; the message names the file and line."""

    def __init__(self, step: Step, error: Exception) -> None:
        text = truncated(str(error), _MAX_TEXT_CHARS)
        super().__init__(f"{step} failed: {type(error).__name__}: {text} ({_place(error)})")
        self.step = step


@contextmanager
def wrap_content_errors(step: Step) -> Iterator[None]:
    """Convert exceptions of a pure step to ContentError; DlctlErrors pass unchanged."""
    try:
        yield
    except DlctlError:
        raise
    except Exception as error:
        raise ContentError(step, error) from error


def _place(error: Exception) -> str:
    """Return the file and line at fault: in the framework's own code, if it is in the traceback.

    The standard library is not at fault when other code calls it.
    """
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, FrameworkValueError):
        frames.append(error.place)
    others = [frame for frame in frames if not _is_library(frame[0])]
    file, line = (others or frames)[-1]
    return f"{'/'.join(Path(file).parts[-3:])}:{line}"


def _is_library(file: str) -> bool:
    installed = "site-packages" in file or "dist-packages" in file
    return file.startswith((_OWN_PACKAGE, "<")) or (file.startswith(_STDLIB) and not installed)
