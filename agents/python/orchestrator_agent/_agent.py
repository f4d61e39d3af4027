"""The classes that an agent begins with: its connection, and its membership in a session."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from ._connection.said import Said
from ._roles.architect import Architect
from ._roles.developer import Develop, Developer, Rescope
from ._roles.reviewer import Correct, Review, Reviewer
from ._wire.errors import AgentError
from ._work.exchange import Exchange
from ._work.serve import Server, Skill
from ._work.session import Member, identity
from ._work.worker import Do, MailReader, Planner, Worker

__all__ = ["Connection", "Session"]


class Connection(Exchange):
    """An agent's connection to its orchestrator. Its methods may be called from any thread at the
    same time.

    Without streams it takes the agent's stdin and stdout: print() writes to stderr from then on.
    Given streams must be binary; they remain the caller's.
    """

    def work(
        self,
        do: Do,
        *,
        plan: Optional[Planner] = None,
        mail: Optional[MailReader] = None,
        beat: Optional[float] = None,
    ) -> None:
        """Does assigned tasks, each in its own thread, until the agent is told to shut down or the
        stream ends. Then it waits for the handlers and returns.

        The return value of a handler completes its task; an exception fails it. A cancelled task is
        not reported. If the result fails its verification so often that a person is asked, the
        handler is called again after the answer, which is in the help of its task. At a shutdown, a handler may give up by not catching Stopped. Its task is not
        reported either, and work then raises Unfinished. The agent must exit with a failure,
        because a successful exit may complete its task.

        plan returns a plan for a task, if a person has to approve it. It is called again when the
        plan is sent back. mail handles one message at a time. The message is acknowledged when mail
        returns; if mail fails, GO is notified first. With mail, the agent also sends heartbeats,
        every beat seconds or at the orchestrator's interval.
        """
        Worker(self, do, plan, mail, beat).run()

    def serve(self, skills: Mapping[str, Skill], *, agent: str = "", capacity: Optional[int] = None) -> None:
        """Does the jobs that others delegate to the agent, until the agent is told to shut down or
        the stream ends. Then it waits for the skills and returns. A skill is called for each
        request of its type, in its own thread. A job without a skill fails with
        CAPABILITY_NOT_FOUND.

        Each job gets one final response. The return value of a skill completes the job: any value,
        where None becomes an empty object. A Fault fails it as that fault, any other exception as
        an INTERNAL_ERROR that is not recoverable. serve answers status queries at once, and those
        about a finished job with its final response. It answers a repeated request in the same way.
        If the job was cancelled, or failed with a recoverable fault, a repeated request does it
        again.

        A cancelled job is over at once, and the result of its skill is dropped. At a shutdown, a
        skill may give up by not catching Stopped. Such jobs, and jobs that have not begun, are not
        reported; serve then raises Unfinished, as work does. Until the last skill has returned,
        serve answers requests and accepts cancellations.

        capacity is the number of jobs done at a time, without a limit if None; further jobs wait. A
        job that waits for input or for delegated work gives up its place meanwhile. agent is the
        agent's name in its responses; "" means $ORC_AGENT_ID.

        Requests that arrive before serve is called are queued, up to a thousand and 8 MiB. Dropped
        ones are counted in the log. serve consumes no notices, so work, news or a session role may
        run beside it. Only one serve may run at a time.
        """
        self._inbox.serves()
        with self._hatch.serving():
            Server(self, skills, agent, capacity).run()

    def open_session(self, agent: str = "", type: str = "", session: str = "") -> Session:
        """Returns the agent's membership in a session. Empty arguments default to $ORC_AGENT_ID,
        $ORC_SESSION_TYPE and $ORC_SESSION, which the orchestrator sets for the agents that it
        starts."""
        return Session(self, identity(agent, type, session))


class Session(Member):
    """An agent's membership in a session. Its methods send one message each, or take a role."""

    conn: Connection

    def develop(
        self,
        do: Develop,
        *,
        rescope: Optional[Rescope] = None,
        capacity: int = 1,
        hear: Optional[Callable[[Said], None]] = None,
        progress_after: float = 120.0,
        progress_every: float = 30.0,
    ) -> None:
        """Does assigned tasks until the agent is told to shut down or the stream ends. Then it
        waits for running tasks and returns. It acknowledges each task, reports progress while the
        task takes long, and always reports the outcome.

        A repeated assignment is done once. A new assignment of the same task replaces the old one,
        which is no longer reported; neither is an aborted task. Tasks given up because of a
        shutdown are not reported; develop then raises Unfinished.

        rescope returns a new completion after one was refused because a file outside the scope was
        changed. capacity is the number of tasks done at a time; further tasks are acknowledged and
        wait. hear is called with every message, in order, before it is processed; it must not
        block.
        """
        self._opened("developer")
        Developer(self, do, rescope, capacity, hear, progress_after, progress_every).run()

    def review(
        self,
        do: Review,
        *,
        correct: Optional[Correct] = None,
        capacity: int = 1,
        hear: Optional[Callable[[Said], None]] = None,
    ) -> None:
        """Answers review requests until the agent is told to shut down or the stream ends. Then it
        waits for running reviews and returns. A repeated request is answered once.

        If a review fails, there is no result, and the architect gets feedback instead. correct returns
        a new result after one was refused, for example because it approves despite an open critical
        finding.
        """
        self._opened("reviewer")
        Reviewer(self, do, correct, capacity, hear).run()

    def lead(self, do: Callable[[Architect], Any], *, hear: Optional[Callable[[Said], None]] = None) -> Any:
        """Calls do, which gives out the work of a session, and returns its result. While do runs,
        the Architect receives news about the tasks. Its methods may be called from any thread, so
        several tasks can proceed at once. hear is called with every message, as in develop."""
        self._opened("architect")
        return Architect(self, hear).run(do)

    def _opened(self, role: str) -> None:
        if self.identity.type != role:
            raise AgentError(f"{self.identity.agent} is of the type {self.identity.type}, and this is for one of the type {role}")
