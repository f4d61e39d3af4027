"""Work that the agent delegates: what is said of it, and what the agent says of it."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Deque, Iterator, List, Mapping, Optional, Tuple

from ._errors import AgentError, Refused, Unanswered, Unasked, Unsaid
from ._lines import said_line
from ._response import Response
from ._stop import Stop, current_stop
from ._streams import Writer
from ._taskshape import CANCEL, STATUS, UPDATE, act_problem

__all__ = ["Aside", "Delegation", "at_once"]

#: How many responses are kept that are not taken, and how much of them, in bytes.
MOST, LARGEST = 1000, 8 << 20

Aside = Callable[[], ContextManager[None]]  # what goes around waiting


@contextmanager
def at_once() -> Iterator[None]:
    """For those who keep their place while they wait."""
    yield


class _Act:
    """Something that was said of the work. It has no answer of its own: the caller waits for what
    comes next, and so one thing is said at a time."""

    def __init__(self, to_the_end: bool) -> None:
        self.to_the_end = to_the_end
        self.response: Optional[Response] = None
        self.error: Optional[AgentError] = None


class Delegation:
    """Work that the agent has delegated. All its methods may be called at the same time, from any
    thread. What a handler waits for ends when its task does."""

    def __init__(self, task_id: str, writer: Writer, aside: Aside = at_once) -> None:
        self.id = task_id
        self._writer = writer
        self._aside = aside
        self._changed = threading.Condition()
        self._fresh: Deque[Tuple[Response, int]] = deque()  # not taken yet, with their sizes
        self._size = 0
        self._heard = False
        self._last: Optional[Response] = None  # the final one
        self._lost: Optional[Callable[[], AgentError]] = None  # why there will be none
        self._busy = False  # a caller says something
        self._act: Optional[_Act] = None

    # Hearing.

    def responses(self, timeout: Optional[float] = None) -> Iterator[Response]:
        """What is said of the work, one after the other up to the final response, each to one taker.
        It ends earlier when nothing comes for so many seconds, when the handler that takes them has to
        stop, when the request is refused and when the stream has ended: wait says why. Of what is not
        takes the latest are kept."""
        while True:
            try:
                response = self._await(self._take, timeout)
            except (AgentError, TimeoutError):
                return
            if response is None:
                return
            yield response

    def wait(self, timeout: Optional[float] = None) -> Response:
        """Waits for the final response, and takes nothing from responses. Work that failed raises its
        Fault, work that was cancelled WorkCancelled, a request that was refused Refused. After so many
        seconds it is a TimeoutError. While the work waits for input, so does wait: who wants to bring
        it some takes responses."""
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
        """Waits until something is found, or never will be."""
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

    # Saying.

    def status(self, timeout: Optional[float] = None) -> Response:
        """Asks how the work stands, and gives the next response, whatever that is: responses has it as
        well. Once the work is over that is the final one, and nothing is asked."""
        response = self._say(STATUS, {}, timeout)
        assert response is not None
        return response

    def update(self, input: Any, timeout: Optional[float] = None) -> None:
        """Brings the work the input that it requires, which may be any value. It returns when something
        is said of the work after that, and raises Refused when no caller wants the input, Unsaid when the
        work is over."""
        if self._say(UPDATE, {"input": input}, timeout) is None:
            raise Unsaid(f"task {self.id} is over")

    def cancel(self, reason: str = "", timeout: Optional[float] = None) -> None:
        """Asks to give the work up, and waits until it is over, whatever it came to."""
        self._say(CANCEL, {"reason": reason} if reason else {}, timeout)

    def _say(self, kind: str, payload: Mapping[str, Any], timeout: Optional[float]) -> Optional[Response]:
        """Says something when it is its turn, and waits for what comes of it. When the work is over
        nothing is said, and the final response is for those who only ask."""
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
        """One of which nothing was written. What is said of one that was written, and whose time was up,
        finds no caller, and is not taken for something else."""
        with self._changed:
            if self._act is act:
                self._act = None

    def _acted(self, response: Optional[Response], error: Optional[AgentError]) -> None:
        if self._act:
            self._act.response, self._act.error, self._act = response, error, None

    # Being told, by the thread that reads.

    def _hear(self, response: Response, size: int) -> None:
        """Keeps a response for the caller that takes it. What is not taken makes room for what comes after."""
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
        """Hears that something is refused; says whether that is the request, of which nothing more will
        be heard: it is when nothing else can be meant."""
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
