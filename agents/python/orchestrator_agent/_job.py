"""A task at work."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, Iterator, Optional, cast

from ._documents import Task
from ._errors import Withdrawn
from ._lines import without_none
from ._stop import Stop

if TYPE_CHECKING:
    from ._connection import Connection

__all__ = ["Job"]

#: How long one waits for news without a look: what is said to an agent that does not read in time
#: may get lost.
LOOK_AGAIN = 60.0


class Job:
    """A task at work, for the function that does it."""

    def __init__(self, conn: "Connection", task_id: str, above: Stop) -> None:
        self.id = task_id
        self.task = cast(Task, {"id": task_id})  #: as it was when the handler was called
        self.stop = Stop(above)  #: tells the handler to stop
        self._conn = conn
        self._changed = threading.Condition()
        self._said: Deque[str] = deque()
        self._news = 0  # counts what is new

    def progress(self, fraction: float, message: Optional[str] = None) -> None:
        """Tells how much of the task is done, from 0 to 1. It ends nothing."""
        self._conn.progress(self.id, fraction, message)

    def updates(self, timeout: Optional[float] = None) -> Iterator[str]:
        """What the orchestrator says of the task while it is at work, in words and from the first on:
        that its plan is approved or what is wrong with it, the answer of a person, an urgent note. It
        ends when the task has to stop, or when nothing is new for so many seconds."""
        stopped = self.stop.on_end(self._wake)
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._said or self.stop.is_set(), timeout)
                    if self.stop.is_set() or not self._said:
                        return
                    said = self._said.popleft()
                yield said
        finally:
            stopped()

    def help(self, question: str, context: Any = None) -> str:
        """Asks a person something about the task, which is out of the agent's hands until a person
        has answered, and waits for that: it may take as long as people do. Withdrawn says that the
        task went on without an answer.

        Connection.ask_user is for a question that has nothing to do with a task, or a time limit.
        """
        asked = self._conn._ask("request-help", without_none(taskId=self.id, question=question, context=context), self.stop)
        name = _help_of(asked.get("task") or {}).get("questionId")
        while True:
            news = self._count()
            task = self._look()
            now = _help_of(task)
            if now.get("questionId") == name and now.get("answeredAt"):
                return str(now.get("answer") or "")
            if task.get("state") != "needs_human":
                raise Withdrawn()
            self._await(news)

    def _look(self) -> Task:
        """Asks how the task is."""
        answer = self._conn._ask_patiently("get-task", {"taskId": self.id}, self.stop)
        return cast(Task, answer.get("task") or {})

    def _hear(self, *messages: str) -> None:
        """Tells all who wait that something is new."""
        with self._changed:
            self._said.extend(messages)
            self._news += 1
            self._changed.notify_all()

    def _count(self) -> int:
        """A caller that counts before looking at the task misses nothing."""
        with self._changed:
            return self._news

    def _await(self, news: int) -> None:
        """Waits for what is new, or until it is time to look again."""
        stopped = self.stop.on_end(self._wake)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._news != news or self.stop.is_set(), LOOK_AGAIN)
        finally:
            stopped()
        self.stop.check()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _help_of(task: Any) -> Dict[str, Any]:
    found = task.get("help")
    return found if isinstance(found, dict) else {}
