"""An agent's place in a session, and what it may say there."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

from ._errors import AgentError, Unsaid
from ._fill import filled_assignment, filled_completion, filled_request, filled_result, said_plainly
from ._lines import new_id, now, said_line
from ._said import Said, Sent
from ._sessiondocuments import Abort, AgentID, Assignment, Completion, Feedback, Progress, ReviewRequest, ReviewResult
from ._shape import misdirection_of, problem_of
from ._stop import current_stop

if TYPE_CHECKING:
    from ._architect import Architect
    from ._connection import Connection
    from ._developer import Develop, Rescope
    from ._reviewer import Mend, Review

__all__ = ["Identity", "Session", "architect_id", "developer_id", "reviewer_id"]

#: A number that is further ahead than this is none that a sender has counted to.
FAR_AHEAD = 1 << 20

AGENT_TYPES = ("architect", "developer", "reviewer")


def architect_id(name: str) -> AgentID:
    """Names an architect as an addressee."""
    return {"agent_id": name, "agent_type": "architect"}


def developer_id(name: str) -> AgentID:
    """Names a developer."""
    return {"agent_id": name, "agent_type": "developer"}


def reviewer_id(name: str) -> AgentID:
    """Names a reviewer."""
    return {"agent_id": name, "agent_type": "reviewer"}


@dataclass(frozen=True)
class Identity:
    """Who an agent is in a session."""

    agent: str  #: its name
    type: str  #: architect, developer or reviewer
    session: str = ""  #: which one; needed by those alone who are in several


def identity(agent: str, type: str, session: str) -> Identity:
    """What is "" is as the orchestrator has said it to the agents that it starts."""
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
    """The highest sequence number that was said or heard."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest = 0

    def next(self) -> int:
        with self._lock:
            self._highest += 1
            return self._highest

    def saw(self, number: int) -> None:
        """Keeps the numbers rising in the whole session, as far as the agent hears it. A sender that follows a
        number that no sender has counted to soon has none left."""
        with self._lock:
            if number - self._highest <= FAR_AHEAD:
                self._highest = max(self._highest, number)


