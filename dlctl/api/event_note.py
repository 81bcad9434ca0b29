"""Events as plans carry them: not yet recorded, without the object that they are about."""

import attrs


@attrs.frozen
class EventNote:
    """An event on the job, to be recorded once its cause is persisted."""

    type: str
    reason: str
    message: str
