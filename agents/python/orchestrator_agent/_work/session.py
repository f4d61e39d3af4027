"""An agent's membership in a session, and the messages that it can send."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any, Dict, Mapping, TypeVar

from .._connection.said import Said, Sent
from .._connection.stop import current_stop
from .._connection.stream import Stream
from .._wire.errors import AgentError, Unsaid
from .._wire.fill import filled_assignment, filled_completion, filled_request, filled_result, said_plainly
from .._wire.lines import new_id, now, said_line
from .._wire.sessiondocuments import Abort, AgentID, Assignment, Completion, Feedback, Progress, ReviewRequest, ReviewResult
from .._wire.shape import misdirection_of, problem_of

__all__ = ["Identity", "Member", "architect_id", "developer_id", "identity", "reviewer_id"]

M = TypeVar("M", bound="Member")

#: Bounds the jump of a sequence number. Following a larger one could use up the numbers.
FAR_AHEAD = 1 << 20

AGENT_TYPES = ("architect", "developer", "reviewer")


def architect_id(name: str) -> AgentID:
    """Returns the identifier of an architect, for use as a recipient."""
    return {"agent_id": name, "agent_type": "architect"}


def developer_id(name: str) -> AgentID:
    """Returns the identifier of a developer."""
    return {"agent_id": name, "agent_type": "developer"}


def reviewer_id(name: str) -> AgentID:
    """Returns the identifier of a reviewer."""
    return {"agent_id": name, "agent_type": "reviewer"}


@dataclass(frozen=True)
class Identity:
    """An agent's identity in a session."""

    agent: str  #: its name
    type: str  #: architect, developer or reviewer
    session: str = ""  #: required only if the agent is in several sessions


def identity(agent: str, type: str, session: str) -> Identity:
    """Returns the agent's identity. Empty arguments default to the variables that the orchestrator
    sets for the agents that it starts."""
    me = Identity(
        agent or os.environ.get("ORC_AGENT_ID", ""),
        type or os.environ.get("ORC_SESSION_TYPE", ""),
        session or os.environ.get("ORC_SESSION", ""),
    )
    if not me.agent:
        raise AgentError("who the agent is in its session is not known: $ORC_AGENT_ID is not set")
    if me.type not in AGENT_TYPES:
        raise AgentError(f"who the agent is in its session is not known: {me.type!r} is none of the types {AGENT_TYPES}"
                         " ($ORC_SESSION_TYPE)")
    return me


