"""The two streams between an agent and its orchestrator: requests, events, and what arrives."""

from __future__ import annotations

import queue
import random
import threading
import time
from contextlib import suppress
from typing import Any, BinaryIO, Dict, Iterator, Mapping, Optional, Union

from .._wire.errors import AgentError, Closed, Refused, Shutdown, Stopped, Unanswered, Unasked, Undelivered
from .._wire.lines import Lines, check_event, message_line, read_line, without_none
from .again import Again
from .inbox import Inbox, Notice
from .operations import Operations
from .pipes import Writer, reading, standard_streams
from .said import Said
from .stop import Stop, current_stop

__all__ = ["PAUSE", "Stream"]

#: The wait before a request over the rate limit is repeated, if the refusal does not say after which time.
PAUSE = 1.0


def _backoff(refused: Refused, tries: int) -> float:
    """Returns the wait before a limited request is repeated: what the refusal says, twice as long after
    each try up to PAUSE, with some jitter."""
    after = refused.retry_after
    if after == 0:
        return PAUSE
    after = max(after, min(after * 2 ** min(tries, 10), PAUSE))
    return after * (1 + random.random() / 4)


_Reply = Union[Dict[str, Any], BaseException]


class Stream(Operations):
    """A connection without delegated work, tasks and sessions. Its subclass handles messages about
    delegated work, and calls _start when it can receive messages."""

    def __init__(self, reader: Optional[BinaryIO] = None, writer: Optional[BinaryIO] = None) -> None:
        if (reader is None) != (writer is None):
            raise ValueError("either both streams are given or none")
        if reader is None or writer is None:
            reader, writer = standard_streams()
        self._writer = Writer(writer)
        self._lock = threading.Lock()
        self._waiting: Optional[Dict[str, "queue.SimpleQueue[_Reply]"]] = {}
        self._inbox = Inbox()
        self._again = Again(self._writer)
        self._listener = threading.Thread(target=self._listen, args=(reader,), name="orchestrator", daemon=True)

    def _start(self) -> None:
        self._listener.start()

    # Requests.

    def ask(
        self, operation: str, payload: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Sends a request for an operation, such as "get-task", waits for the answer, and returns
        its payload.

        Raises Refused if the orchestrator refuses the request, and Unsaid if the request is
        invalid. Raises TimeoutError after timeout seconds; a late answer is discarded. Raises
        Unasked or Unanswered if the stream ends first. A request of a handler ends when the handler
        has to stop. A question to a person is then withdrawn, and also after timeout seconds. At a
        shutdown it stays open.
        """
        return self._ask(operation, payload, current_stop(), timeout)

    def _ask(
        self, operation: str, payload: Optional[Mapping[str, Any]], stop: Optional[Stop], timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        name, line = message_line("request:" + operation, payload)
        call: "queue.SimpleQueue[_Reply]" = queue.SimpleQueue()
        with self._lock:
            if self._waiting is None:
                raise Unasked() if self._inbox.closed else self._inbox.failure()
            self._waiting[name] = call
        stopped = stop.on_end(lambda: call.put(stop.cause or Stopped("it is over"))) if stop else None
        try:
            if stop:
                stop.check()
            self._writer.write(lambda: line)
            reply = call.get(timeout=timeout)
        except queue.Empty:
            self._abandon(operation, name)
            raise TimeoutError(f"{operation}: no answer for {timeout} seconds") from None
        finally:
            if stopped:
                stopped()
            with self._lock:
                if self._waiting is not None:
                    self._waiting.pop(name, None)
        if isinstance(reply, BaseException):
            if isinstance(reply, Stopped) and not isinstance(reply, (Shutdown, Closed)):
                self._abandon(operation, name)
            raise reply
        return reply

    def _abandon(self, operation: str, name: str) -> None:
        """Withdraws the question of a request whose caller no longer waits. After a shutdown the
        question stays open: the next run that asks the same takes it up."""
        if operation in ("ask-user", "ask-permission"):
            _, line = message_line("request:withdraw-question", {"requestId": name})
            with suppress(AgentError):
                self._writer.write(lambda: line)

    def _ask_patiently(self, operation: str, payload: Optional[Mapping[str, Any]], stop: Optional[Stop]) -> Dict[str, Any]:
        """Like _ask, for requests that must not be lost to the rate limit. A request over the limit
        has had no effect, so it is repeated."""
        tries = 0
        while True:
            try:
                return self._ask(operation, payload, stop)
            except Refused as refused:
                if refused.reason != "rate_limited":
                    raise
                wait = _backoff(refused, tries)
            tries += 1
            if stop is None:
                time.sleep(wait)
            elif stop.wait(wait):
                stop.check()

    def _settle(self, operation: str, payload: Mapping[str, Any]) -> None:
        """Asks for an operation even if the stream has ended. The orchestrator still reads the
        agent's output then, until its time to stop is up, but sends no answers."""
        try:
            self._ask_patiently(operation, payload, None)
        except Unasked:
            _, line = message_line("request:" + operation, payload)
            self._writer.write(lambda: line)
        except Unanswered:
            pass

    # Events.

    def tell(self, event: str, payload: Optional[Mapping[str, Any]] = None) -> None:
        """Sends an event, such as "progress". Events have no answer, so tell itself validates those
        of the protocol and raises Unsaid. The orchestrator would ignore an invalid one."""
        check_event(event, payload)
        _, line = message_line("event:" + event, payload)
        self._writer.write(lambda: line)

    def progress(self, task_id: str, fraction: float, message: Optional[str] = None, output: Any = None) -> None:
        """Reports how much of a task is done, from 0 to 1. It does not complete the task. output is
        what the agent has so far: any value, up to 64 KiB of JSON. The task shows the last one until
        it is done."""
        self.tell("progress", without_none(taskId=task_id, progress=fraction, message=message or None, output=output))

    def log(self, level: str, message: str, context: Optional[Mapping[str, Any]] = None) -> None:
        """Writes to the agent's log, at level info, warn or error."""
        self.tell("log", without_none(level=level, message=message, context=context))

    def trouble(self, error: Union[str, BaseException], task_id: Optional[str] = None, recoverable: bool = True) -> None:
        """Reports an error. An error that is not recoverable fails the task."""
        self.tell("error", without_none(taskId=task_id or None, error=str(error), recoverable=recoverable))

    def wonder(self, question: str, context: Optional[Mapping[str, Any]] = None) -> None:
        """Shows people a question without waiting for an answer."""
        self.tell("question", without_none(question=question, context=context))

    # Receiving.

    def news(self, timeout: Optional[float] = None) -> Iterator[Notice]:
        """Iterates over all notices in order, including those that arrived before the call. Ends
        when the stream has ended and all notices are taken, or when none arrives within timeout
        seconds. Each notice goes to one caller; work and the session roles take them, too."""
        return self._inbox.news(None, timeout)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the orchestrator's stream has ended, and reports whether it has. Raises the
        read error if reading failed."""
        self._listener.join(timeout)
        if self._listener.is_alive():
            return False
        if not self._inbox.closed:
            raise self._inbox.failure()
        return True

    def talk(self, timeout: Optional[float] = None) -> Iterator[Said]:
        """Iterates over the session messages for the agent, in order, from the first one and each
        once. Ends as news does. Each message goes to one caller; the roles of a Session take them,
        too."""
        return self._inbox.talk(None, timeout)

    # Messages about delegated work. Exchange handles them.

    def _handed(self, message: Dict[str, Any], size: int) -> None:
        """Handles a request for delegated work, or an act on it."""

    def _responded(self, message: Dict[str, Any], size: int) -> None:
        """Handles a response about delegated work."""

    def _declined(self, name: Optional[str], why: Refused) -> bool:
        """Handles a refusal. Returns False if it concerns no delegated work of the agent."""
        return False

    def _protested(self, name: str, why: Refused) -> None:
        """Handles a refusal that no caller waits for."""

    def _shutting_down(self) -> None:
        """Handles the request to shut down."""

    def _over(self, why: AgentError) -> None:
        """Handles the end of the stream."""

    # Reading. Nothing but the stream blocks it.

    def _listen(self, stream: BinaryIO) -> None:
        lines, read = Lines(), reading(stream)
        why: AgentError = Closed()
        try:
            while True:
                chunk = read(1 << 16)
                if not chunk:
                    break
                for line in lines.feed(chunk):
                    self._hear(line)
            self._hear(lines.rest())
        except (OSError, ValueError) as error:
            why = AgentError(f"reading what the orchestrator says: {error}")
        with self._lock:
            waiting, self._waiting = self._waiting or {}, None
        self._inbox.end(why)
        self._over(why)
        self._again.over.set()
        for call in waiting.values():
            call.put(Unanswered() if isinstance(why, Closed) else why)

    def _hear(self, line: bytes) -> None:
        """Dispatches a line by its kind."""
        message = read_line(line) if line.lstrip()[:1] == b"{" else None
        if message is None:
            return
        kind = message.get("type")
        if kind == "response:success":
            payload = _member(message, "payload", dict)
            if payload is not _WRONG:
                self._answered(message, {} if payload is None else payload)
        elif kind == "response:error":
            error = _member(message, "error", dict)
            if error is not _WRONG:
                self._refused(message, error)
        elif isinstance(kind, str) and kind.startswith("notify:"):
            notice = [_member(message, "id", str), _member(message, "timestamp", str), _member(message, "payload", dict)]
            if _WRONG not in notice:
                self._inbox.noticed(Notice(kind[len("notify:"):], notice[0] or "", notice[1] or "", notice[2] or {}))
                if kind == "notify:shutdown":
                    self._shutting_down()
        elif isinstance(message.get("message_type"), str):
            self._inbox.overheard(message)
        elif isinstance(kind, str):
            self._handed(message, len(line))
        elif "status" in message:
            self._responded(message, len(line))

    def _answered(self, message: Dict[str, Any], reply: _Reply) -> bool:
        """Passes an answer to the caller that waits for it. Reports whether there was one:
        duplicate and late answers have none."""
        name = _member(message, "correlationId", str)
        with self._lock:
            call = self._waiting.pop(name, None) if self._waiting and isinstance(name, str) else None
        if call is not None:
            call.put(reply)
        return call is not None

    def _refused(self, message: Dict[str, Any], error: Optional[Dict[str, Any]]) -> None:
        """Passes a refusal to the caller whose message was refused: a request, a session message or
        an act on delegated work."""
        code, text, details = (error or {}).get("code"), (error or {}).get("message"), (error or {}).get("details")
        if not isinstance(code, str) or not code or not isinstance(text, (str, type(None))):
            code, text, details = "INTERNAL_ERROR", "refused, without a word that could be understood", error
        if not isinstance(details, dict):
            details = {}
        name = _member(message, "correlationId", str)
        sent = self._inbox.sent(name) if isinstance(name, str) else None
        if sent is None:
            why = Refused(code, text or "", details)
            if not self._declined(name, why) and not self._answered(message, why) and isinstance(name, str):
                self._protested(name, why)
        elif not details.get("next_retry_at") and sent.undelivered is None:
            lost = Undelivered(code, text or "", details)
            if not self._again.later(sent, lost):
                self._inbox.lost(sent, lost)


_WRONG: Any = object()


def _member(message: Dict[str, Any], key: str, kind: type) -> Any:
    """Returns a member of a message: None if it is missing or null, _WRONG if it has another
    type."""
    value = message.get(key)
    return value if value is None or isinstance(value, kind) else _WRONG
