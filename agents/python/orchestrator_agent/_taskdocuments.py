"""The documents of delegated work, as types for checkers. They stand on the line like this."""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict

__all__ = ["Artifact", "TaskContext", "TaskError", "TaskMetadata", "TaskRequest", "TaskRouting", "TaskTrace"]


class TaskContext(TypedDict, total=False):
    """What delegated work belongs to."""

    conversationId: str
    parentTaskId: str
    user: str
    timestamp: str
    priority: str  # low, normal, high or urgent


class TaskRouting(TypedDict, total=False):
    """The way of delegated work."""

    source: str  # who asks, as the orchestrator says
    target: str  # who is asked
    delegationChain: List[str]  # who has had it in hand


class TaskTrace(TypedDict, total=False):
    """The trace that delegated work belongs to."""

    traceId: str
    spanId: str
    baggage: Dict[str, Any]  # 16 KiB at most


class _TaskRequest(TypedDict):
    id: str
    type: str
    payload: Dict[str, Any]


class TaskRequest(_TaskRequest, total=False):
    """Work that is delegated."""

    context: TaskContext
    routing: TaskRouting
    observability: TaskTrace


class _TaskError(TypedDict):
    code: str
    message: str
    recoverable: bool


class TaskError(_TaskError, total=False):
    """Why delegated work came to nothing."""

    details: Dict[str, Any]


class TaskMetadata(TypedDict, total=False):
    """How the work went."""

    startedAt: str
    completedAt: str
    duration_ms: int
    agent: str  # who did it
    retryCount: int


class _Artifact(TypedDict):
    name: str
    type: str  # a MIME type


class Artifact(_Artifact, total=False):
    """Something that was made. One that is elsewhere has a ref, and need not have its content here."""

    content: str
    ref: str