class _Count:
    """The highest sequence number sent or received."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest = 0

    def next(self) -> int:
        with self._lock:
            self._highest += 1
            return self._highest

    def saw(self, number: int) -> None:
        """Raises the sequence number to that of a received message, so that numbers rise in the
        whole session. Ignores a number that is too far ahead."""
        with self._lock:
            if number - self._highest <= FAR_AHEAD:
                self._highest = max(self._highest, number)


class Member:
    """An agent's membership in a session. Its methods send one message each and return when it is
    written; the Sent reports a later refusal. Invalid messages raise Unsaid.

    The methods may be called from any thread at the same time.
    """

    def __init__(self, conn: Stream, me: Identity) -> None:
        self.conn = conn
        self.identity = me
        self._chain = ""
        self._count = _Count()

    def chain(self: M, correlation_id: str) -> M:
        """Returns the same session with a correlation_id for its messages. Answers keep the
        correlation_id of the message that they answer."""
        chained = type(self)(self.conn, self.identity)
        chained._chain, chained._count = correlation_id, self._count
        return chained

    # Single messages.

    def assign(self, developer: str, assignment: Assignment) -> Sent:
        """Assigns a task to a developer. Starts a new correlation_id, unless the session comes from
        chain."""
        message = self._to(developer_id(developer), "task_assignment")
        message.setdefault("correlation_id", new_id())
        return self._say(message, filled_assignment(assignment))

    def acknowledge(self, assignment: Said) -> Sent:
        """Acknowledges an assignment."""
        return self._say(self._answering(assignment, "acknowledgment"), {})

    def report(self, assignment: Said, progress: Progress) -> Sent:
        """Reports progress to the agent that assigned a task."""
        how = {"task_id": _task_of(assignment), "progress_percent": 0, "current_step": "", "files_modified_so_far": []}
        return self._say(self._answering(assignment, "task_progress"), {**how, **said_plainly(progress)})

    def complete(self, assignment: Said, completion: Completion) -> Sent:
        """Reports the outcome of a task to the agent that assigned it."""
        what = filled_completion(completion, _task_of(assignment))
        return self._say(self._answering(assignment, "task_completion"), what)

    def request_review(self, reviewer: str, request: ReviewRequest) -> Sent:
        """Asks a reviewer to review a task. A request without a review_id gets a new one."""
        what = {"review_id": new_id(), **filled_request(request)}
        return self._say(self._to(reviewer_id(reviewer), "review_request"), what)

    def judge(self, request: Said, result: ReviewResult) -> Sent:
        """Sends the result of a review to the agent that asked for it."""
        asked = request.payload
        what = filled_result(result, asked.get("review_id", ""), asked.get("task_id", ""))
        return self._say(self._answering(request, "review_result"), what)

    def give_feedback(self, to: AgentID, feedback: Feedback) -> Sent:
        """Sends feedback to an agent."""
        return self._say(self._to(to, "feedback"), {"action_required": False, **said_plainly(feedback)})

    def answer(self, said: Said, feedback: Feedback) -> Sent:
        """Sends feedback to the sender of a message."""
        return self._say(self._answering(said, "feedback"), {"action_required": False, **said_plainly(feedback)})

    def ask_status(self, to: AgentID, task_id: str = "") -> Sent:
        """Asks another agent for its status: that of one task, or of everything."""
        return self._say(self._to(to, "status_query"), {"task_id": task_id} if task_id else {})

    def tell_status(self, query: Said, status: Mapping[str, Any]) -> Sent:
        """Answers a status query with any object. The roles answer by themselves."""
        return self._say(self._answering(query, "status_response"), status)

    def abort(self, to: AgentID, abort: Abort) -> Sent:
        """Tells an agent that a task or the session is aborted."""
        what: Dict[str, Any] = {"reason": "", "cleanup_required": False, **said_plainly(abort)}
        if what.get("scope") == "session":
            what["target_id"] = what.get("target_id") or self.identity.session
        return self._say(self._to(to, "abort"), what)

    # Parts of messages.

    def _to(self, recipient: AgentID, kind: str) -> Dict[str, Any]:
        """Returns a message that answers no other."""
        message: Dict[str, Any] = {"to_agent": recipient, "message_type": kind}
        if self._chain:
            message["correlation_id"] = self._chain
        if self.identity.session:
            message["session_id"] = self.identity.session
        return message

    def _about(self, said: Said, kind: str) -> Dict[str, Any]:
        """Returns a message to the sender of another, with the same correlation_id."""
        self._count.saw(said.sequence_number)
        message = self._to(said.from_agent, kind)
        if said.correlation_id:
            message["correlation_id"] = said.correlation_id
        if said.session_id:
            message["session_id"] = said.session_id
        return message

    def _answering(self, said: Said, kind: str) -> Dict[str, Any]:
        """Returns a message that answers another."""
        return {**self._about(said, kind), "reply_to": said.message_id}

    def _say(self, message: Dict[str, Any], payload: Mapping[str, Any]) -> Sent:
        """Sends a message. Its sequence number is taken when its turn to be written comes, so that
        numbers rise on the stream as well."""
        message["message_id"], message["payload"] = new_id(), payload
        message["from_agent"] = {"agent_id": self.identity.agent, "agent_type": self.identity.type}
        message["timestamp"] = now()
        wrong = problem_of(message) or misdirection_of(message)
        if wrong:
            raise Unsaid(f"{message['message_type']}: it cannot be said: {wrong}")
        sent = Sent(message["message_id"], message.get("correlation_id", ""), message["message_type"], message["to_agent"]["agent_id"])

        def spell() -> bytes:
            sent.sequence_number = message["sequence_number"] = self._count.next()
            line = said_line(message)
            self.conn._inbox.say(sent)
            self.conn._again.keep(sent, line)
            return line

        self.conn._again.write_behind(sent.to, spell, current_stop())
        return sent


def _task_of(assignment: Said) -> str:
    task = assignment.payload.get("task")
    return str(task.get("task_id", "")) if isinstance(task, dict) else ""
