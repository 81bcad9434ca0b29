"""The one place where an exception of a pure step becomes the fault of the object it was about.

Reading, planning, rendering and writing statuses are functions of what an object contains. Whatever
they raise concerns that object alone: it is reported on the object, and everything else goes on.
"""

import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dlctl.errors import DlctlError

_STDLIB: Final = sysconfig.get_path("stdlib")
_OWN_PACKAGE: Final = str(Path(__file__).parents[1])
# A message may quote what a tenant wrote, and ends up in a status and an event.
_MAX_TEXT_CHARS: Final = 300


class FrameworkValueError(TypeError):
    """A framework's method has returned a value that cannot be part of a pod."""

    def __init__(self, message: str, method: Callable[..., Any]) -> None:
        super().__init__(message)
        code = inspect.unwrap(method).__code__
        self.place = (code.co_filename, code.co_firstlineno)


class ContentError(DlctlError):
    """A pure step failed on an object's content; the message names the file and line."""

    def __init__(self, step: str, error: Exception) -> None:
        text = str(error)
        shown = text if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}..."
        super().__init__(f"{step} failed: {type(error).__name__}: {shown} ({_place(error)})")
        self.step = step


@contextmanager
def wrap_content_errors(step: str) -> Iterator[None]:
    """Raise what a pure step raises as a ContentError; errors of dlctl's own pass unchanged."""
    try:
        yield
    except DlctlError:
        raise
    except Exception as error:
        raise ContentError(step, error) from error


def _place(error: Exception) -> str:
    """Return the file and line at fault: in a framework's own code, if the error went through it.

    The standard library is not at fault where somebody's code has called it.
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
