"""The loop of an agent that does tasks."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Optional, cast

from .._connection.inbox import Inbox, Notice, as_mail
from .._connection.stop import Stop, stopping
from .._connection.stream import Stream
from .._wire.documents import Mail, Result, Task
from .._wire.errors import AgentError, Cancelled, Refused, Shutdown, Torn, Unsaid
from .._wire.lines import without_none
from .crew import GivenUp, Role, gave_up, off, shown, spoken
from .job import Job
from .mail import Mailroom

__all__ = ["Do", "MailReader", "Planner", "Worker"]

Do = Callable[[Job], Result]
Planner = Callable[[Job], Any]
MailReader = Callable[[Mail, Stop], None]

#: The plan of a worker without a planner.
NO_PLAN = "no plan: this agent works as it is told"

#: Reasons for which a completion is refused until the agent has corrected its work.
UNCORRECTED = ("not_verified", "result", "no_workspace")


class Worker(Role):
    """Does assigned tasks, each in its own thread. The orchestrator limits how many run at a time.

    States of a task before it can be done, and what moves it on:

        assigned     start-task; refused as long as the task waits for others
        planning     the planner, submit-plan
        plan_review  a person approves the plan: running; or sends it back: planning
        needs_human  a person answers: running
        running      the handler
    """

    def __init__(
        self, conn: Stream, do: Do, planner: Optional[Planner], reader: Optional[MailReader], beat: Optional[float]
    ) -> None:
        super().__init__(conn)
        self._do = do
        self._planner = planner
        self._inbox: Inbox = conn._inbox
        self._mail = Mailroom(self, conn, reader, beat) if reader else None
        self._lock = threading.Lock()
        self._jobs: Dict[str, Job] = {}  # by task; without cancelled jobs

    def run(self) -> None:
        if self._mail:
            self._go(self._mail.receive, "mail")
            self._go(self._mail.beat, "heartbeat")
        for notice in self._inbox.news(self._stop):
            self._heed(notice)
        self._conclude(self._inbox.failure())

    def _heed(self, notice: Notice) -> None:
        """Handles a notice. It does not wait for handlers."""
        if notice.name == "shutdown":
            self._stop.end(Shutdown())
            return
        if notice.name == "message":
            mail = as_mail(notice.payload)
            if self._mail and mail:
                self._inbox.posted(mail)
            return
        task = notice.payload.get("taskId")
        if not isinstance(task, str) or not task:
            return
        if notice.name == "task-assigned":
            self._begin(task)
        elif notice.name == "task-cancelled":
            with self._lock:
                job = self._jobs.pop(task, None)
            if job:
                job.stop.end(Cancelled(str(notice.payload.get("reason") or "")))
        elif notice.name == "task-updated":
            with self._lock:
                job = self._jobs.get(task)
            if job:
                job._hear(str(notice.payload.get("message") or ""))

    def _begin(self, task: str) -> None:
        """Starts a job. The orchestrator repeats an assignment if its arrival is uncertain, or if
        it wants a plan after all. A running job then looks at its task."""
        with self._lock:
            job = self._jobs.get(task)
            if job:
                job._hear()
                return
            job = self._jobs[task] = Job(self._conn, task, self._stop)
        self._go(lambda: self._perform(job), "task " + task)

    def _perform(self, job: Job) -> None:
        """Does a task from its assignment to its report."""
        trouble: Optional[BaseException] = None
        try:
            self._attempt(job)
        except GivenUp:
            self._left()
        except Torn as torn:
            trouble = torn
        except Exception as error:
            trouble = AgentError(f"task {job.id}: {spoken(error)}")
        with self._lock:
            if self._jobs.get(job.id) is job:
                del self._jobs[job.id]
        job.stop.leave()
        if not off(job.stop) or isinstance(trouble, Torn):
            self._troubled(trouble)

    def _attempt(self, job: Job) -> None:
        """Does a task. If a person is asked whether the result will do, waits for the answer and does
        the task again."""
        while self._round(job):
            job._discard()

    def _round(self, job: Job) -> bool:
        """Does a task once. Returns whether it has to be done again."""
        begun, error = False, None
        try:
            begun = self._begun(job)
        except Exception as failure:
            error = failure
        if off(job.stop):
            return False  # it ended before it began
        if gave_up(job.stop, error):
            raise GivenUp()
        if error:
            raise error
        return begun and self._report(job)

    def _report(self, job: Job) -> bool:
        """Calls the handler and reports the outcome, unless the task was cancelled. Returns whether the
        task has to be done again."""
        result, error = None, None
        try:
            with stopping(job.stop):
                result = self._do(job)
        except BaseException as failure:  # sys.exit in a handler ends only its task
            error = failure
            shown(error)
        if off(job.stop):
            return False
        if error is None:
            return self._complete(job, result)
        if gave_up(job.stop, error):
            raise GivenUp()
        self._fail(job, spoken(error))
        return False

    # Before the handler.

    def _begun(self, job: Job) -> bool:
        """Brings a task to the state running. Returns False if there is nothing to do."""
        while True:
            news = job._count()
            job.task = job._look()
            state = job.task.get("state")
            if state in ("pending", "done", "failed", "cancelled"):
                return False
            try:
                if state == "assigned":
                    self._start(job)
                    return True
                if state == "planning":
                    self._plan(job)
                elif state in ("plan_review", "needs_human", "in_review"):
                    job._await(news)
                else:
                    return True
            except Refused as refused:  # the task waits for others, or has moved on
                if refused.reason == "blocked":
                    job._await(news)
                elif refused.reason != "wrong_state":
                    raise

    def _start(self, job: Job) -> None:
        """Reports the start of the work. Keeps resolved_inputs, because only the answer to get-task
        contains them."""
        answer = self._conn._ask_patiently("start-task", {"taskId": job.id}, job.stop)
        inputs = job.task.get("resolved_inputs")
        job.task = cast(Task, answer.get("task") or {})
        if inputs is not None:
            job.task["resolved_inputs"] = inputs

    def _plan(self, job: Job) -> None:
        """Submits a plan for the task. If planning fails, adds a note for people: a task that has
        not begun cannot fail."""
        try:
            plan: Any = None
            if self._planner:
                with stopping(job.stop):
                    plan = self._planner(job)
            self._conn._ask_patiently("submit-plan", {"taskId": job.id, "plan": NO_PLAN if plan is None else plan}, job.stop)
        except BaseException as error:
            wrong_state = isinstance(error, Refused) and error.reason == "wrong_state"
            if gave_up(job.stop, error) or job.stop.is_set() or wrong_state:
                raise
            shown(error)
            why = AgentError("it cannot be planned: " + spoken(error))
            self._conn._ask_patiently("add-note", {"taskId": job.id, "content": str(why)}, job.stop)
            raise why from error

    # After the handler.

    def _complete(self, job: Job, result: Result) -> bool:
        """Reports a result, and returns whether the task has to be done again because a person is asked.
        If the orchestrator refuses the result, the task fails; otherwise it would run for ever. It may be
        tried again if what was done could not be verified."""
        try:
            self._deliver(job, without_none(taskId=job.id, result=result, artifacts=list(job._made) or None))
        except Unsaid as error:
            self._fail(job, f"its result cannot be told: {error}")
        except Refused as refused:
            if refused.reason == "needs_human":
                return True
            if refused.reason not in UNCORRECTED and (refused.reason or refused.code != "INVALID_REQUEST"):
                raise
            self._fail(job, "its result was refused: " + refused.message, refused.reason in UNCORRECTED)
        return False

    def _deliver(self, job: Job, said: Dict[str, Any]) -> None:
        """Asks for the completion. If its verification is interrupted, asks again after the next news."""
        while True:
            news = job._count()
            try:
                return self._conn._settle("complete-task", said)
            except Refused as refused:
                if refused.reason != "interrupted":
                    raise
            try:
                job._await(news)
            except Exception as error:
                if off(job.stop):
                    return
                if gave_up(job.stop, error):
                    raise GivenUp()
                raise

    def _fail(self, job: Job, why: str, retryable: bool = False) -> None:
        """Reports that a task failed."""
        said: dict[str, object] = {"taskId": job.id, "error": why}
        if retryable:
            said["retryable"] = True
        self._conn._settle("fail-task", said)
