"""The developer of a session: acknowledges each task, reports progress, and always reports the
outcome."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, cast

from .._connection.said import Said
from .._connection.stop import Stop, stopping
from .._wire.errors import Failed, Undelivered, Unsaid
from .._wire.sessiondocuments import Assignment, Completion, Progress, TaskInput
from .._work.crew import GivenUp, gave_up, off, shown, spoken
from .._work.session import Member
from .desk import CORRECTIONS, Desk, Errand

__all__ = ["Assigned", "Develop", "Developer", "Rescope"]

WAITING = "waiting for its turn"


class Assigned:
    """An assignment as its developer holds it."""

    def __init__(self, session: Member, said: Said, stop: Stop) -> None:
        self.assignment = cast(Assignment, said.payload)
        self.task = cast(TaskInput, said.payload["task"])
        self.id: str = said.payload["task"]["task_id"]  #: the id of the task
        self.description: str = said.payload["task"]["task_description"]
        self.said = said  #: the message that it came with
        self.session = session
        self.stop = stop  #: tells the developer to stop
        self._lock = threading.Lock()
        self._percent: float = 0
        self._step = ""
        self._files: List[str] = []
        self._last = 0.0  # of the latest report

    def progress(self, percent: float, step: str, files: Sequence[str] = ()) -> None:
        """Reports to the architect how far the task is, from 0 to 100, its current step, and the
        files modified so far. The task goes on."""
        with self._lock:
            before = self._percent, self._step, self._files
            self._percent, self._step, self._files = percent, step, list(files)
        try:
            self._tell()
        except Unsaid:
            with self._lock:
                self._percent, self._step, self._files = before
            raise

    def _tell(self) -> None:
        with self._lock:
            now: Progress = {
                "progress_percent": self._percent, "current_step": self._step or WAITING, "files_modified_so_far": self._files,
            }
            self._last = time.monotonic()
        self.session.report(self.said, now)

    def _at(self, step: str) -> None:
        """Sets the current step, unless the developer has reported one."""
        with self._lock:
            self._step = self._step or step

    def _status(self) -> Dict[str, Any]:
        with self._lock:
            return {"task_id": self.id, "progress_percent": self._percent, "current_step": self._step or WAITING}

    def _report(self, enough: Stop, after: float, every: float) -> None:
        """Sends progress at regular intervals, so that a long task can be told from one that hangs.
        A report that fails is not repeated; the next one follows in time."""
        first = time.monotonic() + after
        while True:
            with self._lock:
                due = max(first, self._last + every) if self._last else first
            if enough.wait(max(due - time.monotonic(), 0)):
                return
            with self._lock:
                told = bool(self._last) and self._last + every > time.monotonic()
            if not told:
                try:
                    self._tell()
                except Exception:  # a broken stream shows in the completion
                    first = time.monotonic() + every


Develop = Callable[[Assigned], Optional[Completion]]
Rescope = Callable[[Assigned, Undelivered], Optional[Completion]]


class Developer(Desk):
    """Does the tasks of a session as they are assigned."""

    def __init__(
        self, session: Member, do: Develop, rescope: Optional[Rescope], capacity: int,
        hear: Optional[Callable[[Said], None]], after: float, every: float,
    ) -> None:
        super().__init__(session, self._assigned, capacity, hear)
        self.develop = do
        self.rescope = rescope
        self.after = after
        self.every = every

    def _assigned(self, said: Said) -> Optional[Errand]:
        """Returns the errand for an assignment, or None for any other message."""
        return _Task(self, said) if said.message_type == "task_assignment" else None


class _Task(Errand):
    def __init__(self, desk: Developer, said: Said) -> None:
        task = said.payload["task"]["task_id"]
        super().__init__(said, task, task)
        self._desk = desk
        self._assigned: Optional[Assigned] = None

    def status(self) -> Dict[str, Any]:
        if self._assigned:
            return self._assigned._status()
        return {"task_id": self.task, "progress_percent": 0, "current_step": WAITING}

    def do(self) -> None:
        """Does a task from its acknowledgment to its completion."""
        assigned = self._assigned = Assigned(self._desk.session, self.said, self.stop)
        self._desk.session.acknowledge(self.said)
        enough = Stop(self.stop)
        reporter = threading.Thread(
            target=assigned._report, args=(enough, self._desk.after, self._desk.every), name="progress " + self.task, daemon=True,
        )
        reporter.start()
        completion: Optional[Completion] = None
        error: Optional[BaseException] = None
        try:
            self._desk.turn(self)
            assigned._at("at work")
            with stopping(self.stop):
                completion = self._desk.develop(assigned)
        except BaseException as failure:  # sys.exit ends only the task
            error = failure
            shown(error)
        finally:
            enough.end(None)
            enough.leave()
            reporter.join()
        self._complete(completion, error)

    def _complete(self, what: Optional[Completion], failed: Optional[BaseException], kind: str = "exception") -> None:
        """Reports the outcome of a task, unless the task was cancelled or replaced."""
        if off(self.stop):
            return
        if gave_up(self.stop, failed):
            raise GivenUp()
        if failed is not None:
            given = failed.completion if isinstance(failed, Failed) else None
            what = failing(cast(Completion, given or {}), self.task, failed, kind)
        session = self._desk.session
        try:
            sent = session.complete(self.said, what or {})
        except Unsaid as error:
            why = Unsaid(f"what came of it cannot be told: {error}")
            sent = session.complete(self.said, failing({}, self.task, why))
        self._desk.expects(self, sent)

    def correct(self, why: Undelivered) -> None:
        """Sends another completion after one was refused. Raises the refusal if no other completion
        can help, for example because the task has ended."""
        scope = why.scope
        if scope is not None and self._desk.rescope and self.corrected < CORRECTIONS and self._assigned:
            completion: Optional[Completion] = None
            error: Optional[BaseException] = None
            try:
                with stopping(self.stop):
                    completion = self._desk.rescope(self._assigned, why)
            except BaseException as failure:
                error = failure
                shown(error)
            self._complete(completion, error)
        elif scope is not None:
            self._complete(None, Failed(f"{why}; what may be changed: {', '.join(scope)}"), "scope_violation")
        elif why.error_type == "malformed":
            self._complete(None, Failed(str(why)))
        else:
            raise why


def failing(what: Completion, task: str, error: BaseException, kind: str = "exception") -> Completion:
    """Returns the completion of a failed task."""
    why = spoken(error)
    if isinstance(error, TimeoutError):
        kind = "timeout"
    failed = cast(Completion, dict(what))
    failed["status"] = "failed"
    failed["summary"] = what.get("summary") or why
    failed["blockers"] = [*(what.get("blockers") or []), why]
    if not failed.get("error"):
        failed["error"] = {
            "task_id": task, "error_type": kind, "error_message": why, "recoverable": True, "suggested_action": "retry",
        }
    return failed
