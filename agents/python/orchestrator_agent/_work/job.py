"""A running task, and structured results. The contracts of a result are delivered to the tasks
that depend on it."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Deque, Dict, Iterator, List, Mapping, Optional, cast

from .._connection.stop import Stop
from .._connection.stream import Stream
from .._wire.documents import Task, TaskArtifact
from .._wire.errors import Withdrawn
from .._wire.lines import without_none

__all__ = ["Job", "fulfilled", "partial", "result", "skipped"]

#: Bounds the wait for news, because a notice may be lost if the agent reads too slowly.
LOOK_AGAIN = 60.0


class Job:
    """A running task, for the function that does it.

    job.id is the id of the task. job.task is the task as it was when the function was called, a dict:
    job.task["name"], job.task.get("description"), job.task["payload"]. If the agent has a workspace,
    job.task["workspace"]["path"] is the folder of the task, a git worktree with a branch. job.stop tells the
    function to stop."""

    def __init__(self, conn: Stream, task_id: str, above: Stop) -> None:
        self.id = task_id
        self.task = cast(Task, {"id": task_id})  #: as it was when the handler was called
        self.stop = Stop(above)  #: tells the handler to stop
        self._conn = conn
        self._changed = threading.Condition()
        self._said: Deque[str] = deque()
        self._news = 0  # number of updates
        self._made: List[TaskArtifact] = []

    def progress(self, fraction: float, message: Optional[str] = None, output: Any = None) -> None:
        """Reports how much of the task is done, from 0 to 1, and what there is so far. It does not
        complete the task."""
        self._conn.progress(self.id, fraction, message, output)

    def artifact(
        self, name: Optional[str] = None, type: Optional[str] = None, content: Optional[str] = None,
        *, path: Optional[str] = None, ref: Optional[str] = None,
    ) -> None:
        """Keeps an artifact, which is handed in with the result: a text, or the path of a text file in
        the agent's folder, which is read when the task is completed. One that is stored elsewhere has
        a ref. The type is a MIME type."""
        made: TaskArtifact = without_none(name=name, type=type, content=content, path=path, ref=ref)  # type: ignore[assignment]
        with self._changed:
            self._made.append(made)

    def updates(self, timeout: Optional[float] = None) -> Iterator[str]:
        """Iterates over what the orchestrator reports about the task while it runs: the approval of
        its plan or feedback on it, the answer of a person, an urgent note. Starts with the first
        update. Ends when the task has to stop, or when none arrives within timeout seconds."""
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
        """Asks a person a question about the task and waits for the answer, however long it takes.
        Until then the task is out of the agent's hands. Raises Withdrawn if the task goes on
        without an answer.

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
        """Asks for the current state of the task."""
        answer = self._conn._ask_patiently("get-task", {"taskId": self.id}, self.stop)
        return cast(Task, answer.get("task") or {})

    def _hear(self, *messages: str) -> None:
        """Adds updates and wakes all waiting calls."""
        with self._changed:
            self._said.extend(messages)
            self._news += 1
            self._changed.notify_all()

    def _discard(self) -> None:
        """Drops the artifacts so far, because the task is done again."""
        with self._changed:
            self._made.clear()

    def _count(self) -> int:
        """Returns the number of updates. Call it before looking at the task, so that no update is
        missed."""
        with self._changed:
            return self._news

    def _await(self, news: int) -> None:
        """Waits for an update, or until it is time to look again."""
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


def result(
    summary: str,
    *,
    changes: Optional[Mapping[str, Any]] = None,
    contracts: Optional[Mapping[str, Mapping[str, Any]]] = None,
    tests: Optional[Mapping[str, Any]] = None,
    artifacts: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Any]:
    """Returns a structured result with a one-line summary. A handler returns it like any other
    result.

    changes may have files_modified, files_created, files_deleted, lines_added and lines_removed;
    tests may have framework, total, passed, failed, skipped and coverage_percent. contracts maps
    the keys that the task spec names to fulfilled, partial or skipped.
    """
    return {
        "$schema": "orchestratia/task-result/v1", "summary": summary,
        **without_none(changes=changes, contracts=contracts, tests=tests, artifacts=artifacts),
    }


def fulfilled(data: Any) -> Dict[str, Any]:
    """Returns a contract that is delivered completely. The data is usually an object."""
    return {"status": "fulfilled", "data": data}


def partial(data: Any) -> Dict[str, Any]:
    """Returns a contract that is delivered in part."""
    return {"status": "partial", "data": data}


def skipped(reason: str) -> Dict[str, Any]:
    """Returns a contract that is not delivered, with the reason."""
    return {"status": "skipped", "data": {"reason": reason}}
