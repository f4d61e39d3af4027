"""What all roles have in common: threads that are waited for, trouble that is told, and an end."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import TYPE_CHECKING, Callable, Optional, Set

from ._errors import (
    AgentError, Cancelled, Closed, Failed, Fatal, Fault, Replaced, Shutdown, Stopped, Torn, Unanswered, Unasked, Unfinished,
    WorkCancelled,
)
from ._stop import Stop

if TYPE_CHECKING:
    from ._connection import Connection

__all__ = ["GivenUp", "Role", "gave_up", "off", "spoken"]


class GivenUp(Exception):
    """Says that something was left unfinished, because the agent has to go."""


def gave_up(stop: Stop, error: Optional[BaseException]) -> bool:
    """Says whether an error means no more than that the agent has to go. The end of the stream may
    show in a question before the notice was heeded."""
    return isinstance(error, (Unasked, Unanswered)) or stop.is_set() and isinstance(error, Stopped)


def off(stop: Stop) -> bool:
    """Tells whether no caller wants to know any more what came of something."""
    return isinstance(stop.cause, (Cancelled, Replaced))


def spoken(error: BaseException) -> str:
    """What an error says, in words. Something must be said."""
    text, name = str(error), type(error).__name__
    if isinstance(error, KeyError):
        return f"{name}: {text}"
    if text.strip():
        return text
    return "it failed without a word" if isinstance(error, AgentError) else name


def shown(error: BaseException) -> None:
    """Shows on stderr where a function of the agent's author failed, if that was not by intent."""
    if not isinstance(error, (Failed, Fatal, Fault, Stopped, WorkCancelled)):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)


class Role:
    """Something that an agent does until it has to go."""

    def __init__(self, conn: "Connection") -> None:
        self._conn = conn
        self._stop = Stop()
        self._changed = threading.Condition()
        self._running: Set[threading.Thread] = set()
        self._unfinished = 0

    def _go(self, do: Callable[[], None], name: str) -> None:
        """Does something in a thread of its own, for which _conclude waits."""

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
        except RuntimeError:  # there are too many
            with self._changed:
                self._running.discard(thread)
            raise

    def _conclude(self, ending: AgentError) -> None:
        """Waits for everything, and raises what there is to say at the end."""
        self._stop.end(ending)  # which is why there is nothing more, if nothing else was
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
        """Tells what went wrong, if something did. The rest goes on, unless nothing can be said any
        more."""
        if error is None:
            return
        try:
            if not isinstance(error, Torn):
                self._conn.log("warn", spoken(error))
                return
        except Torn as torn:
            error = torn
        self._stop.end(error)
