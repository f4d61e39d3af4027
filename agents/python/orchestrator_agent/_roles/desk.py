"""The work of a developer or a reviewer: one errand for each message that asks for work."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional

from .._connection.inbox import Event, Notice, Recent
from .._connection.said import Said, Sent
from .._connection.stop import Stop
from .._wire.errors import AgentError, Cancelled, Replaced, Shutdown, Torn, Undelivered
from .._work.crew import GivenUp, Role, spoken
from .._work.session import Member

__all__ = ["Desk", "Errand"]

#: How often a refused answer is corrected.
CORRECTIONS = 3


class Errand:
    """Work that a session message asks for. Each role has its own kind."""

    def __init__(self, said: Said, key: str, task: str) -> None:
        self.said = said
        self.key = key
        self.task = task
        self.stop = Stop()
        self.before: Optional[Errand] = None  # the errand that it replaces
        self.done = threading.Event()  # set when do has returned
        self.corrected = 0

    def status(self) -> Dict[str, Any]:
        """Returns the status of the errand, for a status query."""
        raise NotImplementedError

    def do(self) -> None:
        """Does the work until the message is answered."""
        raise NotImplementedError

    def correct(self, why: Undelivered) -> None:
        """Sends another answer after one was refused."""
        raise NotImplementedError


class Desk(Role):
    """Processes events until the agent is told to shut down or the stream ends."""

    def __init__(
        self, session: Member, begin: Callable[[Said], Optional[Errand]], capacity: int, hear: Optional[Callable[[Said], None]]
    ) -> None:
        super().__init__(session.conn)
        self.session = session
        self._begin = begin
        self._hear = hear
        self._free = max(capacity, 1)
        self._queue: Deque[Errand] = deque()  # errands that wait for their turn
        self._errands: Dict[str, Errand] = {}  # errands that are not answered, by key
        self._answered: Recent[Errand] = Recent()  # by the message_id of the answer

    def run(self) -> None:
        for event in self._conn._inbox.events(self._stop):
            self._heed(event)
        self._stop.end(self._conn._inbox.failure())
        with self._changed:
            self._changed.wait_for(lambda: not self._running)
        self._conn._again.all_said()  # the work is done, but its outcome may not be sent yet
        self._conclude(self._conn._inbox.failure())

    def _heed(self, event: Event) -> None:
        """Processes an event without blocking."""
        if event.notice:
            self._noticed(event.notice)
        elif event.lost:
            self._lost(event.lost)
        elif event.said:
            self._told(event.said)

    def _noticed(self, notice: Notice) -> None:
        if notice.name == "shutdown":
            self._stop.end(Shutdown())
        elif notice.name == "task-cancelled":
            self._cancel(str(notice.payload.get("taskId") or ""), str(notice.payload.get("reason") or ""))

    def _told(self, said: Said) -> None:
        self.session._count.saw(said.sequence_number)
        if self._hear:
            self._hear(said)
        if said.message_type == "abort":
            self._abort(said.payload)
        elif said.message_type == "status_query":
            self._go(lambda: self._tell_status(said), "status")
        else:
            errand = self._begin(said)
            if errand:
                self._start(errand)

    def _abort(self, what: Dict[str, Any]) -> None:
        """Cancels what an architect aborts. Ignores aborts of other sessions."""
        mine = self.session.identity.session
        if what["scope"] == "task":
            self._cancel(what["target_id"], what["reason"])
        elif not mine or mine == what["target_id"]:
            self._cancel("", what["reason"])

    def _cancel(self, task: str, reason: str) -> None:
        """Stops the errands of a task, or all if task is "". Removes them at once, even if they
        still run, because the task may be assigned again meanwhile."""
        with self._changed:
            stopped = [errand for errand in self._errands.values() if not task or task == errand.task]
            for errand in stopped:
                del self._errands[errand.key]
        for errand in stopped:
            errand.stop.end(Cancelled(reason))

    def _tell_status(self, query: Said) -> None:
        task = query.payload.get("task_id")
        with self._changed:
            errands = list(self._errands.values())
        tasks = sorted((e.status() for e in errands if not task or task == e.task), key=lambda s: str(s["task_id"]))
        self.session.tell_status(query, {"status": "busy" if errands else "idle", "tasks": tasks})

    # Errands.

    def _start(self, errand: Errand) -> None:
        """Begins an errand. An older errand with the same key is stopped: the last message
        counts."""
        errand.stop = Stop(self._stop)
        with self._changed:
            errand.before = self._errands.get(errand.key)
            self._errands[errand.key] = errand
            self._queue.append(errand)
        if errand.before:
            errand.before.stop.end(Replaced())
        self._go(lambda: self._perform(errand), "task " + errand.task)

    def _perform(self, errand: Errand) -> None:
        try:
            self._finish(errand, errand.do)
        finally:
            self._leave(errand)
            errand.stop.leave()
            if errand.before:  # a caller that waits for this one waits for both
                errand.before.done.wait()
            errand.done.set()
            self._wake()  # an errand may wait for this one

    def turn(self, errand: Errand) -> None:
        """Waits until an errand may be done. Errands with the same key never run together, because
        they would change the same files."""
        stopped = errand.stop.on_end(self._wake)
        try:
            with self._changed:
                self._changed.wait_for(lambda: errand.stop.is_set() or self._may(errand))
                errand.stop.check()
                self._queue.remove(errand)
                self._free -= 1
                errand.before = None
                self._changed.notify_all()
        finally:
            stopped()

    def _may(self, errand: Errand) -> bool:
        """Reports whether it is an errand's turn: it is the first that waits for no other
        errand."""
        if self._free < 1:
            return False
        ready = (e for e in self._queue if e.before is None or e.before.done.is_set())
        return next(ready, None) is errand

    def _leave(self, errand: Errand) -> None:
        """Gives the place of an errand to the next one."""
        with self._changed:
            if errand in self._queue:
                self._queue.remove(errand)
            else:
                self._free += 1
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _finish(self, errand: Errand, do: Callable[[], None]) -> None:
        """Runs a function for an errand, then removes the errand and logs the error."""
        trouble: Optional[BaseException] = None
        try:
            do()
        except GivenUp:
            self._left()
        except Torn as torn:
            trouble = torn
        except Exception as error:
            trouble = AgentError(f"task {errand.task}: {spoken(error)}")
        with self._changed:
            if self._errands.get(errand.key) is errand:
                del self._errands[errand.key]
        self._troubled(trouble)

    def expects(self, errand: Errand, answer: Sent) -> None:
        """Remembers the answer of an errand, because it may be refused. Handles a refusal that has
        already arrived."""
        with self._changed:
            self._answered.add(answer.message_id, errand)
        if answer.undelivered:
            self._lost(answer)

    def _lost(self, sent: Sent) -> None:
        """Handles a message of the agent that was not delivered."""
        with self._changed:
            errand = self._answered.take(sent.message_id)
        why = sent.undelivered
        if why is None or errand is None and sent.message_type in ("task_completion", "review_result"):
            return  # expects has yet to be called, and handles it
        if errand is None:
            self._troubled(why)
        elif errand.corrected >= CORRECTIONS:
            self._troubled(AgentError(f"task {errand.task}, given up: {why}"))
        else:
            errand.corrected += 1
            self._go(lambda: self._finish(errand, lambda: errand.correct(why)), "correct " + errand.task)
