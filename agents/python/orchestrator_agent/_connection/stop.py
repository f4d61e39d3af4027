"""Stop signals for functions that do work."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Callable, Iterator, List, Optional

__all__ = ["Stop", "current_stop", "stopping"]


class Stop:
    """A signal to stop, with a cause. It is set at most once, and sets all stops below it."""

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
        """The cause: Cancelled, Replaced, Shutdown or Closed; None while nothing has to stop."""
        return self._cause

    def is_set(self) -> bool:
        """Reports whether it is time to stop."""
        return self._ended.is_set()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is time to stop, or for timeout seconds. Reports whether it is."""
        return self._ended.wait(timeout)

    def check(self) -> None:
        """Raises the cause if it is time to stop. Long loops should call it."""
        if self._cause is not None:
            raise self._cause

    def end(self, cause: Optional[BaseException]) -> None:
        """Sets the signal. Only the first cause counts."""
        with self._lock:
            if self._ended.is_set():
                return
            self._cause = cause
            self._ended.set()
            bells, self._bells = self._bells, []
        for bell in bells:
            bell()

    def on_end(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Registers a function to call when the signal is set, or calls it now if it is. Returns a
        function that unregisters it."""
        with self._lock:
            if not self._ended.is_set():
                self._bells.append(bell)
                return lambda: self._take_back(bell)
        bell()
        return lambda: None

    def leave(self) -> None:
        """Detaches the signal from the one above it."""
        self._leave()

    def _take_back(self, bell: Callable[[], None]) -> None:
        with self._lock:
            if bell in self._bells:
                self._bells.remove(bell)


class _Here(threading.local):
    stop: Optional[Stop] = None


_here = _Here()


def current_stop() -> Optional[Stop]:
    """Returns the stop signal of the handler that runs in this thread, or None."""
    return _here.stop


@contextmanager
def stopping(stop: Stop) -> Iterator[None]:
    """Makes a stop the current one while a handler runs."""
    before, _here.stop = _here.stop, stop
    try:
        yield
    finally:
        _here.stop = before
