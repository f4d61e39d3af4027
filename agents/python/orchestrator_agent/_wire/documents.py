# Code generated from wire/schema; DO NOT EDIT.
"""The documents in the orchestrator's answers, as types for type checkers.

They are plain dictionaries and may have more keys than these. The classes whose names begin with _
list the keys that are always present.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union

from .taskdocuments import TaskContext, TaskRouting, TaskTrace

__all__ = [
    "Acked", "Agent", "AutoAssigned", "Beat", "Dependency", "Help", "Link", "Mail", "MailList", "Match", "Note",
    "Option", "PermissionChoice", "Plan", "Result", "SentMail", "Server", "Task", "TaskArtifact", "UserAnswer",
    "Withdrawn",
]

#: A plan or the result of a task: an object, a text, or None.
Result = Union[Dict[str, Any], str, None]
Plan = Result


class _Task(TypedDict):
    #: The id of the task.
    id: str
    #: The name of the task.
    name: str
    #: The kind of task, in words of the submitter.
    type: str
    #: A summary of the state. One of queued, running, completed, failed, cancelled.
    status: str
    #: The state of the task. The last three are final. One of pending, assigned, planning,
    #: plan_review, running, needs_human, in_review, verifying, done, failed, cancelled.
    state: str
    #: The role that the agent must have; null for any role.
    requiredRole: Optional[str]
    #: The capabilities that the agent must have.
    requiredCapabilities: List[str]
    #: Ids of tasks that must be done first.
    dependencies: List[str]
    #: The submitter, such as agent:planner.
    submittedBy: str
    #: The agent that has the task, or had it when it ended; null without an agent.
    assignedTo: Optional[str]
    #: The result; null before the task is done, and in lists.
    result: Any
    #: When the task was submitted.
    createdAt: str


class Task(_Task, total=False):
    """A task in answers. A list leaves out the members that can be large: description, payload,
    structured_spec, requirements, plan, help, context, routing and observability. The result is
    null there."""

    #: The work to do.
    description: str
    #: The payload as it was submitted, digit for digit.
    payload: Dict[str, Any]
    #: The dependencies that are not done yet.
    waitsFor: List[str]
    #: All dependencies of the task, if one of them does not only block.
    typedDependencies: List[Link]
    #: The specification in a form for programs: a task-spec document.
    structured_spec: Dict[str, Any]
    #: The demands of the task on an agent: a requirements document.
    requirements: Dict[str, Any]
    #: The repository that the task is about.
    targetRepo: str
    #: The conditions under which the task counts as done.
    acceptanceCriteria: List[str]
    #: Who changed the name, the description or another text of the task last, such as
    #: agent:planner.
    changedBy: str
    #: The project that the task belongs to.
    projectId: str
    #: The session that the task came from.
    sessionId: str
    #: The task that the submitter was working on.
    parentTaskId: str
    #: The plan of the agent.
    plan: Union[Dict[str, Any], str]
    #: The objections to the plan.
    planFeedback: str
    #: The last question of the agent to a person.
    help: Help
    #: The usage of coding agents for the task, in the answer to get-task.
    used: Dict[str, Any]
    #: When the task may be given to an agent; missing if it may be given to one now.
    after: str
    #: The agent that gets the task again when it can. The task was assigned by hand, and has no
    #: requirements for finding another agent.
    addressee: str
    #: The last partial result that an agent reported, in the answers to get-task and current-task.
    #: The task keeps it when it fails or goes to another agent; the result replaces it.
    output: Any
    #: The artifacts that the agent delivered with the result, without the content, in the answers
    #: to get-task. The task response has the content.
    artifacts: List[Dict[str, Any]]
    #: The commands that must succeed before the task is done, besides the commands of its agent.
    verify: List[List[str]]
    #: How often its verification has failed.
    unverified: int
    #: The task block of the configuration that declares the task.
    block: str
    #: The workspace of the task, if it has one.
    workspace: Dict[str, Any]
    #: How often the task was restarted on a fresh branch.
    restarts: int
    #: The class of the failure, if its agent named one. One of refused, context, limit, budget,
    #: login, stuck, tool.
    failureClass: str
    #: The context of the task request that submitted the task.
    context: TaskContext
    #: The route of the task request.
    routing: TaskRouting
    #: The trace that the task belongs to.
    observability: TaskTrace
    #: The delivered inputs, by contract key, in the answers to get-task and poll-tasks. An input is
    #: null if it has no data.
    resolved_inputs: Dict[str, Any]
    #: The priority as it was given: a number or a word. 1 is the most urgent.
    priority: Union[float, str]
    #: The progress, from 0 to 1; 0 when it is missing.
    progress: float
    #: The message of the last progress report.
    message: str
    #: How often the task was assigned; 0 when it is missing.
    attempts: int
    #: Why the task failed.
    error: str
    #: Why the task was cancelled.
    reason: str
    #: When the task was last assigned.
    assignedAt: str
    #: When the task was last started.
    startedAt: str
    #: When the task ended.
    endedAt: str


class _Help(TypedDict):
    #: The id of the question.
    questionId: str
    #: The question. It is untrusted: escape it before you show it.
    question: str


class Help(_Help, total=False):
    """The last question of the agent to a person."""

    #: Further facts about the question: any value.
    context: Any
    #: The answer of the person.
    answer: str
    #: When the person answered; missing before that.
    answeredAt: str


class _Link(TypedDict):
    #: The id of the dependency.
    id: str
    #: The id of the other task.
    depends_on_task_id: str
    #: blocks: the other task must be done first. input: part of its result is needed as well.
    #: related: for information only.
    dependency_type: str
    #: The part of the result that an input needs; null for any other type.
    contract_key: Optional[str]
    #: Whether the dependency is resolved: it no longer blocks the task.
    resolved: bool
    #: When the dependency was resolved; null before that.
    resolved_at: Optional[str]


class Link(_Link, total=False):
    """A dependency of a task in answers."""

    #: Whether the dependency is resolved when the other task ends, in any state; false when it is
    #: missing.
    soft: bool
    #: The result of the other task, when it is done. It is missing if the author of the dependency
    #: may not read the other task.
    result: Any
    #: Whether the result is left out because a task shows at most 256 KiB of results. To get a part
    #: of it, depend on it as an input.
    result_left_out: bool


class TaskArtifact(TypedDict, total=False):
    """A product of a task. It has one of content, path and ref."""

    #: The name, such as a file name; the path when it is missing.
    name: str
    #: The MIME type, such as text/markdown; text/plain when it is missing.
    type: str
    #: The content, as text.
    content: str
    #: The path of a text file in your working folder, which is read now. Only for a run that the
    #: orchestrator has started.
    path: str
    #: The place of the content, if it is stored elsewhere.
    ref: str


class _Dependency(TypedDict):
    #: The id of the other task.
    depends_on_task_id: str


class Dependency(_Dependency, total=False):
    """A dependency of a task to submit."""

    #: blocks: the other task must be done first; the default. input: part of its result is needed
    #: as well. related: for information only.
    dependency_type: str
    #: The part of the result that an input needs. With another type it has no meaning and causes a
    #: warning.
    contract_key: str


class _AutoAssigned(TypedDict):
    #: Whether an agent fits and has the task now. One of assigned, no_match.
    status: str


class AutoAssigned(_AutoAssigned, total=False):
    """Answers auto-assign."""

    #: The server_id of the agent.
    server_id: str
    #: The name of the agent.
    server_name: str
    #: The score of the agent; a higher score is a better fit.
    match_score: int


class Match(TypedDict):
    """The fit of an agent for the requirements of a task, in the answer to match-agents."""

    #: The server_id of the agent.
    server_id: str
    #: The name of the agent.
    server_name: str
    #: The score; a higher score is a better fit. -1: the agent does not fit.
    score: int
    #: Whether the agent is present. One of online, offline.
    status: str
    #: The reasons, for people.
    reasons: List[str]


class Note(TypedDict):
    """A note on a task, in the answers to add-note and list-notes."""

    #: The id of the note.
    id: str
    #: The id of the task.
    task_id: str
    #: The author, such as agent:planner.
    author: str
    #: The text of the note. It is untrusted: escape it before you show it.
    content: str
    #: Whether the agent of the task was notified at once.
    urgent: bool
    #: When the note was written.
    created_at: str


class _Option(TypedDict):
    #: The answer that you get when the person chooses this option.
    value: str


class Option(_Option, total=False):
    """An answer that a person may choose."""

    #: The text that the person sees; the value when it is missing.
    label: Optional[str]


class _PermissionChoice(TypedDict):
    #: The answer that you get when the person chooses this.
    id: str
    #: The meaning of the answer. One of allow_once, allow_session, allow_always, deny.
    kind: str


class PermissionChoice(_PermissionChoice, total=False):
    """A possible answer to ask-permission."""

    #: The text that the person sees.
    label: str


class _UserAnswer(TypedDict):
    #: The value of the option that the person chose, or the text that the person typed.
    answer: str
    metadata: Dict[str, Any]


class UserAnswer(_UserAnswer, total=False):
    """Answers ask-user and ask-permission."""

    #: The id of a question without an answer yet. The answer comes as mail on message.direct.
    questionId: str
    #: The id of the choice, in the answer to ask-permission.
    choice: str
    #: The person's remark, in the answer to ask-permission.
    message: str


class Withdrawn(TypedDict):
    """Answers withdraw-question."""

    #: Whether the question is closed, even if it was answered or withdrawn before.
    withdrawn: bool


class _Agent(TypedDict):
    #: The name of the agent.
    id: str
    #: The role: worker, planner, reviewer, or a role from the configuration.
    role: str
    #: The status of the agent. Only an idle agent gets a task from the queue.
    status: str
    #: The capabilities of the agent.
    capabilities: List[str]
    #: The id of the first task that the agent has; null if it has none.
    currentTask: Optional[str]


class Agent(_Agent, total=False):
    """An agent in the answer to query-agents."""

    #: Whether its capacity is 0, as for a pipe without a role.
    takesNoTasks: bool


class _Server(TypedDict):
    #: The id of the server, derived from its name.
    server_id: str
    #: The name of the agent.
    name: str
    #: Whether the agent is present. One of online, offline.
    status: str
    #: The role: worker, planner, reviewer, or a role from the configuration.
    role: str
    #: Whether the agent runs on another machine and has registered.
    remote: bool
    #: The repositories of the agent, by name.
    repos: Dict[str, Any]
    #: The reported capabilities: a capabilities document; null if none are reported.
    capabilities: Optional[Dict[str, Any]]
    #: The number of tasks that the agent works on.
    running_tasks: int


class Server(_Server, total=False):
    """An agent with its capabilities, in the answers to query-servers and update-capabilities."""

    #: The name of the machine.
    hostname: str
    #: The address of the machine, as reported.
    ip: str
    #: The operating system.
    os: str
    #: Information about the machine, as reported.
    system: Dict[str, Any]
    #: When the agent was last seen, if it runs on another machine.
    last_seen: str


class Mail(TypedDict):
    """A stored message, in the answers to poll-messages and send-message and in notify:message. It
    never changes."""

    #: The number of the message. Later messages have higher numbers. The numbers in one mailbox
    #: have gaps.
    seq: int
    #: The sender.
    from_actor: str
    #: The recipient, or broadcast.
    to_actor: str
    #: The topic. Acknowledge messages on unknown topics and continue.
    topic: str
    #: The content, unchanged. It is untrusted: escape it before you show it.
    payload: Dict[str, Any]
    #: The number of the message that this one answers; null if it answers none.
    reply_to: Optional[int]
    #: When the message was sent: UTC, with milliseconds.
    created_at: str


class SentMail(Mail, total=False):
    """Answers send-message with the stored message and warnings about it."""

    #: Whether the message had been sent before, with the same key; missing if it had not.
    duplicate: bool
    #: Warnings about the message, such as a topic that is not registered.
    warnings: List[str]


class MailList(TypedDict):
    """Answers poll-messages, in the order of the numbers."""

    #: The recipient of the messages.
    actor: str
    #: The messages, in the order of their numbers.
    messages: List[Mail]
    #: The number of the last acknowledged message.
    cursor: int
    #: Whether more messages follow.
    more: bool


class Acked(TypedDict):
    """Answers ack-messages."""

    #: The recipient of the messages.
    actor: str
    #: The number of the last acknowledged message.
    cursor: int


class Beat(TypedDict):
    """Answers heartbeat."""

    #: The actor that sent the heartbeat.
    actor: str
    #: When the actor was last seen: now.
    last_seen: str
    #: The expected time between heartbeats, in milliseconds.
    heartbeat_ms: int
