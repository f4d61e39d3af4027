"""The jobs that were delegated to the agent, and their places."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence

from .._connection.stop import Stop
from .._wire.documents import Option
from .._wire.errors import Refused, Stopped, Unsaid
from .._wire.lines import moment, said_line
from .._wire.response import options_in
from .._wire.taskdocuments import Artifact, TaskContext, TaskMetadata, TaskRequest, TaskRouting, TaskTrace
from .._wire.taskshape import says
from .delegation import Delegation
from .delegations import request_of
from .exchange import Exchange

__all__ = ["Delegated", "Host", "Places"]


class Question:
    """A question of a job, and its outcome."""

    def __init__(self, text: str, options: List[Option]) -> None:
        self.text = text
        self.options = options
        self.settled = False  # answered or refused
        self.input: Any = None
        self.refused: Optional[Refused] = None
        self.tries = 0  # how often it was refused for the rate limit


class Delegated:
    """A job that was delegated to the agent, for the skill that does it. Its methods may be called
    from any thread at the same time. They send nothing after the job is over."""

    def __init__(self, host: "Host", request: TaskRequest) -> None:
        self.request = request  #: as it came, without members that are null
        self.id = request["id"]
        self.type = request["type"]
        self.payload = request["payload"]
        self.stop = Stop(host.stop)  #: tells the skill to stop
        self._host = host
        # Guarded by host.changed.
        self._status = "pending"  # the current status
        self._started: Optional[float] = None
        self._question: Optional[Question] = None
        self._artifacts: List[Artifact] = []
        self._closed = False  # only a final response may follow
        self._over = False  # the final response is sent
        self._placed = False  # it holds a place
        self._waiting = 0  # number of waits that have given up the place
        self._asking = False
        self._before: Optional[Delegated] = None  # the previous job of the same task; its skill returns first
        self._returned = False

    def progress(self, message: str = "") -> None:
        """Reports that the job is running, with a message unless it is "". Sends nothing while the
        job waits for input."""

        def spell() -> Dict[str, Any]:
            return {} if self._question else self._as("in_progress", **({"message": message} if message else {}))

        self._host.say(self, spell)

    def ask(self, question: str, options: Sequence[Option] = (), timeout: Optional[float] = None) -> Any:
        """Asks the delegating agent for input and waits for it. The answer may be any value,
        whatever the options are. Questions are asked one at a time. Raises Refused if the question
        is refused. Raises TimeoutError after timeout seconds; the job then goes on without the
        input."""
        allowed = options_in(options)
        if not says(question) or allowed is None:
            raise Unsaid("it cannot be said: a question needs words, and options that differ")
        asked = Question(question, allowed)
        until = None if timeout is None else time.monotonic() + timeout
        if not self._wait_for(self._turn, timeout):
            raise TimeoutError(f"job {self.id}: the question was not sent within {timeout} seconds")
        try:
            self._host.say(self, lambda: self._ask(asked))
            with self._aside():
                left = None if until is None else max(until - time.monotonic(), 0)
                if not self._wait_for(lambda: asked.settled, left):
                    self._host.say(self, lambda: self._withdraw(asked))
            if asked.refused:
                raise asked.refused
            if not asked.settled:
                raise TimeoutError(f"job {self.id}: no answer for {timeout} seconds")
            return asked.input
        finally:
            self._host.change(lambda: self._asked(asked))

    def artifact(self, name: str, type: str, content: str) -> None:
        """Keeps a text for the final response. The type is a MIME type."""
        if not says(name) or not says(type) or not isinstance(content, str):
            raise Unsaid("it cannot be said: an artifact needs a name, a type and content, which is a text")

        def keep() -> None:
            self._check()
            self._artifacts.append({"name": name, "type": type, "content": content})

        self._host.change(keep)

    def delegate(
        self,
        type: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        target: Optional[str] = None,
        id: Optional[str] = None,
        context: Optional[TaskContext] = None,
        routing: Optional[TaskRouting] = None,
        observability: Optional[TaskTrace] = None,
    ) -> Delegation:
        """Delegates a part of the job to another agent, as Connection.delegate does. The request
        takes over the job's trace, baggage, conversation, user and routing chain."""
        self.stop.check()
        mine = self.request
        of: Dict[str, Any] = dict(mine.get("context") or {})
        context_of = {key: of[key] for key in ("conversationId", "user") if of.get(key)}
        way: Dict[str, Any] = {key: value for key, value in (routing or {}).items() if key != "delegationChain"}
        chain = (mine.get("routing") or {}).get("delegationChain")
        trace = {key: value for key, value in (mine.get("observability") or {}).items() if value != ""}
        request = request_of(
            type, payload, target, id, {**(context or {}), **context_of, "parentTaskId": self.id},
            {**way, "delegationChain": chain} if chain else way or None, {**(observability or {}), **trace} or None,
        )
        return self._host.delegate(request, self._aside)

    # Called with host.changed held, unless stated otherwise.

    def _began(self) -> None:
        self._placed, self._before, self._status, self._started = True, None, "in_progress", time.time()

    def _check(self) -> None:
        """Raises an error if the job is closed: the cause of its stop, or Unsaid."""
        if self._closed:
            self.stop.check()
            raise Unsaid(f"job {self.id} is over")

    def _turn(self) -> bool:
        if self._asking:
            return False
        self._asking = True
        return True

    def _asked(self, question: Question) -> None:
        self._asking = False
        if self._question is question:  # it was not sent, or the job is over
            self._status, self._question = "in_progress", None

    def _ask(self, question: Question) -> Dict[str, Any]:
        self._status, self._question = "input_required", question
        return self._standing()

    def _answer(self, input: Any) -> Dict[str, Any]:
        """Passes input to the job's open question, if there is one, and returns the new status."""
        if self._question is None:
            return self._standing()
        self._question.input, self._question.settled = input, True
        return self._go_on()

    def _refuse(self, why: Refused) -> bool:
        """Refuses the job's open question. Returns False if none is open."""
        if self._question is None:
            return False
        self._question.refused, self._question.settled = why, True
        self._status, self._question = "in_progress", None
        return True

    def _withdraw(self, question: Question) -> Dict[str, Any]:
        """Returns the status of a job that goes on without the input that it asked for."""
        return {} if question.settled else self._go_on()

    def _go_on(self) -> Dict[str, Any]:
        self._status, self._question = "in_progress", None
        return self._standing()

    def _standing(self) -> Dict[str, Any]:
        """Returns the current status of the job."""
        question = self._question
        if question is None:
            return self._as(self._status)
        given = {"input": {"question": question.text, "options": question.options}} if question.options else {}
        return self._as(self._status, message=question.text, **given)

    def _as(self, status: str, **more: Any) -> Dict[str, Any]:
        metadata = self._metadata()
        return {"id": self.id, "status": status, **more, **({"metadata": metadata} if metadata else {})}

    def _metadata(self) -> TaskMetadata:
        metadata: TaskMetadata = {}
        if self._started is not None:
            metadata["startedAt"] = moment(self._started)
        if self._host.agent:
            metadata["agent"] = self._host.agent
        return metadata

    def _final(self, status: str, what: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns the final response of the job."""
        now = time.time()
        if self._started is None:
            self._started = now
        ended = max(now, self._started)  # the clock may have been set back
        metadata = self._metadata()
        metadata["completedAt"], metadata["duration_ms"] = moment(ended), int((ended - self._started) * 1000)
        made = {"artifacts": list(self._artifacts)} if self._artifacts else {}
        return {"id": self.id, "status": status, **what, "metadata": metadata, **made}

    def _wait_for(self, ready: Callable[[], bool], timeout: Optional[float] = None) -> bool:
        """Waits until ready returns true. Raises an error if the job has to stop, and returns False
        at the timeout. Takes the lock."""
        leave = self.stop.on_end(lambda: self._host.change(lambda: None))
        try:
            with self._host.changed:
                done = self._host.changed.wait_for(lambda: self.stop.is_set() or ready(), timeout)
                self.stop.check()
                return done
        finally:
            leave()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Gives up the job's place while it waits."""
        self._host.places.step_aside(self)
        try:
            yield
        finally:
            self._host.places.step_back(self)


class Host:
    """The surroundings of the jobs of one call of serve. begin starts a job that has a place."""

    def __init__(
        self, conn: Exchange, agent: str, stop: Stop, changed: threading.Condition, capacity: Optional[int],
        begin: Callable[[Delegated], None],
    ) -> None:
        self.agent = agent
        self.stop = stop
        self.changed = changed  #: guards all jobs
        self.places = Places(changed, capacity, stop, begin)
        self.write = conn._writer.write
        self.delegate = conn._delegations.ask

    def say(self, job: Delegated, spell: Callable[[], Dict[str, Any]]) -> None:
        """Sends a response of a job that is not over. It is spelled when its turn to be written
        comes. So no response follows a final one, and every status is current when written. An
        empty response is not sent."""

        def line() -> bytes:
            with self.changed:
                job._check()
                said = spell()
                self.changed.notify_all()
                return said_line(said) if said else b""

        self.write(line)

    def say_of(self, job: Delegated, spell: Callable[[], Dict[str, Any]]) -> None:
        """Like say, for a response that another agent asked for. Sends nothing if the job is over
        meanwhile."""
        try:
            self.say(job, spell)
        except (Stopped, Unsaid):
            pass

    def change(self, change: Callable[[], None]) -> None:
        """Changes the state of a job, and wakes all waiting calls."""
        with self.changed:
            change()
            self.changed.notify_all()


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
