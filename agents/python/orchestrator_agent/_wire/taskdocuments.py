"""The documents of delegated work, as types for type checkers."""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict

__all__ = ["Artifact", "TaskContext", "TaskError", "TaskMetadata", "TaskRequest", "TaskRouting", "TaskTrace"]


class TaskContext(TypedDict, total=False):
    """The context of delegated work."""

    conversationId: str
    parentTaskId: str
    user: str
    timestamp: str
    priority: str  # low, normal, high or urgent


class TaskRouting(TypedDict, total=False):
    """The routing of delegated work."""

    source: str  # set by the orchestrator
    target: str  # the agent that is asked
    delegationChain: List[str]  # every agent that has had the work, the latest last


class TaskTrace(TypedDict, total=False):
    """The trace of delegated work."""

    traceId: str
    spanId: str
    baggage: Dict[str, Any]  # at most 16 KiB


class _TaskRequest(TypedDict):
    id: str
    type: str
    payload: Dict[str, Any]


class TaskRequest(_TaskRequest, total=False):
    """A request for delegated work."""

    context: TaskContext
    routing: TaskRouting
    observability: TaskTrace


class _TaskError(TypedDict):
    code: str
    message: str
    recoverable: bool


class TaskError(_TaskError, total=False):
    """The error of failed delegated work."""

    details: Dict[str, Any]


class TaskMetadata(TypedDict, total=False):
    """How the work was done."""

    startedAt: str
    completedAt: str
    duration_ms: int
    agent: str  # the agent that did it
    retryCount: int


class _Artifact(TypedDict):
    name: str
    type: str  # a MIME type


class Artifact(_Artifact, total=False):
    """A product of the work. One that is stored elsewhere has a ref and needs no content."""

    content: str
    ref: str
