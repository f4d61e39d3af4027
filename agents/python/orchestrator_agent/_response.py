"""What is said of work that was delegated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, cast

from ._documents import Option
from ._errors import AgentError, Fault, WorkCancelled
from ._lines import without_doubled
from ._taskdocuments import Artifact, TaskError, TaskMetadata
from ._taskshape import FINAL, response_problem, says

__all__ = ["Response", "fault_in", "options_in", "read_response", "response_of_fault"]

#: What stands where it is not said why something failed, or what is asked.
UNEXPLAINED = "The task failed, and its agent does not say why"
UNASKED = "The agent needs input to go on, and does not say which"


@dataclass(frozen=True)
class Response:
    """How work that was delegated stands, or what came of it."""

    id: str  #: of the task
    status: str  #: pending, in_progress, input_required, completed, failed or cancelled
    result: Any = None
    error: Optional[TaskError] = None  #: why it failed, or was cancelled
    metadata: TaskMetadata = field(default_factory=lambda: TaskMetadata())
    artifacts: List[Artifact] = field(default_factory=list)
    message: str = ""  #: what is said with it in words
    question: str = ""  #: what is asked, where input is required
    options: List[Option] = field(default_factory=list)  #: the answers that are allowed; with none any will do
    document: Mapping[str, Any] = field(default_factory=dict)  #: all of it, as it came

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self.status in FINAL

    def failure(self) -> Optional[AgentError]:
        """Why the work came to nothing: Fault, or WorkCancelled. None as long as it goes on, and when it
        is completed."""
        fault = fault_in(self.error) if self.error else None
        return WorkCancelled(self.id, fault, self.message) if self.status == "cancelled" else fault


def fault_in(error: TaskError) -> Fault:
    """An error of a response, to be raised."""
    return Fault(error["code"], error["message"], error.get("details"), error["recoverable"])


def response_of_fault(fault: Fault) -> Dict[str, Any]:
    """What goes into the response of work that failed."""
    error = {
        "code": fault.code if says(fault.code) else "INTERNAL_ERROR",
        "message": fault.message if says(fault.message) else "it failed without a word",
        "recoverable": fault.recoverable,
    }
    return {"error": {**error, "details": fault.details} if fault.details else error}


def read_response(message: Dict[str, Any]) -> Optional[Response]:
    """Reads a response as the orchestrator does; None when it makes no sense."""
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
    """Why it failed, or was cancelled, with what is missing filled in: a failure is none the less one."""
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
    """The first that says something."""
    given, error = document.get("input"), document.get("error") or {}
    asked = given.get("question") if isinstance(given, dict) else None
    return next((text for text in (document.get("message"), asked, error.get("message")) if says(text)), UNASKED)


def _options_of(document: Mapping[str, Any]) -> List[Option]:
    given = document.get("input")
    return options_in(given.get("options") if isinstance(given, dict) else None) or []


def options_in(given: Any) -> Optional[List[Option]]:
    """The answers that a question allows: texts, or objects with a value and maybe a label. None when
    something else stands there, or a value twice."""
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
