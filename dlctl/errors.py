"""The root of dlctl's errors, and those that belong to no layer.

A wait (a quota, a name held by another, a terminating pod) is a return value, not an error.
"""


class DlctlError(Exception):
    """Anything that dlctl itself raises on purpose."""


class ConfigError(DlctlError):
    """A setting is unknown, malformed or contradicts another; the program ends with exit code 2."""


class TerminalError(DlctlError):
    """Trying again without a change from outside cannot help: the key is not requeued."""


class InvalidJobError(TerminalError):
    """A job asks for what cannot be; ``field`` is a path such as ``spec.replicaSpecs[0]``.

    The message names the field and the fix, because it ends up in the job's status and an event.
    """

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
