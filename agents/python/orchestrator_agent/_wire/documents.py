"""The documents in the orchestrator's answers, as types for type checkers.

They are plain dictionaries and may have more keys than these. The classes whose names begin with _
list the keys that are always present.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union

from .taskdocuments import TaskContext, TaskRouting, TaskTrace

__all__ = [
    "Acked", "Agent", "AutoAssigned", "Beat", "Dependency", "Link", "Mail", "MailList", "Match", "Note",
    "Option", "Plan", "Result", "Server", "Task", "UserAnswer",
]

#: A plan or the result of a task: an object, a text, or None.
Result = Union[Dict[str, Any], str, None]
Plan = Result


class _Dependency(TypedDict):
    depends_on_task_id: str


class Dependency(_Dependency, total=False):
    """A dependency of a task to submit."""

    dependency_type: str  # blocks, input or related
    contract_key: str  # for the type input


class Link(Dependency, total=False):
    """A dependency as stored."""

    id: str
    resolved: bool
    resolved_at: Optional[str]
    result: Any  # of the other task, once it is done
    result_left_out: bool  # the result is too long to be shown here


class _Task(TypedDict):
    id: str
    name: str
    type: str
    status: str  # queued, running, completed, failed or cancelled
    state: str


class Task(_Task, total=False):
    """A task. Lists leave out members that can be large; get_task returns them."""

    description: str
    payload: Dict[str, Any]
    requiredRole: Optional[str]
    requiredCapabilities: List[str]
    dependencies: List[str]
    typedDependencies: List[Link]
    waitsFor: List[str]
    resolved_inputs: Dict[str, Any]
    structured_spec: Dict[str, Any]
    requirements: Dict[str, Any]
    targetRepo: str
    acceptanceCriteria: List[str]
    projectId: str
    sessionId: str
    parentTaskId: str
    context: TaskContext
    routing: TaskRouting
    observability: TaskTrace
    plan: Union[Dict[str, Any], str]
    planFeedback: str
    help: Dict[str, Any]
    priority: Union[int, float, str]
    submittedBy: str
    assignedTo: Optional[str]
    progress: float
    message: str
    attempts: int
    result: Any
    error: str
    reason: str
    createdAt: str
    assignedAt: str
    startedAt: str
    endedAt: str


class _Agent(TypedDict):
    id: str
    role: str
    status: str


class Agent(_Agent, total=False):
    """An agent of the team."""

    capabilities: List[str]
    currentTask: Optional[str]


class _Server(TypedDict):
    server_id: str
    name: str
    status: str  # online or offline


class Server(_Server, total=False):
    """An agent with its capabilities."""

    role: str
    remote: bool
    hostname: str
    repos: Dict[str, Any]
    capabilities: Optional[Dict[str, Any]]
    system: Dict[str, Any]
    running_tasks: int
    last_seen: str


class _Match(TypedDict):
    server_id: str
    server_name: str
    score: int  # -1: no match


class Match(_Match, total=False):
    """How well an agent matches a task."""

    status: str
    reasons: List[str]


class _AutoAssigned(TypedDict):
    status: str  # assigned or no_match


class AutoAssigned(_AutoAssigned, total=False):
    """The outcome of auto_assign."""

    server_id: str
    server_name: str
    match_score: int


class _Note(TypedDict):
    id: str
    content: str


class Note(_Note, total=False):
    """A note on a task."""

    task_id: str
    author: str
    urgent: bool
    created_at: str


class Option(TypedDict):
    """An answer that a person may choose."""

    label: str
    value: str


class _UserAnswer(TypedDict):
    answer: str


class UserAnswer(_UserAnswer, total=False):
    """The answer of a person."""

    metadata: Dict[str, Any]


class _Mail(TypedDict):
    seq: int
    from_actor: str
    to_actor: str
    topic: str
    payload: Dict[str, Any]
    created_at: str


class Mail(_Mail, total=False):
    """A message from one actor to another."""

    reply_to: Optional[int]
    duplicate: bool  # it was already stored when it was sent
    warnings: List[str]


class MailList(TypedDict):
    """A page of mail."""

    actor: str
    messages: List[Mail]
    cursor: int
    more: bool


class Acked(TypedDict):
    """How far mail is acknowledged."""

    actor: str
    cursor: int


class Beat(TypedDict, total=False):
    """The answer to a heartbeat."""

    actor: str
    last_seen: str
    heartbeat_ms: int
