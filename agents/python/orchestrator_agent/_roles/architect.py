"""The architect of a session: assigns tasks, and has them reviewed and revised until they are
approved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional, cast

from .._connection.inbox import Notice
from .._connection.said import Said
from .._connection.stop import Stop, stopping
from .._wire.errors import AgentError, Ended, Incomplete, Refused, Rejected, Shutdown, Undelivered
from .._wire.lines import new_id
from .._wire.sessiondocuments import AgentID, Assignment, Completion, ReviewRequest, ReviewResult
from .._work.crew import Role
from .._work.session import Member
from .._work.sessiontask import SessionTask, SessionTasks, Tiding

__all__ = ["Architect", "Delivery"]


@dataclass
class Delivery:
    """The outcome of a delivered task."""

    task_id: str
    completion: Completion = field(default_factory=lambda: cast(Completion, {}))  #: the last one
    review: ReviewResult = field(default_factory=lambda: cast(ReviewResult, {}))  #: the last one; {} if there was none
    reviews: int = 0  #: the number of reviews
    forced: bool = False  #: accepted although the last review did not approve it


class Architect(Role):
    """Assigns tasks and has them reviewed. Its methods may be called from any thread. The session
    attribute is the Session, which sends single messages."""

    def __init__(self, session: Member, hear: Optional[Callable[[Said], None]]) -> None:
        super().__init__(session.conn)
        self.session = session
        self._hear = hear
        self._tasks = SessionTasks(session, self._stop)

    @property
    def stop(self) -> Stop:
        """Tells the architect to stop when the agent has to shut down."""
        return self._stop

    def run(self, do: "Callable[[Architect], Any]") -> Any:
        self._go(self._listen, "session")
        try:
            with stopping(self._stop):
                return do(self)
        finally:
            self._conn._again.all_said()
            self._stop.end(None)
            with self._changed:
                self._changed.wait_for(lambda: not self._running)

    def task(self, task_id: str) -> SessionTask:
        """Returns the task of the session with this id, no matter which agent assigned it. A task
        that the caller no longer refers to is forgotten after a few thousand others."""
        return self._tasks.get(task_id)

    def assign(self, developer: str, assignment: Assignment) -> SessionTask:
        """Assigns a task to a developer. Sets a new id if the task has none."""
        given: Dict[str, Any] = {"task_id": new_id(), **assignment.get("task", {})}
        task = self.task(given["task_id"])
        task._first = given.get("task_description", "")
        task._assign(developer, cast(Assignment, {**assignment, "task": given}))
        return task

    def deliver(
        self,
        developer: str,
        assignment: Assignment,
        reviewer: Optional[str] = None,
        review: Optional[ReviewRequest] = None,
        rename: Optional[Callable[[int], str]] = None,
    ) -> Delivery:
        """Assigns a task, has it reviewed, and has it revised until it is approved. Also returns if
        the session accepts the task because it has used up its reviews. Without a reviewer, a
        completion is enough. rename returns the id of an attempt, from the second on.

        Raises Incomplete or Rejected if the developer or the reviewer says so, and Unreviewed if
        the task cannot be reviewed. Raises Ended if the task was aborted or waits for a person, and
        Undelivered if a required message was refused.
        """
        return self.deliver_task(self.assign(developer, assignment), reviewer, review, rename)

    def deliver_task(
        self,
        task: SessionTask,
        reviewer: Optional[str] = None,
        review: Optional[ReviewRequest] = None,
        rename: Optional[Callable[[int], str]] = None,
    ) -> Delivery:
        """Like deliver, for a task that is already assigned, such as a dependency of the next
        one."""
        delivery = Delivery(task.id)
        try:
            while self._attempt(task, reviewer, review, rename, delivery):
                pass
        except AgentError as error:
            if delivery.reviews == 0:
                raise
            self._settled(delivery.task_id, error)
        delivery.forced = delivery.review.get("verdict") == "changes_requested"
        return delivery

    def _attempt(
        self, task: SessionTask, reviewer: Optional[str], review: Optional[ReviewRequest],
        rename: Optional[Callable[[int], str]], delivery: Delivery,
    ) -> bool:
        """Waits for a completion and its review. Reports whether another attempt follows."""
        delivery.completion = task.completion()
        status = delivery.completion.get("status")
        if status == "failed" or not reviewer and status != "completed":
            raise Incomplete()
        if not reviewer:
            return False
        result = task.review(reviewer, review)
        delivery.task_id, delivery.review = task.id, result
        delivery.reviews += 1
        if result.get("verdict") == "approved":
            return False
        if result.get("verdict") == "rejected":
            raise Rejected()
        self._may_revise(task.id)
        task.revise(result, rename(delivery.reviews + 1) if rename else None)
        return True

    def abort_session(self, to: AgentID, reason: str) -> None:
        """Ends the session for all its members. The message may go to any one of them."""
        self.session.abort(to, {"scope": "session", "reason": reason})

    # Receiving.

    def _listen(self) -> None:
        """Passes session messages and notices to the tasks that wait for them."""
        for event in self._conn._inbox.events(self._stop):
            if event.notice:
                self._noticed(event.notice)
            elif event.said:
                self._told(event.said)
        self._stop.end(self._conn._inbox.failure())

    def _noticed(self, notice: Notice) -> None:
        task = notice.payload.get("taskId")
        if notice.name == "shutdown":
            self._stop.end(Shutdown())
        elif notice.name in ("task-cancelled", "task-updated") and isinstance(task, str) and task:
            self.task(task)._put(Tiding(notice=notice))

    def _told(self, said: Said) -> None:
        self.session._count.saw(said.sequence_number)
        if self._hear:
            self._hear(said)
        body = said.payload
        if said.message_type == "task_completion":
            self.task(body["task_id"])._put(Tiding(completion=cast(Completion, body)))
        elif said.message_type == "review_result":
            self.task(body["task_id"])._put(Tiding(result=cast(ReviewResult, body)))
        elif said.message_type == "feedback" and body.get("related_task_id") and body["action_required"] and said.reply_to:
            self.task(body["related_task_id"])._put(Tiding(feedback=body, answers=said.reply_to))

    # The state of a task.

    def ended(self, task: str, why: str) -> Optional[Ended]:
        """Asks for the state of a task. Returns None if the task goes on."""
        return self._tasks.ended(task, why)

    def _may_revise(self, task: str) -> None:
        """Raises Ended if the session has ended the task or passed it to a person, because its
        reviews are used up."""
        try:
            ended = self._tasks.ended(task, "")
        except Refused:
            return  # the refusal of the assignment will say so
        if ended:
            raise ended

    def _settled(self, task: str, error: AgentError) -> None:
        """Raises the final error of a reviewed task that cannot be revised. Returns if the session
        has marked the task as done, as its on_max setting may require."""
        ended: Optional[Ended] = error if isinstance(error, Ended) else None
        if isinstance(error, Undelivered) and error.reason in ("task_id_taken", "iterations_used_up"):
            try:
                ended = self._tasks.ended(task, error.message)
            except AgentError:
                pass  # then the refusal is raised
        if ended is None:
            raise error
        if ended.state != "done":
            raise ended
