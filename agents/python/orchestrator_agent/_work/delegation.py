"""Delegated work, as the delegating agent sees it."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Deque, Iterator, List, Mapping, Optional, Tuple

from .._connection.pipes import Writer
from .._connection.stop import Stop, current_stop
from .._wire.errors import AgentError, Refused, Unanswered, Unasked, Unsaid
from .._wire.lines import said_line
from .._wire.response import Response
from .._wire.taskshape import CANCEL, STATUS, UPDATE, act_problem

__all__ = ["Aside", "Delegation", "at_once"]

#: Bounds of the responses that are not taken: their number, and their bytes.
MOST, LARGEST = 1000, 8 << 20

Aside = Callable[[], ContextManager[None]]  # a context around every wait


@contextmanager
def at_once() -> Iterator[None]:
    """An Aside that does nothing, for a caller without a place."""
    yield


class _Act:
    """An act under way. Acts are not answered one by one: an act waits for the next response. So
    only one act is under way at a time."""

    def __init__(self, to_the_end: bool) -> None:
        self.to_the_end = to_the_end
        self.response: Optional[Response] = None
        self.error: Optional[AgentError] = None


class Delegation:
    """Work that the agent has delegated. Its methods may be called from any thread at the same
    time. In a handler, every wait ends when the handler has to stop."""

    def __init__(self, task_id: str, writer: Writer, aside: Aside = at_once) -> None:
        self.id = task_id
        self._writer = writer
        self._aside = aside
        self._changed = threading.Condition()
        self._fresh: Deque[Tuple[Response, int]] = deque()  # not taken yet, with their sizes
        self._size = 0
        self._heard = False
        self._last: Optional[Response] = None  # the final response
        self._lost: Optional[Callable[[], AgentError]] = None  # returns why no final response will come
        self._busy = False  # an act is under way
        self._act: Optional[_Act] = None

    # Receiving.

    def responses(self, timeout: Optional[float] = None) -> Iterator[Response]:
        """Iterates over the responses up to the final one. Each response goes to one caller. Ends
        early after timeout seconds without one, when the iterating handler has to stop, when the
        request is refused, or when the stream has ended. wait raises the reason. If responses are
        not taken, only the latest are kept."""
        while True:
            try:
                response = self._await(self._take, timeout)
            except (AgentError, TimeoutError):
                return
            if response is None:
                return
            yield response

    def wait(self, timeout: Optional[float] = None) -> Response:
        """Waits for the final response; takes nothing from responses. Raises Fault if the work
        failed, WorkCancelled if it was cancelled, and Refused if the request was refused. Raises
        TimeoutError after timeout seconds. Goes on waiting while the work needs input. To send that
        input, iterate over responses."""
        last = self._await(lambda: (self._last, self._last is not None), timeout)
        assert last is not None
        failure = last.failure()
        if failure:
            raise failure
        return last

    def _take(self) -> Tuple[Optional[Response], bool]:
        if not self._fresh:
            return None, self._last is not None
        response, size = self._fresh.popleft()
        self._size -= size
        return response, True

    def _await(self, find: Callable[[], Tuple[Optional[Response], bool]], timeout: Optional[float]) -> Optional[Response]:
        """Waits until find reports over. Raises an error if the final response will not come."""
        found: List[Optional[Response]] = []

        def ready() -> bool:
            response, over = find()
            if over:
                found.append(response)
            elif self._lost:
                raise self._lost()
            return over

        with self._changed:
            if ready():
                return found[0]
        with self._aside():
            self._wait_for(ready, current_stop(), timeout)
        return found[0]

    def _wait_for(self, ready: Callable[[], bool], stop: Optional[Stop], timeout: Optional[float]) -> None:
        leave = stop.on_end(self._ring) if stop else None
        try:
            with self._changed:
                done: List[bool] = []

                def over() -> bool:
                    if stop is not None and stop.is_set():
                        return True
                    if ready():
                        done.append(True)
                    return bool(done)

                if not self._changed.wait_for(over, timeout):
                    raise TimeoutError(f"task {self.id}: nothing came for {timeout} seconds")
                if stop is not None and not done:
                    stop.check()
        finally:
            if leave:
                leave()

    def _ring(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # Acts.

    def status(self, timeout: Optional[float] = None) -> Response:
        """Asks how the work stands and returns the next response, which responses yields as well.
        If the work is over, sends nothing and returns the final response."""
        response = self._say(STATUS, {}, timeout)
        assert response is not None
        return response

    def update(self, input: Any, timeout: Optional[float] = None) -> None:
        """Sends the input that the work requires, which may be any value, and returns at the next
        response. Raises Refused if the work waits for no input, and Unsaid if it is over."""
        if self._say(UPDATE, {"input": input}, timeout) is None:
            raise Unsaid(f"task {self.id} is over")

    def cancel(self, reason: str = "", timeout: Optional[float] = None) -> None:
        """Asks to cancel the work and waits for its final response."""
        self._say(CANCEL, {"reason": reason} if reason else {}, timeout)

    def _say(self, kind: str, payload: Mapping[str, Any], timeout: Optional[float]) -> Optional[Response]:
        """Sends an act when its turn comes, and waits for its outcome. If the work is over, sends
        nothing and returns the final response, or None for an update."""
        message = {"id": self.id, "type": kind, "payload": payload}
        line, wrong = said_line(message), act_problem(message)
        if wrong:
            raise Unsaid("it cannot be said: " + wrong)
        stop, until = current_stop(), None if timeout is None else time.monotonic() + timeout
        self._wait_for(self._turn, stop, timeout)
        try:
            act = _Act(kind == CANCEL)
            with self._changed:
                if self._last:
                    return None if kind == UPDATE else self._last
                if self._lost:
                    why = self._lost()
                    raise Unasked() if isinstance(why, Unanswered) else why
                self._act = act
            try:
                self._writer.write(lambda: line)
            except BaseException:
                self._forget(act)
                raise
            left = None if until is None else max(until - time.monotonic(), 0)
            self._wait_for(lambda: bool(act.response or act.error), stop, left)
            if act.error:
                raise act.error
            return act.response
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _turn(self) -> bool:
        if self._busy:
            return False
        self._busy = True
        return True

    def _forget(self, act: _Act) -> None:
        """Unregisters an act that was not written. An act whose time is up stays registered, so
        that its refusal is not taken for one of the request."""
        with self._changed:
            if self._act is act:
                self._act = None

    def _acted(self, response: Optional[Response], error: Optional[AgentError]) -> None:
        if self._act:
            self._act.response, self._act.error, self._act = response, error, None

    # Called by the reading thread.

    def _hear(self, response: Response, size: int) -> None:
        """Keeps a response until it is taken. When there are too many, the oldest are dropped."""
        with self._changed:
            self._heard = True
            if response.final:
                self._last = response
            self._fresh.append((response, size))
            self._size += size
            while len(self._fresh) > 1 and (len(self._fresh) > MOST or self._size > LARGEST):
                self._size -= self._fresh.popleft()[1]
            if self._act and (response.final or not self._act.to_the_end):
                self._acted(response, None)
            self._changed.notify_all()

    def _decline(self, why: Refused) -> bool:
        """Handles a refusal and reports whether the request itself was refused. It was if its id
        belongs to another task, or if no act is under way and no response has arrived."""
        with self._changed:
            request = why.reason == "id_reused" or self._act is None and not self._heard
            if request:
                self._lose(lambda: Refused(why.code, why.message, why.details))
            else:
                self._acted(None, why)
                self._changed.notify_all()
            return request

    def _lose(self, why: Callable[[], AgentError]) -> None:
        with self._changed:
            self._lost = why
            self._acted(None, why())
            self._changed.notify_all()
