"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

__all__ = [
    "AgentError", "Cancelled", "Closed", "Ended", "Failed", "Fatal", "Fault", "Incomplete", "Rejected", "Refused",
    "Replaced", "Shutdown", "Stopped", "Torn", "Unanswered", "Unasked", "Undelivered", "Unfinished",
    "Unreviewed", "Unsaid", "Withdrawn", "WorkCancelled",
]


class AgentError(Exception):
    """All that this package raises by itself."""


class Refused(AgentError):
    """The orchestrator's no: a code for programs, a message for people, and details.

    The codes are INVALID_REQUEST, INVALID_MESSAGE_TYPE, UNAUTHORIZED, NOT_FOUND, TIMEOUT and
    INTERNAL_ERROR. What has none of its own is told apart by the reason.
    """

    def __init__(self, code: str, message: str, details: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.details: Dict[str, Any] = details or {}

    @property
    def reason(self) -> str:
        """What the details give as a reason, such as rate_limited or wrong_state; "" for none."""
        reason = self.details.get("reason")
        return reason if isinstance(reason, str) else ""


class Undelivered(Refused):
    """A message of a session was not delivered, and why."""

    def __str__(self) -> str:
        refusal = f"{self.message} ({self.code})"
        if self.retry_count > 0:
            return f"not delivered after {self.retry_count + 1} attempts: {refusal}"
        return "not delivered: " + refusal

    @property
    def error_type(self) -> str:
        """timeout, rejected or malformed."""
        kind = self.details.get("error_type")
        return kind if isinstance(kind, str) else ""

    @property
    def retry_count(self) -> int:
        """How often it was tried again."""
        count = self.details.get("retry_count")
        return count if isinstance(count, int) else 0

    @property
    def scope(self) -> Optional[List[str]]:
        """What may be changed for a task; None when that is not why it was refused."""
        scope = self.details.get("scope")
        return scope if isinstance(scope, list) and all(isinstance(s, str) for s in scope) else None


class Unsaid(AgentError):
    """It cannot be said, so it was not: the orchestrator would pass over it in silence."""


class Torn(AgentError):
    """Writing to the orchestrator failed. Nothing is written after that: half a line may be there."""


class Stopped(AgentError):
    """Work has to stop. A handler that raises it gives its task up."""


class Cancelled(Stopped):
    """The task was cancelled, and why."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"the task was cancelled: {reason}")
        self.reason = reason


class Replaced(Stopped):
    """The task was assigned again, and the new assignment counts."""

    def __init__(self) -> None:
        super().__init__("the task was assigned again")


class Shutdown(Stopped):
    """The agent is to shut down."""

    def __init__(self) -> None:
        super().__init__("the agent is to shut down")


class Closed(Stopped, EOFError):
    """The orchestrator has closed the stream: it says nothing more, and answers nothing."""

    def __init__(self, message: str = "the orchestrator has closed the stream") -> None:
        super().__init__(message)


class Unasked(Closed):
    """Not asked, because the stream had ended. It has no effect."""

    def __init__(self) -> None:
        super().__init__("not asked: the orchestrator has closed the stream")


class Unanswered(Closed):
    """Asked, but there will be no answer. It may have been done."""

    def __init__(self) -> None:
        super().__init__("asked, but there will be no answer: the orchestrator has closed the stream")


class Unfinished(AgentError):
    """A role is over, and some of its tasks were given up: an agent that ends well in spite of that
    would say that they are done."""

    def __init__(self, count: int, cause: BaseException) -> None:
        super().__init__(f"{count} of the tasks left unfinished: {cause}")
        self.count = count


class Withdrawn(AgentError):
    """A call for help gets no answer: the task went on without."""

    def __init__(self) -> None:
        super().__init__("the question was withdrawn")


class Failed(AgentError):
    """For handlers: the task cannot be done, and why. Any other exception says the same; this one is
    not shown on stderr with its traceback, and a developer may say with it what was done all the
    same."""

    def __init__(self, message: str, completion: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.completion = completion


class Fatal(AgentError):
    """For those who deal with mail: a message can never be dealt with. The code is for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Fault(AgentError):
    """Why delegated work came to nothing: for the caller that waits for it, and for the skill that raises it.
    The code is for programs, such as INVALID_INPUT or TIMEOUT, and the list is open; recoverable says
    that another try may go well."""

    def __init__(self, code: str, message: str, details: Optional[Dict[str, Any]] = None, recoverable: bool = False) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.details: Dict[str, Any] = {} if details is None else details
        self.recoverable = recoverable


class WorkCancelled(AgentError):
    """Work that the agent has delegated was cancelled, and why, if a reason was given."""

    def __init__(self, task_id: str, fault: Optional[Fault] = None, reason: str = "") -> None:
        why = str(fault) if fault else reason
        super().__init__(f"task {task_id} was cancelled" + (f": {why}" if why else ""))
        self.task_id = task_id
        self.fault = fault


class Incomplete(AgentError):
    """The developer has not completed the task."""

    def __init__(self) -> None:
        super().__init__("the developer has not completed it")


class Rejected(AgentError):
    """The reviewer has rejected it: it has to be planned anew."""

    def __init__(self) -> None:
        super().__init__("the reviewer has rejected it: it has to be planned anew")


class Unreviewed(AgentError):
    """The reviewer cannot review it, and why."""


class Ended(AgentError):
    """A task has come to its end, or is in the hands of people, without what the architect waits for.
    The state is "" when it cannot be known."""

    def __init__(self, task_id: str, state: str, why: str) -> None:
        super().__init__(f"task {task_id} is {state}: {why}" if state else f"task {task_id}: {why}")
        self.task_id = task_id
        self.state = state
        self.why = why
