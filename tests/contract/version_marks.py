"""Differences of older real servers from 1.36, as marks of the tests that fail there.

Such a test must fail on them. Changed messages are normalized instead.
"""

from typing import Final

import pytest

STREAMED_LISTS: Final = pytest.mark.since(34, "lists are streamed only where WatchList is on")
UPDATE_OF_NOTHING: Final = pytest.mark.since(
    34, "an update of what is gone is a conflict of UIDs, as if it might create"
)
BAD_OPTIONS_OF_A_DELETION: Final = pytest.mark.since(
    35, "they are taken for a failure of the server"
)
VALUE_BEHIND_A_RULE: Final = pytest.mark.since(
    35, "what breaks a rule is shown by its type, from which its value cannot be told"
)
FORMATS_OF_NUMBERS: Final = pytest.mark.since(
    36, "numbers are not held to their format, only to their type"
)
NOTHING_FOR_REPLICAS: Final = pytest.mark.since(
    34, "a maximum of no replicas is taken for a wrong one, not for none"
)
REPLACED_BY_A_NUMBER: Final = pytest.mark.since(
    35, "a JSON Patch that replaces the whole object with a number changes nothing"
)
RESOURCES_OF_SUSPENDED_JOBS: Final = pytest.mark.since(
    36, "resources and places of suspended jobs are mutable only before they start"
)
ANOTHER_START: Final = pytest.mark.since(36, "another start of a job is taken for none")
FIELDS_BELOW_ITEMS: Final = pytest.mark.since(
    36, "a field of a wrong type below items of a schema is named by the items alone"
)
