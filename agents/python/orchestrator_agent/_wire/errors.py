"""The exceptions of the package."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

__all__ = [
    "AgentError", "Cancelled", "Closed", "Ended", "Failed", "Fatal", "Fault", "Incomplete", "Rejected", "Refused",
    "Replaced", "Shutdown", "Stopped", "Torn", "Unanswered", "Unasked", "Undelivered", "Unfinished",
    "Unreviewed", "Unsaid", "Withdrawn", "WorkCancelled",
]


#: The longest time in seconds that a refusal may name. A longer one is not believed.
MAX_RETRY_AFTER = 48 * 3600


class AgentError(Exception):
    """The base class of the package's exceptions."""


class Refused(AgentError):
    """The orchestrator refused a request. The code is for programs, the message for people.

    The codes are INVALID_REQUEST, INVALID_MESSAGE_TYPE, UNAUTHORIZED, NOT_FOUND, TIMEOUT and
    INTERNAL_ERROR. Refusals that share a code differ in their reason.
    """

    def __init__(self, code: str, message: str, details: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.details: Dict[str, Any] = details or {}

    @property
    def reason(self) -> str:
        """The reason in the details, such as rate_limited or wrong_state, or ""."""
        reason = self.details.get("reason")
        return reason if isinstance(reason, str) else ""

    @property
    def retry_after(self) -> float:
        """The seconds to wait before the same is sent again; 0 if the refusal does not say. A refusal
        with the reason rate_limited has it."""
        after = self.details.get("retry_after_ms")
        if isinstance(after, bool) or not isinstance(after, (int, float)) or not 0 <= after <= MAX_RETRY_AFTER * 1000:
            return 0.0
        return after / 1000


class Undelivered(Refused):
    """A session message was not delivered."""

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
        """The number of retries."""
        count = self.details.get("retry_count")
        return count if isinstance(count, int) else 0

    @property
    def scope(self) -> Optional[List[str]]:
        """The patterns of the files that a task may change; None if the message was refused for
        another reason."""
        scope = self.details.get("scope")
        return scope if isinstance(scope, list) and all(isinstance(s, str) for s in scope) else None


class Unsaid(AgentError):
    """The message is invalid, so it was not sent."""


class Torn(AgentError):
    """Writing to the orchestrator failed. Nothing more is written, because half a line may have
    been sent."""


class Stopped(AgentError):
    """Work has to stop. A handler that does not catch it gives its task up."""


class Cancelled(Stopped):
    """The task was cancelled."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"the task was cancelled: {reason}")
        self.reason = reason


class Replaced(Stopped):
    """The task was assigned again. Only the new assignment counts."""

    def __init__(self) -> None:
        super().__init__("the task was assigned again")


class Shutdown(Stopped):
    """The agent has to shut down."""

    def __init__(self) -> None:
        super().__init__("the agent is to shut down")


class Closed(Stopped, EOFError):
    """The orchestrator has closed the stream. No more notices or answers arrive."""

    def __init__(self, message: str = "the orchestrator has closed the stream") -> None:
        super().__init__(message)


class Unasked(Closed):
    """The request was not sent, because the stream had ended. It has no effect."""

    def __init__(self) -> None:
        super().__init__("not asked: the orchestrator has closed the stream")


class Unanswered(Closed):
    """The request was sent, but the stream has ended. It may have been carried out."""

    def __init__(self) -> None:
        super().__init__("asked, but there will be no answer: the orchestrator has closed the stream")


class Unfinished(AgentError):
    """A role has ended and has given up some of its tasks. The agent must exit with a failure,
    because a successful exit may complete them."""

    def __init__(self, count: int, cause: BaseException) -> None:
        super().__init__(f"{count} of the tasks left unfinished: {cause}")
        self.count = count


class Withdrawn(AgentError):
    """A question about a task gets no answer: the task went on without it."""

    def __init__(self) -> None:
        super().__init__("the question was withdrawn")


class Failed(AgentError):
    """Raised by a handler if its task cannot be done. Any other exception fails the task, too, but
    Failed prints no traceback. A developer may attach a completion with the work done so far."""

    def __init__(self, message: str, completion: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.completion = completion


class Fatal(AgentError):
    """Raised by a mail function if retrying a message cannot help. The code is for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Fault(AgentError):
    """The error of failed delegated work. A skill can raise it; the delegating agent gets it from
    Delegation.wait. The code is for programs, such as INVALID_INPUT or TIMEOUT; the list is open.
    If recoverable is true, a retry may succeed."""

    def __init__(self, code: str, message: str, details: Optional[Dict[str, Any]] = None, recoverable: bool = False) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.details: Dict[str, Any] = {} if details is None else details
        self.recoverable = recoverable


class WorkCancelled(AgentError):
    """Work that the agent has delegated was cancelled. The fault is the error of the response, if
    it has one."""

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
    """The reviewer has rejected the task, which has to be planned again."""

    def __init__(self) -> None:
        super().__init__("the reviewer has rejected it: it has to be planned anew")


class Unreviewed(AgentError):
    """The reviewer cannot review the task."""


class Ended(AgentError):
    """A task has ended, or waits for a person, without the result that the architect waits for. The
    state is "" if unknown."""

    def __init__(self, task_id: str, state: str, why: str) -> None:
        super().__init__(f"task {task_id} is {state}: {why}" if state else f"task {task_id}: {why}")
        self.task_id = task_id
        self.state = state
        self.why = why
