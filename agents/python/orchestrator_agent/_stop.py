"""How those who work are told to stop."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Callable, Iterator, List, Optional

__all__ = ["Stop", "current_stop", "stopping"]


class Stop:
    """Says when something has to stop, and why. It is told once, and told to all below it."""

    def __init__(self, above: Optional["Stop"] = None) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._cause: Optional[BaseException] = None
        self._bells: List[Callable[[], None]] = []
        self._leave: Callable[[], None] = lambda: None
        if above is not None:
            self._leave = above.on_end(lambda: self.end(above.cause))

    @property
    def cause(self) -> Optional[BaseException]:
        """Why: Cancelled, Replaced, Shutdown or Closed; None as long as nothing has to stop."""
        return self._cause

    def is_set(self) -> bool:
        """Whether it is time to stop."""
        return self._ended.is_set()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is time to stop, or for so many seconds; says whether it is."""
        return self._ended.wait(timeout)

    def check(self) -> None:
        """Raises the cause when it is time to stop. For loops that take long."""
        if self._cause is not None:
            raise self._cause

    def end(self, cause: Optional[BaseException]) -> None:
        """Tells all to stop. The first cause counts."""
        with self._lock:
            if self._ended.is_set():
                return
            self._cause = cause
            self._ended.set()
            bells, self._bells = self._bells, []
        for bell in bells:
            bell()

    def on_end(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Has a function called at the end, or now if that was before. Returns how to take it back."""
        with self._lock:
            if not self._ended.is_set():
                self._bells.append(bell)
                return lambda: self._take_back(bell)
        bell()
        return lambda: None

    def leave(self) -> None:
        """Notes that no one below has to be told any more."""
        self._leave()

    def _take_back(self, bell: Callable[[], None]) -> None:
        with self._lock:
            if bell in self._bells:
                self._bells.remove(bell)


class _Here(threading.local):
    stop: Optional[Stop] = None


_here = _Here()


def current_stop() -> Optional[Stop]:
    """What tells the handler to stop in whose thread this is called; None anywhere else."""
    return _here.stop


@contextmanager
def stopping(stop: Stop) -> Iterator[None]:
    """Makes a stop the current one while a handler runs."""
    before, _here.stop = _here.stop, stop
    try:
        yield
    finally:
        _here.stop = before
