"""The log file of a command: kept only after a crash."""

import pytest

from dlctl.cli.log_file import log_file
from dlctl.errors import ConfigError


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        pytest.param(RuntimeError("broken"), True, id="crash"),
        pytest.param(ConfigError("wrong"), False, id="wrong setting"),
        pytest.param(BrokenPipeError(), False, id="nobody reads our output any more"),
    ],
)
def test_log_is_kept_only_after_a_crash(error: Exception, kept: bool) -> None:
    with pytest.raises(type(error)), log_file() as log:
        raise error
    assert log.path.exists() is kept
    log.path.unlink(missing_ok=True)