class Session:
    """An agent's place in a session. Its verbs say one message each, and return when it is written:
    what may become of it later is in the Sent. What makes no sense raises Unsaid.

    Its methods may be called at the same time, from any thread.
    """

    def __init__(self, conn: "Connection", me: Identity) -> None:
        self.conn = conn
        self.identity = me
        self._chain = ""
        self._count = _Count()

    def chain(self, correlation_id: str) -> "Session":
        """The same session for messages that belong together with others: those that answer nothing
        get this correlation_id."""
        chained = Session(self.conn, self.identity)
        chained._chain, chained._count = correlation_id, self._count
        return chained

    # The verbs.

    def assign(self, developer: str, assignment: Assignment) -> Sent:
        """Gives a task to a developer. It begins a chain of messages, unless this is one."""
        message = self._to(developer_id(developer), "task_assignment")
        message.setdefault("correlation_id", new_id())
        return self._say(message, filled_assignment(assignment))

    def acknowledge(self, assignment: Said) -> Sent:
        """Says that an assignment has arrived."""
        return self._say(self._answering(assignment, "acknowledgment"), {})

    def report(self, assignment: Said, progress: Progress) -> Sent:
        """Tells the agent that assigned a task how far it is."""
        how = {"task_id": _task_of(assignment), "progress_percent": 0, "current_step": "", "files_modified_so_far": []}
        return self._say(self._answering(assignment, "task_progress"), {**how, **said_plainly(progress)})

    def complete(self, assignment: Said, completion: Completion) -> Sent:
        """Tells the agent that assigned a task what came of it."""
        what = filled_completion(completion, _task_of(assignment))
        return self._say(self._answering(assignment, "task_completion"), what)

    def request_review(self, reviewer: str, request: ReviewRequest) -> Sent:
        """Asks a reviewer to look at a task. Each request has an id of its own."""
        what = {"review_id": new_id(), **filled_request(request)}
        return self._say(self._to(reviewer_id(reviewer), "review_request"), what)

    def judge(self, request: Said, result: ReviewResult) -> Sent:
        """Tells the agent that asked for a review what came of it."""
        asked = request.payload
        what = filled_result(result, asked.get("review_id", ""), asked.get("task_id", ""))
        return self._say(self._answering(request, "review_result"), what)

    def give_feedback(self, to: AgentID, feedback: Feedback) -> Sent:
        """Says something to any agent."""
        return self._say(self._to(to, "feedback"), {"action_required": False, **said_plainly(feedback)})

    def answer(self, said: Said, feedback: Feedback) -> Sent:
        """Says something to the sender of a message."""
        return self._say(self._answering(said, "feedback"), {"action_required": False, **said_plainly(feedback)})

    def ask_status(self, to: AgentID, task_id: str = "") -> Sent:
        """Asks another agent how things are: with one task, or with everything."""
        return self._say(self._to(to, "status_query"), {"task_id": task_id} if task_id else {})

    def tell_status(self, query: Said, status: Mapping[str, Any]) -> Sent:
        """Answers that, with any object. The roles do it by themselves."""
        return self._say(self._answering(query, "status_response"), status)

    def abort(self, to: AgentID, abort: Abort) -> Sent:
        """Tells an agent that a task or the session has ended."""
        what: Dict[str, Any] = {"reason": "", "cleanup_required": False, **said_plainly(abort)}
        if what.get("scope") == "session":
            what["target_id"] = what.get("target_id") or self.identity.session
        return self._say(self._to(to, "abort"), what)

    # The roles.

    def develop(
        self,
        do: "Develop",
        *,
        rescope: Optional["Rescope"] = None,
        capacity: int = 1,
        hear: Optional[Callable[[Said], None]] = None,
        progress_after: float = 120.0,
        progress_every: float = 30.0,
    ) -> None:
        """Does tasks as they are assigned, until the agent is to shut down or the stream ends; then it
        waits for what is being done and returns. It acknowledges each, tells how far it is once it
        takes long, and says what came of it, whatever that is.

        An assignment that comes twice is done once. A new one of the same task takes the place of the
        old one, of which nothing more is said; nor is anything of one that was aborted. What was given
        up because the agent has to go is not told: then it raises Unfinished.

        Rescope says anew what came of a task whose completion was refused because a file was changed
        that was not to be. What there is no room for is acknowledged and waits. Hear is told every
        message before it is heeded, in order; it must not wait.
        """
        from ._developer import Developer

        self._opened("developer")
        Developer(self, do, rescope, capacity, hear, progress_after, progress_every).run()

    def review(
        self,
        do: "Review",
        *,
        mend: Optional["Mend"] = None,
        capacity: int = 1,
        hear: Optional[Callable[[Said], None]] = None,
    ) -> None:
        """Judges what it is asked to, until the agent is to shut down or the stream ends; then it waits
        for what is being judged and returns. A request that comes twice is answered once.

        A review that cannot be made has no result, for none would be true: the architect gets feedback
        instead. Mend judges anew when a result was refused, such as one that approves although
        something bad is open.
        """
        from ._reviewer import Reviewer

        self._opened("reviewer")
        Reviewer(self, do, mend, capacity, hear).run()

    def lead(self, do: "Callable[[Architect], Any]", *, hear: Optional[Callable[[Said], None]] = None) -> Any:
        """Calls a function that gives out the work of a session, and returns what it returns. As long
        as it runs, the Architect hears what becomes of the tasks; all its methods may be called at the
        same time, so that several tasks go on beside each other."""
        from ._architect import Architect

        self._opened("architect")
        return Architect(self, hear).run(do)

    def _opened(self, role: str) -> None:
        if self.identity.type != role:
            raise AgentError(f"{self.identity.agent} is of the type {self.identity.type}, and this is for one of the type {role}")

    # Messages.

    def _to(self, whom: AgentID, kind: str) -> Dict[str, Any]:
        """Begins a message that answers nothing."""
        message: Dict[str, Any] = {"to_agent": whom, "message_type": kind}
        if self._chain:
            message["correlation_id"] = self._chain
        if self.identity.session:
            message["session_id"] = self.identity.session
        return message

    def _about(self, said: Said, kind: str) -> Dict[str, Any]:
        """Begins one for the sender of another, in the chain of that."""
        self._count.saw(said.sequence_number)
        message = self._to(said.from_agent, kind)
        if said.correlation_id:
            message["correlation_id"] = said.correlation_id
        if said.session_id:
            message["session_id"] = said.session_id
        return message

    def _answering(self, said: Said, kind: str) -> Dict[str, Any]:
        """Begins one that answers another."""
        return {**self._about(said, kind), "reply_to": said.message_id}

    def _say(self, message: Dict[str, Any], payload: Mapping[str, Any]) -> Sent:
        """Says a message. Its number is taken when it is its turn to be written, so that numbers rise
        on the line as well."""
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
