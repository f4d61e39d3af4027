"""Items that the orchestrator asks of the agent, queued until serve takes them."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, Iterator, Optional, cast

from .._connection.stop import Stop
from .._wire.errors import Refused
from .._wire.lines import without_doubled
from .._wire.taskdocuments import TaskRequest
from .._wire.taskshape import ACTS, STATUS, act_problem, request_problem

__all__ = ["Asked", "Hatch"]

REQUEST, REFUSED, LEAVE = "request", "refused", "leave"

#: Bounds of the queue while no serve runs: the number of items, and the bytes of their lines.
MOST, LARGEST = 1000, 8 << 20


@dataclass(frozen=True)
class Asked:
    """One item asked of an agent that serves: a task request, an act on a task, a refusal of a
    message of the agent, or a request to shut down."""

    kind: str  #: request, one of ACTS, refused or leave
    task: str = ""
    message: Dict[str, Any] = field(default_factory=dict)
    refused: Optional[Refused] = None
    size: int = 0  #: of the line

    def like(self, before: Optional[str]) -> bool:
        """Reports whether the item asks for nothing beyond the previous one about the same task."""
        return self.kind == before and self.kind in (REQUEST, STATUS, LEAVE)

    @property
    def request(self) -> TaskRequest:
        """The task request, without members that are null or duplicate."""
        return cast(TaskRequest, {
            key: {name: each for name, each in value.items() if each is not None}
            if key in ("context", "routing", "observability") else value
            for key, value in without_doubled(self.message).items() if value is not None
        })


class Hatch:
    """The queue of the items asked of the agent. The reading thread fills it; serve empties it."""

    def __init__(self, tell: Callable[[Callable[[], int]], None]) -> None:
        self._changed = threading.Condition()
        self._asked: Deque[Asked] = deque()
        self._latest: Dict[str, Asked] = {}  # the latest queued item of each task
        self._size = 0
        self._dropped = 0  # items dropped and not yet logged
        self._tell = tell  # logs the number of dropped items, after a pause
        self._over = False
        self._serving = 0  # the number of calls of serve

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Returns a context in which serve runs."""
        with self._changed:
            self._serving += 1
        try:
            yield
        finally:
            with self._changed:
                self._serving -= 1

    def protest(self, task: str, why: Refused) -> None:
        """Queues a refusal that no caller waits for, if serve runs. The refusal may be about a
        response."""
        if self._serving:
            self._put(Asked(REFUSED, task, refused=why))

    def hand(self, message: Dict[str, Any], size: int) -> None:
        """Queues a message that is a task request or an act on one."""
        kind = message["type"]
        if kind in ACTS:
            if not act_problem(message):
                self._put(Asked(kind, message["id"], message, size=size))
        elif not request_problem(message):
            self._put(Asked(REQUEST, message["id"], message, size=size))

    def leave(self) -> None:
        """Queues the request to shut down."""
        self._put(Asked(LEAVE))

    def _put(self, asked: Asked) -> None:
        """Queues an item. The agent never has more requests than tasks that it may hold, and
        repeated status queries are queued once. While no serve runs, the oldest items are dropped
        to bound the queue."""
        with self._changed:
            before = self._latest.get(asked.task)
            if not asked.like(before.kind if before else None):
                self._latest[asked.task] = asked
                self._asked.append(asked)
                self._size += asked.size
                while not self._serving and len(self._asked) > 1 and (len(self._asked) > MOST or self._size > LARGEST):
                    self._drop()
                self._changed.notify_all()

    def _drop(self) -> None:
        """Drops the oldest item that is not a shutdown. The first drop starts a thread that logs
        the count."""
        oldest = next(each for each in self._asked if each.kind != LEAVE)
        self._asked.remove(oldest)
        self._taken(oldest)
        self._dropped += 1
        if self._dropped == 1:
            threading.Thread(target=self._tell, args=(self._count,), name="dropped", daemon=True).start()

    def _count(self) -> int:
        """Returns the number of dropped items and resets it."""
        with self._changed:
            dropped, self._dropped = self._dropped, 0
            return dropped

    def _taken(self, asked: Asked) -> None:
        self._size -= asked.size
        if self._latest.get(asked.task) is asked:
            del self._latest[asked.task]

    def end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def all(self, stop: Stop) -> Iterator[Asked]:
        """Iterates over the items in order. Ends when stop is set, or when the stream has ended and
        all items are taken."""
        leave = stop.on_end(self._wake)
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._asked or self._over or stop.is_set())
                    if stop.is_set() or not self._asked:
                        return
                    asked = self._asked.popleft()
                    self._taken(asked)
                yield asked
        finally:
            leave()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
