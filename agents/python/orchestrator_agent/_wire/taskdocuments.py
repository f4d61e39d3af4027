# Code generated from wire/schema; DO NOT EDIT.
"""The documents of delegated work, as types for type checkers."""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict

__all__ = [
    "Artifact", "TaskContext", "TaskError", "TaskMetadata", "TaskRequest", "TaskRouting", "TaskTrace",
]


class TaskContext(TypedDict, total=False):
    """The context of the task."""

    #: The id of the conversation that the task belongs to.
    conversationId: str
    #: The id of the task that this task is part of.
    parentTaskId: str
    #: The user that the task is done for.
    user: str
    #: When the task was requested: an ISO 8601 time, such as 2026-11-20T09:15:00Z. Without a zone
    #: it is UTC.
    timestamp: str
    #: The urgency; normal when it is missing. One of low, normal, high, urgent.
    priority: str


class TaskRouting(TypedDict, total=False):
    """The route of the task."""

    #: The sender, which gets the responses. It is optional: when you ask, it is you, and another
    #: name is refused.
    source: str
    #: The agent that the task is for; any agent with the capability when it is missing.
    target: str
    #: Every agent that has had the task, the latest one last; at most 16 KiB in total. You are
    #: added when you pass the task on. The task never returns to an agent in the list.
    delegationChain: List[str]


class TaskTrace(TypedDict, total=False):
    """The trace that the task belongs to. Pass it on with the work that you delegate."""

    #: The id of the trace. A W3C trace has 32 lower-case hexadecimal digits; any text is accepted.
    traceId: str
    #: The span that the work is part of.
    spanId: str
    #: Values that travel with the trace, at most 16 KiB.
    baggage: Dict[str, Any]


class _TaskRequest(TypedDict):
    #: The id of the task, chosen by the sender. It differs for every task; a UUID is recommended.
    id: str
    #: The type of work: the name of a capability. The types of acts on existing tasks are reserved
    #: (see task-act).
    type: str
    #: The data for the work: any object.
    payload: Dict[str, Any]


class TaskRequest(_TaskRequest, total=False):
    """A request for delegated work."""

    #: The context of the task.
    context: TaskContext
    #: The route of the task.
    routing: TaskRouting
    #: The trace that the task belongs to. Pass it on with the work that you delegate.
    observability: TaskTrace


class _TaskError(TypedDict):
    #: The kind of error, for programs. These codes are in use: INVALID_INPUT,
    #: MISSING_REQUIRED_FIELD, INVALID_FIELD_TYPE, INVALID_FIELD_VALUE, AGENT_NOT_FOUND,
    #: CAPABILITY_NOT_FOUND, AGENT_UNAVAILABLE, AGENT_BUSY, MCP_NOT_CONNECTED, MCP_AUTH_FAILED,
    #: MCP_RATE_LIMITED, MCP_ERROR, COORDINATION_FAILED, TASK_GRAPH_CYCLE, DELEGATION_FAILED,
    #: TIMEOUT, INTERNAL_ERROR, KNOWLEDGE_NOT_FOUND and RATE_LIMITED. Other codes are accepted
    #: unchanged.
    code: str
    #: The error, for people.
    message: str
    #: Whether another try may succeed; false when it is missing.
    recoverable: bool


class TaskError(_TaskError, total=False):
    """Why the task failed. A failed task should have an error. With any other status it is removed;
    cancelled and input_required keep its message."""

    #: Additional data: any object.
    details: Dict[str, Any]


class TaskMetadata(TypedDict, total=False):
    """How the task was executed."""

    #: When the work began: an ISO 8601 time.
    startedAt: str
    #: When the work ended: an ISO 8601 time.
    completedAt: str
    #: The duration of the work, in milliseconds. This key is spelled differently from all other
    #: keys.
    duration_ms: int
    #: The agent that did the work.
    agent: str
    #: The number of retries.
    retryCount: int


class _Artifact(TypedDict):
    #: The name of the artifact, such as a file name.
    name: str
    #: The MIME type, such as text/markdown.
    type: str


class Artifact(_Artifact, total=False):
    """A product of the work."""

    #: The whole content, as text, even if it is JSON. It may be missing if there is a ref.
    content: str
    #: The place of the content, if it is stored elsewhere. sha256: and 64 hexadecimal digits name
    #: content that the orchestrator stores; an agent must not use them. An extension of the
    #: published protocol.
    ref: str
