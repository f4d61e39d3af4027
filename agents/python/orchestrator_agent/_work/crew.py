"""Common parts of all roles: threads that are waited for, error reports, and the end."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Callable, Optional, Set

from .._connection.stop import Stop
from .._connection.stream import Stream
from .._wire.errors import (
    AgentError, Cancelled, Closed, Failed, Fatal, Fault, Replaced, Shutdown, Stopped, Torn, Unanswered, Unasked, Unfinished,
    WorkCancelled,
)

__all__ = ["GivenUp", "Role", "gave_up", "off", "spoken"]


class GivenUp(Exception):
    """Raised when work is left unfinished because the agent has to shut down."""


def gave_up(stop: Stop, error: Optional[BaseException]) -> bool:
    """Reports whether an error only means that the agent has to shut down. A request may fail at
    the end of the stream before the shutdown notice is processed."""
    return isinstance(error, (Unasked, Unanswered)) or stop.is_set() and isinstance(error, Stopped)


def off(stop: Stop) -> bool:
    """Reports whether the work was cancelled or replaced, so that no caller waits for its
    outcome."""
    return isinstance(stop.cause, (Cancelled, Replaced))


def spoken(error: BaseException) -> str:
    """Returns the text of an error, which is never empty."""
    text, name = str(error), type(error).__name__
    if isinstance(error, KeyError):
        return f"{name}: {text}"
    if text.strip():
        return text
    return "it failed without a word" if isinstance(error, AgentError) else name


def shown(error: BaseException) -> None:
    """Prints the traceback of a function of the agent's author to stderr, unless it failed on
    purpose."""
    if not isinstance(error, (Failed, Fatal, Fault, Stopped, WorkCancelled)):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)


class Role:
    """A loop of an agent that runs until the agent has to shut down."""

    def __init__(self, conn: Stream) -> None:
        self._conn = conn
        self._stop = Stop()
        self._changed = threading.Condition()
        self._running: Set[threading.Thread] = set()
        self._unfinished = 0

    def _go(self, do: Callable[[], None], name: str) -> None:
        """Runs a function in its own thread, which _conclude waits for."""

        def run() -> None:
            try:
                do()
            except Exception as error:
                self._troubled(error)
            finally:
                with self._changed:
                    self._running.discard(threading.current_thread())
                    self._changed.notify_all()

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._changed:
            self._running.add(thread)
        try:
            thread.start()
        except RuntimeError:  # too many threads
            with self._changed:
                self._running.discard(thread)
            raise

    def _conclude(self, ending: AgentError) -> None:
        """Waits for all threads, and raises the error of the loop if there is one."""
        self._stop.end(ending)  # unless it has ended before, for another reason
        with self._changed:
            self._changed.wait_for(lambda: not self._running)
        cause = self._stop.cause
        if cause is not None and not isinstance(cause, (Shutdown, Closed)):
            raise cause
        if self._unfinished > 0:
            raise Unfinished(self._unfinished, cause or ending)

    def _left(self) -> None:
        with self._changed:
            self._unfinished += 1

    def _troubled(self, error: Optional[BaseException]) -> None:
        """Logs an error, if there is one. Stops the loop only if writing has failed."""
        if error is None:
            return
        try:
            if not isinstance(error, Torn):
                self._conn.log("warn", spoken(error))
                return
        except Torn as torn:
            error = torn
        self._stop.end(error)
