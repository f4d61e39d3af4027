"""The loop of an agent that does delegated work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

from ._asked import LEAVE, REFUSED, REQUEST, Asked
from ._crew import Role, gave_up, shown, spoken
from ._delegated import Delegated
from ._delegation import Aside, Delegation
from ._errors import Cancelled, Fault, Shutdown, Stopped, Unsaid, WorkCancelled
from ._finals import Final
from ._lines import said_line
from ._places import Places
from ._protest import Protests
from ._response import response_of_fault
from ._stop import Stop, stopping
from ._taskshape import CANCEL, STATUS, response_problem

if TYPE_CHECKING:
    from ._connection import Connection

__all__ = ["Server", "Skill"]

Skill = Callable[[Delegated], Any]


class Server(Role):
    """Does delegated jobs, each in its own thread, which starts when the job has a place.

    The states of a job:

        pending         it waits in line
        in_progress     its skill runs
        input_required  its skill waits for input
        over            its final response is sent; the skill of a cancelled job may still run
    """

    def __init__(self, conn: "Connection", skills: Mapping[str, Skill], agent: str, capacity: Optional[int]) -> None:
        super().__init__(conn)
        self.agent = agent or os.environ.get("ORC_AGENT_ID", "")
        self.stop = self._stop
        self.finals = conn._finals
        self.write = conn._writer.write
        self.rest = conn._again._rest
        self._protests = Protests(self)
        self._enough = Stop()  # ends the loop of run
        self._busy = 0  # number of running threads
        self._skills = dict(skills)
        self.changed = self._changed  #: guards all jobs
        self.places = Places(
            self._changed, capacity, self._stop, lambda job: self.go(lambda: self._perform(job), "job " + job.id),
        )
        self._jobs: Dict[str, Delegated] = {}  # by task, until the skill has returned

    def run(self) -> None:
        """Handles requests until the stream ends, or until the last skill has returned after a
        shutdown."""
        self._stop.on_end(self._over)
        for asked in self._conn._hatch.all(self._enough):
            try:
                self._heed(asked)
            except Exception as error:
                self._troubled(error)
        ending = self._conn._inbox.failure()
        self._stop.end(ending)
        with self._changed:
            self._unfinished += self.places.clear()  # these will not begin
        self._conclude(ending)

    def go(self, do: Callable[[], None], name: str) -> None:
        """Runs a function in its own thread, which run waits for."""

        def run() -> None:
            try:
                do()
            finally:
                self.change(self._done)
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

    def job(self, task: str) -> Optional[Delegated]:
        """Returns the job of a task, or None if there is none that is not over."""
        with self._changed:
            job = self._jobs.get(task)
            return None if job is None or job._over else job

    def _heed(self, asked: Asked) -> None:
        """Handles one item. It blocks only on writing to the orchestrator."""
        if asked.kind == LEAVE:
            self._stop.end(Shutdown())
            return
        job = self.job(asked.task)
        if asked.kind == REQUEST:
            if job is None:
                self._requested(asked)
        elif asked.kind == REFUSED and asked.refused:
            self._protests.heed(asked.task, job, asked.refused)
        elif job is None:
            if asked.kind == STATUS:
                self._tell_again(asked.task)
        elif asked.kind == STATUS:
            self.say_of(job, job._standing)
        elif asked.kind == CANCEL:
            self._cancel(job, asked.message["payload"].get("reason") or "")
        else:
            self.say_of(job, lambda: job._answer(asked.message["payload"]["input"]))

    def _requested(self, asked: Asked) -> None:
        """Begins the job of a request. If the final response of the task is remembered, repeats
        that instead, unless the task may be done again."""
        final = self.finals.get(asked.task)
        if final is not None and not final.again:
            self._tell_again(asked.task)
            return
        job = Delegated(self, asked.request)
        if job.type not in self._skills:
            fault = Fault("CAPABILITY_NOT_FOUND", f"this agent has no skill for {job.type}")
            job.stop.leave()
            self._end(job, "failed", response_of_fault(fault))
            return
        with self._changed:
            job._before = self._jobs.get(job.id)
            self._jobs[job.id] = job
            self.places.join(job)

    def _tell_again(self, task: str) -> None:
        """Repeats the final response of a task, if it is still remembered."""
        final = self.finals.get(task)
        if final is not None:
            line = final.line
            self.write(lambda: line)

    def _cancel(self, job: Delegated, reason: str) -> None:
        """Ends a job at once. The result of its skill is ignored; a repeated request waits until
        the skill has returned."""
        with self._changed:
            if job._closed:
                return
            job._closed = True
            waits = self.places.drop(job)
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
                self.finals.add(job.id, final)
            return line

        self.write(spell)

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
            self.places.leave(job)

    # Responses and waits.

    def say(self, job: Delegated, spell: Callable[[], Dict[str, Any]]) -> None:
        """Sends a response of a job that is not over. It is spelled when its turn to be written
        comes. So no response follows a final one, and every status is current when written. An
        empty response is not sent."""

        def line() -> bytes:
            with self._changed:
                job._check()
                said = spell()
                self._changed.notify_all()
                return said_line(said) if said else b""

        self.write(line)

    def say_of(self, job: Delegated, spell: Callable[[], Dict[str, Any]]) -> None:
        """Like say, for a response that another agent asked for. Sends nothing if the job is over
        meanwhile."""
        try:
            self.say(job, spell)
        except (Stopped, Unsaid):
            pass

    def change(self, change: Callable[[], None]) -> None:
        """Changes the state of a job, and wakes all waiting calls."""
        with self._changed:
            change()
            self._changed.notify_all()

    def delegate(self, request: Mapping[str, Any], aside: Aside) -> Delegation:
        """Delegates a part of a job."""
        return self._conn._delegations.ask(request, aside)


def _fault_of(error: BaseException) -> Fault:
    """Returns the fault of a failed job. If delegated work failed and the skill did not catch that,
    the job fails with the same fault."""
    if isinstance(error, WorkCancelled) and error.fault:
        error = error.fault
    if isinstance(error, Fault):
        return Fault(error.code, error.message, error.details, error.recoverable)
    return Fault("INTERNAL_ERROR", spoken(error))
