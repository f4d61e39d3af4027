"""What the agent is asked to do, and was not taken yet."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, Iterator, Optional, cast

from ._errors import Refused
from ._lines import without_doubled
from ._stop import Stop
from ._taskdocuments import TaskRequest
from ._taskshape import ACTS, STATUS, act_problem, request_problem

__all__ = ["Asked", "Hatch"]

REQUEST, REFUSED, LEAVE = "request", "refused", "leave"

#: How much is kept while no function serves, and how much of it in bytes.
MOST, LARGEST = 1000, 8 << 20


@dataclass(frozen=True)
class Asked:
    """To do something, or something about what was asked before; or it is told that what it has said is
    refused, or that it is to go."""

    kind: str  #: request, one of ACTS, refused or leave
    task: str = ""
    message: Dict[str, Any] = field(default_factory=dict)
    refused: Optional[Refused] = None
    size: int = 0  #: of the line

    def like(self, before: Optional[str]) -> bool:
        """Whether one that comes right after another about the same task asks for nothing more."""
        return self.kind == before and self.kind in (REQUEST, STATUS, LEAVE)

    @property
    def request(self) -> TaskRequest:
        """What is not said in it is not there."""
        return cast(TaskRequest, {
            key: {name: each for name, each in value.items() if each is not None}
            if key in ("context", "routing", "observability") else value
            for key, value in without_doubled(self.message).items() if value is not None
        })


class Hatch:
    """Where what is asked waits for the function that serves. The thread that reads puts it in."""

    def __init__(self, tell: Callable[[Callable[[], int]], None]) -> None:
        self._changed = threading.Condition()
        self._asked: Deque[Asked] = deque()
        self._latest: Dict[str, Asked] = {}  # of those, by task
        self._size = 0
        self._dropped = 0  # and not told
        self._tell = tell  # how many were dropped, after a while
        self._over = False
        self._serving = 0  # how many serve

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Around serving."""
        with self._changed:
            self._serving += 1
        try:
            yield
        finally:
            with self._changed:
                self._serving -= 1

    def protest(self, task: str, why: Refused) -> None:
        """Takes a refusal for which no caller waits, while a function serves. It may be about a
        response."""
        if self._serving:
            self._put(Asked(REFUSED, task, refused=why))

    def hand(self, message: Dict[str, Any], size: int) -> None:
        """Takes a message for what it is."""
        kind = message["type"]
        if kind in ACTS:
            if not act_problem(message):
                self._put(Asked(kind, message["id"], message, size=size))
        elif not request_problem(message):
            self._put(Asked(REQUEST, message["id"], message, size=size))

    def leave(self) -> None:
        """Says that the agent is to go."""
        self._put(Asked(LEAVE))

    def _put(self, asked: Asked) -> None:
        """There are no more requests than tasks that the agent may have, and one that is asked again and
        again how it does says it once. As long as no function serves, what is asked makes room for what comes
        after it."""
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
        """Forgets the oldest of what is asked, but not that the agent is to go."""
        oldest = next(each for each in self._asked if each.kind != LEAVE)
        self._asked.remove(oldest)
        self._taken(oldest)
        self._dropped += 1
        if self._dropped == 1:
            threading.Thread(target=self._tell, args=(self._count,), name="dropped", daemon=True).start()

    def _count(self) -> int:
        """How many were dropped, of which is told now."""
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
        """What is asked, in order. It ends at the stop, and with the stream when all is taken."""
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
