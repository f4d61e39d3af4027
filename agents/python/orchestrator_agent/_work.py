"""The loop of an agent that does tasks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, cast

from ._crew import GivenUp, Role, gave_up, off, shown, spoken
from ._documents import Mail, Result, Task
from ._errors import AgentError, Cancelled, Refused, Shutdown, Torn, Unsaid
from ._inbox import Inbox, Notice, as_mail
from ._job import Job
from ._mail import Mailroom
from ._stop import Stop, stopping

if TYPE_CHECKING:
    from ._connection import Connection

__all__ = ["Do", "MailReader", "Planner", "Worker"]

Do = Callable[[Job], Result]
Planner = Callable[[Job], Any]
MailReader = Callable[[Mail, Stop], None]

#: The plan of those who have none.
NO_PLAN = "no plan: this agent works as it is told"


class Worker(Role):
    """Does tasks as they are assigned to the agent, each in a thread of its own. How many there are at
    a time is for the orchestrator to say.

    How a task comes to the point at which it can be done:

        assigned     start-task, which a task that waits for others refuses until it does not
        planning     the planner, submit-plan
        plan_review  a person approves the plan: running; or sends it back: planning
        needs_human  a person answers: running
        running      the handler
    """

    def __init__(
        self, conn: "Connection", do: Do, planner: Optional[Planner], reader: Optional[MailReader], beat: Optional[float]
    ) -> None:
        super().__init__(conn)
        self._do = do
        self._planner = planner
        self._inbox: Inbox = conn._inbox
        self._mail = Mailroom(self, conn, reader, beat) if reader else None
        self._lock = threading.Lock()
        self._jobs: Dict[str, Job] = {}  # by task; one that is cancelled is there no more

    def run(self) -> None:
        if self._mail:
            self._go(self._mail.receive, "mail")
            self._go(self._mail.beat, "heartbeat")
        for notice in self._inbox.news(self._stop):
            self._heed(notice)
        self._conclude(self._inbox.failure())

    def _heed(self, notice: Notice) -> None:
        """Does what a notice asks for. It does not wait for handlers."""
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
        """Starts a job. The orchestrator repeats an assignment when it cannot be sure that it was
        heard, or when it wants a plan after all; a job that there is already has a look."""
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
        self._troubled(trouble)

    def _attempt(self, job: Job) -> None:
        begun, error = False, None
        try:
            begun = self._begun(job)
        except Exception as failure:
            error = failure
        if off(job.stop):
            return  # it came to its end before it began
        if gave_up(job.stop, error):
            raise GivenUp()
        if error:
            raise error
        if begun:
            self._report(job)

    def _report(self, job: Job) -> None:
        """Calls the handler, and says what came of it, if a caller still waits."""
        result, error = None, None
        try:
            with stopping(job.stop):
                result = self._do(job)
        except BaseException as failure:  # sys.exit in a handler ends its task alone
            error = failure
            shown(error)
        if off(job.stop):
            return
        if error is None:
            self._complete(job, result)
        elif gave_up(job.stop, error):
            raise GivenUp()
        else:
            self._fail(job, spoken(error))

    # Getting a task to where it can be done.

    def _begun(self, job: Job) -> bool:
        """False when there is nothing to do."""
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
            except Refused as refused:  # because things are not so far, or have moved since
                if refused.reason == "blocked":
                    job._await(news)
                elif refused.reason != "wrong_state":
                    raise

    def _start(self, job: Job) -> None:
        """Says that the work begins. What was delivered to the task stands only in the answer to
        get-task."""
        answer = self._conn._ask_patiently("start-task", {"taskId": job.id}, job.stop)
        inputs = job.task.get("resolved_inputs")
        job.task = cast(Task, answer.get("task") or {})
        if inputs is not None:
            job.task["resolved_inputs"] = inputs

    def _plan(self, job: Job) -> None:
        """Says how the task will be done. That it cannot be planned is said in a note: the task has
        not begun, so it cannot fail, and people have to decide."""
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

    # Saying what came of it.

    def _complete(self, job: Job, result: Result) -> None:
        """Reports a result. One that the orchestrator does not take fails the task, which would run
        for ever otherwise."""
        try:
            said = {"taskId": job.id} if result is None else {"taskId": job.id, "result": result}
            self._conn._settle("complete-task", said)
        except Unsaid as error:
            self._fail(job, f"its result cannot be told: {error}")
        except Refused as refused:
            if refused.code != "INVALID_REQUEST" or refused.reason:
                raise
            self._fail(job, "its result was refused: " + refused.message)

    def _fail(self, job: Job, why: str) -> None:
        """Reports that a task cannot be done."""
        self._conn._settle("fail-task", {"taskId": job.id, "error": why})
