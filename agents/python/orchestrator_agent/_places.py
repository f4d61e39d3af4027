"""Places for running jobs, given out in the order of requests."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque, Optional

from ._delegated import Delegated
from ._errors import Stopped
from ._stop import Stop

__all__ = ["Places"]


class Places:
    """The places of a server. A waiting job gives up its place; otherwise two agents that wait for
    each other would deadlock. A job that continues goes before jobs that have not begun. The caller
    holds the lock, except for methods that take it."""

    def __init__(
        self, changed: threading.Condition, capacity: Optional[int], stop: Stop, begin: Callable[[Delegated], None]
    ) -> None:
        self._changed = changed
        self._free = float("inf") if capacity is None or capacity < 1 else capacity
        self._stop = stop
        self._begin = begin
        self._line: Deque[Delegated] = deque()  # jobs that have not begun
        self._back: Deque[Delegated] = deque()  # jobs that have finished waiting

    def join(self, job: Delegated) -> None:
        """Adds a job to the line. It begins when it gets a place."""
        self._line.append(job)
        self.let_in()

    def drop(self, job: Delegated) -> bool:
        """Removes a job from the line. Returns False if it has begun."""
        if job not in self._line:
            return False
        self._line.remove(job)
        return True

    def clear(self) -> int:
        """Removes all jobs from the line and returns their number."""
        count = len(self._line)
        self._line.clear()
        return count

    def let_in(self) -> None:
        """Gives free places to waiting jobs. No job begins when the agent has to shut down, or
        before the previous job of the same task has returned."""
        while self._free > 0 and self._back:
            self._free -= 1
            self._back.popleft()._placed = True
        while self._free > 0 and not self._stop.is_set():
            job = next((each for each in self._line if each._before is None or each._before._returned), None)
            if job is None:
                break
            try:
                self._begin(job)
            except RuntimeError:  # no thread can be started; perhaps when another job leaves
                break
            self._free -= 1
            self._line.remove(job)
            job._began()
        self._changed.notify_all()

    def leave(self, job: Delegated) -> None:
        """Gives up the place of a job, or its position in line for getting it back."""
        if job in self._back:
            self._back.remove(job)
        if job._placed:
            job._placed = False
            self._free += 1
        self.let_in()

    def step_aside(self, job: Delegated) -> None:
        """Gives up the place of a job that waits. Takes the lock."""
        with self._changed:
            job._waiting += 1
            self.leave(job)

    def step_back(self, job: Delegated) -> None:
        """Waits until a job has its place back. Returns without one if the job has to stop, has
        returned, or waits for something else. Takes the lock."""
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
