"""The loop of an agent that does delegated work."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Mapping, Optional, Set

from .._connection.again import LONG_PAUSE, PAUSE
from .._connection.stop import Stop, stopping
from .._wire.errors import AgentError, Cancelled, Fault, Refused, Shutdown, Unsaid, WorkCancelled
from .._wire.lines import said_line
from .._wire.response import response_of_fault
from .._wire.taskshape import CANCEL, STATUS, response_problem
from .asked import LEAVE, REFUSED, REQUEST, Asked
from .crew import Role, gave_up, shown, spoken
from .delegated import Delegated, Host
from .exchange import Exchange, Final

__all__ = ["Server", "Skill"]

Skill = Callable[[Delegated], Any]

#: The number of refusals after which the pauses no longer grow.
TRIES = 10


class Server(Role):
    """Does delegated jobs, each in its own thread, which starts when the job has a place.

    The states of a job:

        pending         it waits in line
        in_progress     its skill runs
        input_required  its skill waits for input
        over            its final response is sent; the skill of a cancelled job may still run
    """

    def __init__(self, conn: Exchange, skills: Mapping[str, Skill], agent: str, capacity: Optional[int]) -> None:
        super().__init__(conn)
        self._exchange = conn
        self._finals = conn._finals
        self._write = conn._writer.write
        self._skills = dict(skills)
        self._enough = Stop()  # ends the loop of run
        self._busy = 0  # number of running threads
        self._host = Host(
            conn, agent or os.environ.get("ORC_AGENT_ID", ""), self._stop, self._changed, capacity,
            lambda job: self._launch(lambda: self._perform(job), "job " + job.id),
        )
        self._jobs: Dict[str, Delegated] = {}  # by task, until the skill has returned
        self._repeats: Set[str] = set()  # tasks with a response to repeat

    def run(self) -> None:
        """Handles requests until the stream ends, or until the last skill has returned after a
        shutdown."""
        self._stop.on_end(self._over)
        for asked in self._exchange._hatch.all(self._enough):
            try:
                self._heed(asked)
            except Exception as error:
                self._troubled(error)
        ending = self._conn._inbox.failure()
        self._stop.end(ending)
        with self._changed:
            self._unfinished += self._host.places.clear()  # these will not begin
        self._conclude(ending)

    def _launch(self, do: Callable[[], None], name: str) -> None:
        """Runs a function in its own thread, which run waits for."""

        def run() -> None:
            try:
                do()
            finally:
                self._host.change(self._done)
                self._over()

        with self._changed:
            self._go(run, name)
            self._busy += 1  # before the thread can count down: that takes the lock

    def _done(self) -> None:
        self._busy -= 1

    def _over(self) -> None:
        with self._changed:
            over = self._busy == 0 and self._stop.is_set()
        if over:
            self._enough.end(None)

    def _job(self, task: str) -> Optional[Delegated]:
        """Returns the job of a task, or None if there is none that is not over."""
        with self._changed:
            job = self._jobs.get(task)
            return None if job is None or job._over else job

    def _heed(self, asked: Asked) -> None:
        """Handles one item. It blocks only on writing to the orchestrator."""
        if asked.kind == LEAVE:
            self._stop.end(Shutdown())
            return
        job = self._job(asked.task)
        if asked.kind == REQUEST:
            if job is None:
                self._requested(asked)
        elif asked.kind == REFUSED and asked.refused:
            self._protested(asked.task, job, asked.refused)
        elif job is None:
            if asked.kind == STATUS:
                self._tell_again(asked.task)
        elif asked.kind == STATUS:
            self._host.say_of(job, job._standing)
        elif asked.kind == CANCEL:
            self._cancel(job, asked.message["payload"].get("reason") or "")
        else:
            self._host.say_of(job, lambda: job._answer(asked.message["payload"]["input"]))

    def _requested(self, asked: Asked) -> None:
        """Begins the job of a request. If the final response of the task is remembered, repeats
        that instead, unless the task may be done again."""
        final = self._finals.get(asked.task)
        if final is not None and not final.again:
            self._tell_again(asked.task)
            return
        job = Delegated(self._host, asked.request)
        if job.type not in self._skills:
            fault = Fault("CAPABILITY_NOT_FOUND", f"this agent has no skill for {job.type}")
            job.stop.leave()
            self._end(job, "failed", response_of_fault(fault))
            return
        with self._changed:
            job._before = self._jobs.get(job.id)
            self._jobs[job.id] = job
            self._host.places.join(job)

    def _tell_again(self, task: str) -> None:
        """Repeats the final response of a task, if it is still remembered."""
        final = self._finals.get(task)
        if final is not None:
            line = final.line
            self._write(lambda: line)

    def _cancel(self, job: Delegated, reason: str) -> None:
        """Ends a job at once. The result of its skill is ignored; a repeated request waits until
        the skill has returned."""
        with self._changed:
            if job._closed:
                return
            job._closed = True
            waits = self._host.places.drop(job)
        job.stop.end(Cancelled(reason))
        try:
            self._tell(job, "cancelled", {})
        finally:
            if waits:
                self._gone(job)

    # Jobs.

    def _perform(self, job: Delegated) -> None:
        """Calls the skill and sends the final response, unless the job is already over."""
        result, error = None, None
        try:
            with stopping(job.stop):
                result = self._skills[job.type](job)
        except BaseException as failure:  # sys.exit in a skill ends only its job
            error = failure
            shown(error)
        try:
            if gave_up(job.stop, error):
                self._give_up(job)
            elif error is None:
                self._end(job, "completed", {"result": {} if result is None else result})
            else:
                self._end(job, "failed", response_of_fault(_fault_of(error)))
        finally:
            self._gone(job)

    def _give_up(self, job: Delegated) -> None:
        with self._changed:
            if not job._closed:
                job._closed = True
                self._unfinished += 1

    def _end(self, job: Delegated, status: str, what: Mapping[str, Any]) -> None:
        """Sends the final response of a job, unless one was sent."""
        with self._changed:
            if job._closed:
                return
            job._closed = True
        self._tell(job, status, what)

    def _tell(self, job: Delegated, status: str, what: Mapping[str, Any]) -> None:
        """Sends the final response of a closed job. If it cannot be encoded, the artifacts are left
        out, and the job fails unless it was cancelled."""
        try:
            self._say_last(job, status, what)
        except Unsaid as error:
            job._artifacts.clear()
            if status != "cancelled":
                why = Fault("INTERNAL_ERROR", f"what came of it cannot be told: {error}")
                status, what = "failed", response_of_fault(why)
            self._say_last(job, status, what)

    def _say_last(self, job: Delegated, status: str, what: Mapping[str, Any]) -> None:
        """Sends a final response and remembers it."""
        response = job._final(status, what)
        line, wrong = said_line(response), response_problem(response)
        if wrong:
            raise Unsaid("it cannot be said: " + wrong)
        again = status == "cancelled" or status == "failed" and what["error"]["recoverable"]
        final = Final(line, response["metadata"], again)

        def spell() -> bytes:
            with self._changed:
                job._over = True
                self._finals.add(job.id, final)
            return line

        self._write(spell)

    def _gone(self, job: Delegated) -> None:
        """Forgets a job whose skill has returned, and passes its place on. If the previous job of
        the task still runs, later requests wait for that one."""
        job.stop.leave()
        with self._changed:
            job._returned = True
            before, job._before = job._before, None
            if self._jobs.get(job.id) is job:
                if before is None or before._returned:
                    del self._jobs[job.id]
                else:
                    self._jobs[job.id] = before
            self._host.places.leave(job)

    # Refusals.

    # Only refused responses get an answer. A question or final response must not be lost: if it is
    # refused for the rate limit, it is sent again later, provided that it still holds.

    def _protested(self, task: str, job: Optional[Delegated], why: Refused) -> None:
        """Handles the refusal of a response, and raises AgentError if nothing can be done about it.
        Ignores a refusal that concerns something else."""
        final = self._finals.get(task)
        limited, wrong = why.reason == "rate_limited", why.code == "INVALID_REQUEST" and not why.reason
        if job is not None:
            if limited:  # only questions are repeated
                self._question_later(job)
            elif not (wrong or why.reason == "too_many_questions") or not self._refuse(job, why):
                raise AgentError(f"task {task}: {why}")
        elif final is not None:
            if limited:
                self._later(task, final.tries, lambda: self._last_word(task))
                final.tries += 1
            elif wrong and not final.instead:
                self._say_instead(task, final, why)
            else:
                raise AgentError(f"task {task}: {why}")

    def _question_later(self, job: Delegated) -> None:
        with self._changed:
            question = job._question
            if question is None:
                return
            tries, question.tries = question.tries, question.tries + 1
        self._later(job.id, tries, lambda: self._host.say_of(job, lambda: job._standing() if job._question else {}))

    def _refuse(self, job: Delegated, why: Refused) -> bool:
        """Fails a job's open question with a refusal. Returns False if none is open."""
        with self._changed:
            self._changed.notify_all()
            return job._refuse(why)

    def _say_instead(self, task: str, final: Final, why: Refused) -> None:
        """Reports a job as failed, because its final response was refused."""
        fault = Fault("INTERNAL_ERROR", "what came of it was refused: " + why.message)
        response: Dict[str, object] = {"id": task, "status": "failed", **response_of_fault(fault), "metadata": final.metadata}
        line = said_line(response)
        self._finals.add(task, Final(line, final.metadata, instead=True))
        self._write(lambda: line)

    def _later(self, task: str, tries: int, say: Callable[[], None]) -> None:
        """Repeats a response after a pause."""
        if task in self._repeats:
            return
        self._repeats.add(task)
        self._launch(lambda: self._repeat(task, min(PAUSE * 2 ** min(tries, TRIES), LONG_PAUSE), say), "again " + task)

    def _repeat(self, task: str, wait: float, say: Callable[[], None]) -> None:
        self._conn._again._rest(wait)
        self._repeats.discard(task)
        say()

    def _last_word(self, task: str) -> None:
        """Repeats the final response of a task, unless the task is being done again."""

        def spell() -> bytes:
            final = self._finals.get(task)
            return final.line if final and self._job(task) is None else b""

        self._write(spell)


def _fault_of(error: BaseException) -> Fault:
    """Returns the fault of a failed job. If delegated work failed and the skill did not catch that,
    the job fails with the same fault."""
    if isinstance(error, WorkCancelled) and error.fault:
        error = error.fault
    if isinstance(error, Fault):
        return Fault(error.code, error.message, error.details, error.recoverable)
    return Fault("INTERNAL_ERROR", spoken(error))
