"""The logger of our HTTP servers."""

import logging
from typing import Final

from aiohttp import web
from aiohttp.http import HttpProcessingError

HTTP_LOGGER: Final = logging.getLogger(__name__)


def _is_fault_of_a_handler(record: logging.LogRecord) -> bool:
    """Return whether a record is of more than a malformed request, which is answered with 400."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


HTTP_LOGGER.addFilter(_is_fault_of_a_handler)
