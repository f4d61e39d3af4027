"""Responses about delegated work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, cast

from .documents import Option
from .errors import AgentError, Fault, WorkCancelled
from .lines import without_doubled
from .taskdocuments import Artifact, TaskError, TaskMetadata
from .taskshape import FINAL, response_problem, says

__all__ = ["Response", "fault_in", "options_in", "read_response", "response_of_fault"]

#: Texts for a response that gives no reason, or no question.
UNEXPLAINED = "The task failed, and its agent gave no reason"
UNASKED = "The agent needs input to continue, and did not specify it"


@dataclass(frozen=True)
class Response:
    """A status or the outcome of delegated work."""

    id: str  #: of the task
    status: str  #: pending, in_progress, input_required, completed, failed or cancelled
    result: Any = None
    error: Optional[TaskError] = None  #: why it failed, or was cancelled
    metadata: TaskMetadata = field(default_factory=lambda: TaskMetadata())
    artifacts: List[Artifact] = field(default_factory=list)
    message: str = ""  #: free text; may be ""
    question: str = ""  #: the question, if input is required
    options: List[Option] = field(default_factory=list)  #: the allowed answers; if empty, any
    document: Mapping[str, Any] = field(default_factory=dict)  #: the whole response, as it came

    @property
    def final(self) -> bool:
        """Whether this is the last response."""
        return self.status in FINAL

    def failure(self) -> Optional[AgentError]:
        """Returns the error of failed or cancelled work, a Fault or a WorkCancelled, otherwise
        None."""
        fault = fault_in(self.error) if self.error else None
        return WorkCancelled(self.id, fault, self.message) if self.status == "cancelled" else fault


def fault_in(error: TaskError) -> Fault:
    """Returns the error of a response as an exception."""
    return Fault(error["code"], error["message"], error.get("details"), error["recoverable"])


def response_of_fault(fault: Fault) -> Dict[str, Any]:
    """Returns the members of a response that reports a fault."""
    error = {
        "code": fault.code if says(fault.code) else "INTERNAL_ERROR",
        "message": fault.message if says(fault.message) else "it failed without a word",
        "recoverable": fault.recoverable,
    }
    return {"error": {**error, "details": fault.details} if fault.details else error}


def read_response(message: Dict[str, Any]) -> Optional[Response]:
    """Reads a response as the orchestrator does. Returns None if it is invalid."""
    if response_problem(message):
        return None
    document = without_doubled(message)
    status = document["status"]
    text = document.get("message")
    asks = status == "input_required"
    return Response(
        id=document["id"], status=status, result=document.get("result"), error=_error_of(document),
        metadata=cast(TaskMetadata, document.get("metadata") or {}), artifacts=document.get("artifacts") or [],
        message=text if isinstance(text, str) else "", question=_question_of(document) if asks else "",
        options=_options_of(document) if asks else [], document=document,
    )


def _error_of(document: Mapping[str, Any]) -> Optional[TaskError]:
    """Returns the error of failed or cancelled work, otherwise None. Missing members are filled
    in."""
    given = document.get("error")
    if document["status"] not in ("failed", "cancelled") or given is None and document["status"] == "cancelled":
        return None
    said = given or {}
    error: TaskError = {
        "code": said.get("code") if says(said.get("code")) else "INTERNAL_ERROR",
        "message": said.get("message") if says(said.get("message")) else UNEXPLAINED,
        "recoverable": bool(said.get("recoverable")),
    }
    if said.get("details") is not None:
        error["details"] = said["details"]
    return error


def _question_of(document: Mapping[str, Any]) -> str:
    """Returns the question of a response: its first text that is not blank."""
    given, error = document.get("input"), document.get("error") or {}
    asked = given.get("question") if isinstance(given, dict) else None
    return next((text for text in (document.get("message"), asked, error.get("message")) if says(text)), UNASKED)


def _options_of(document: Mapping[str, Any]) -> List[Option]:
    given = document.get("input")
    return options_in(given.get("options") if isinstance(given, dict) else None) or []


def options_in(given: Any) -> Optional[List[Option]]:
    """Returns the options of a question: texts, or objects with a value and an optional label.
    Returns None if an option is invalid or two have the same value."""
    if not isinstance(given, (list, tuple)):
        return None
    alike = all(isinstance(each, str) for each in given) or all(isinstance(each, Mapping) for each in given)
    options = [_option(each) for each in given] if alike else [None]
    found = [each for each in options if each is not None]
    if len(found) < len(options) or len({each["value"] for each in found}) < len(found):
        return None
    return found


def _option(given: Any) -> Optional[Option]:
    said = {"value": given} if isinstance(given, str) else given
    value, label = said.get("value"), said.get("label")
    if not says(value) or not isinstance(label, (str, type(None))):
        return None
    return {"label": label or value, "value": value}
