"""Places for the jobs that are done, in the order in which they were asked for."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque, Optional

from ._delegated import Delegated
from ._errors import Stopped
from ._stop import Stop

__all__ = ["Places"]


class Places:
    """A job that waits for something gives its place to another one: otherwise two agents that wait for
    each other would wait for ever. When it goes on it comes before those that have not begun. What is
    not said to take the lock is called by those who hold it."""

    def __init__(
        self, changed: threading.Condition, capacity: Optional[int], stop: Stop, begin: Callable[[Delegated], None]
    ) -> None:
        self._changed = changed
        self._free = float("inf") if capacity is None or capacity < 1 else capacity
        self._stop = stop
        self._begin = begin
        self._line: Deque[Delegated] = deque()  # that have not begun
        self._back: Deque[Delegated] = deque()  # that have waited for something

    def join(self, job: Delegated) -> None:
        """Has a job begin when it is its turn."""
        self._line.append(job)
        self.let_in()

    def drop(self, job: Delegated) -> bool:
        """Takes one out of the line that has not begun; False when it has."""
        if job not in self._line:
            return False
        self._line.remove(job)
        return True

    def clear(self) -> int:
        """Takes all of those out, and counts them."""
        count = len(self._line)
        self._line.clear()
        return count

    def let_in(self) -> None:
        """Gives the places that are free to those who wait for one. Nothing begins when the agent has to
        go, and no job before the one of the same task has returned."""
        while self._free > 0 and self._back:
            self._free -= 1
            self._back.popleft()._placed = True
        while self._free > 0 and not self._stop.is_set():
            job = next((each for each in self._line if each._before is None or each._before._returned), None)
            if job is None:
                break
            try:
                self._begin(job)
            except RuntimeError:  # no thread can be started; when another job leaves one may
                break
            self._free -= 1
            self._line.remove(job)
            job._began()
        self._changed.notify_all()

    def leave(self, job: Delegated) -> None:
        """Takes the place of a job away, or the one that it waits for."""
        if job in self._back:
            self._back.remove(job)
        if job._placed:
            job._placed = False
            self._free += 1
        self.let_in()

    def step_aside(self, job: Delegated) -> None:
        """Makes room while a job waits for something. It takes the lock."""
        with self._changed:
            job._waiting += 1
            self.leave(job)

    def step_back(self, job: Delegated) -> None:
        """Waits for a place, unless the job is to end or needs none: it has one, or waits for something
        else. It takes the lock."""
        with self._changed:
            job._waiting -= 1
            if job._waiting or job._placed or job._returned:
                return
            if job not in self._back:
                self._back.append(job)
            self.let_in()
        try:
            job._wait_for(lambda: job._placed or job._returned or job._waiting > 0)
        except Stopped:
            with self._changed:
                if job in self._back:
                    self._back.remove(job)
