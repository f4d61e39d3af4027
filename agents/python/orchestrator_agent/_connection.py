"""The connection of an agent to its orchestrator."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, BinaryIO, Callable, Dict, Iterator, Mapping, Optional, Union

from ._again import Again
from ._asked import Hatch
from ._delegation import Delegation
from ._delegations import Delegations, request_of
from ._errors import AgentError, Closed, Refused, Stopped, Torn, Unanswered, Unasked, Undelivered
from ._events import check_event
from ._finals import Finals
from ._inbox import Inbox, Notice
from ._lines import Lines, message_line, read_line, without_none
from ._said import Said
from ._serve import Server, Skill
from ._session import Session, identity
from ._stop import Stop, current_stop
from ._streams import Writer, reading, standard_streams
from ._taskdocuments import TaskContext, TaskRouting, TaskTrace
from ._verbs import Verbs
from ._work import Do, MailReader, Planner, Worker

__all__ = ["Connection"]

#: The wait before a request over the rate limit is repeated. The orchestrator counts requests per
#: second.
PAUSE = 1.0

_Reply = Union[Dict[str, Any], BaseException]


class Connection(Verbs):
    """An agent's connection to its orchestrator. Its methods may be called from any thread at the
    same time.

    Without streams it takes the agent's stdin and stdout: print() writes to stderr from then on.
    Given streams must be binary; they remain the caller's.
    """

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
        self._delegations = Delegations(self._writer)
        self._hatch = Hatch(self._tell_dropped)
        self._finals = Finals()
        self._listener = threading.Thread(target=self._listen, args=(reader,), name="orchestrator", daemon=True)
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
        has to stop.
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
            raise TimeoutError(f"{operation}: no answer for {timeout} seconds") from None
        finally:
            if stopped:
                stopped()
            with self._lock:
                if self._waiting is not None:
                    self._waiting.pop(name, None)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def _ask_patiently(self, operation: str, payload: Optional[Mapping[str, Any]], stop: Optional[Stop]) -> Dict[str, Any]:
        """Like _ask, for requests that must not be lost to the rate limit. A request over the limit
        has had no effect, so it is repeated."""
        while True:
            try:
                return self._ask(operation, payload, stop)
            except Refused as refused:
                if refused.reason != "rate_limited":
                    raise
            if stop is None:
                time.sleep(PAUSE)
            elif stop.wait(PAUSE):
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

    def progress(self, task_id: str, fraction: float, message: Optional[str] = None) -> None:
        """Reports how much of a task is done, from 0 to 1. It does not complete the task."""
        self.tell("progress", without_none(taskId=task_id, progress=fraction, message=message or None))

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

    # Tasks.

    def work(
        self,
        do: Do,
        *,
        plan: Optional[Planner] = None,
        mail: Optional[MailReader] = None,
        beat: Optional[float] = None,
    ) -> None:
        """Does assigned tasks, each in its own thread, until the agent is told to shut down or the
        stream ends. Then it waits for the handlers and returns.

        The return value of a handler completes its task; an exception fails it. A cancelled task is
        not reported. At a shutdown, a handler may give up by not catching Stopped. Its task is not
        reported either, and work then raises Unfinished. The agent must exit with a failure,
        because a successful exit may complete its task.

        plan returns a plan for a task, if a person has to approve it. It is called again when the
        plan is sent back. mail handles one message at a time. The message is acknowledged when mail
        returns; if mail fails, GO is notified first. With mail, the agent also sends heartbeats,
        every beat seconds or at the orchestrator's interval.
        """
        Worker(self, do, plan, mail, beat).run()

    # Delegation.

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
        """Asks another agent for work: the target, or any agent that offers the type. The
        orchestrator fills in the source. The default id is a new UUID. Repeating a request with the
        same id, perhaps after a restart, asks for the same work.

        Returns when the request is written. The Delegation reports what follows, even that the
        request was refused. Raises Unsaid if the request is invalid.
        """
        return self._delegations.ask(request_of(type, payload, target, id, context, routing, observability))

    def serve(self, skills: Mapping[str, Skill], *, agent: str = "", capacity: Optional[int] = None) -> None:
        """Does the jobs that others delegate to the agent, until the agent is told to shut down or
        the stream ends. Then it waits for the skills and returns. A skill is called for each
        request of its type, in its own thread. A job without a skill fails with
        CAPABILITY_NOT_FOUND.

        Each job gets one final response. The return value of a skill completes the job: any value,
        where None becomes an empty object. A Fault fails it as that fault, any other exception as
        an INTERNAL_ERROR that is not recoverable. serve answers status queries at once, and those
        about a finished job with its final response. It answers a repeated request in the same way.
        If the job was cancelled, or failed with a recoverable fault, a repeated request does it
        again.

        A cancelled job is over at once, and the result of its skill is dropped. At a shutdown, a
        skill may give up by not catching Stopped. Such jobs, and jobs that have not begun, are not
        reported; serve then raises Unfinished, as work does. Until the last skill has returned,
        serve answers requests and accepts cancellations.

        capacity is the number of jobs done at a time, without a limit if None; further jobs wait. A
        job that waits for input or for delegated work gives up its place meanwhile. agent is the
        agent's name in its responses; "" means $ORC_AGENT_ID.

        Requests that arrive before serve is called are queued, up to a thousand and 8 MiB. Dropped
        ones are counted in the log. serve consumes no notices, so work, news or a session role may
        run beside it. Only one serve may run at a time.
        """
        self._inbox.serves()
        with self._hatch.serving():
            Server(self, skills, agent, capacity).run()

    def _tell_dropped(self, count: Callable[[], int]) -> None:
        """Logs, after a pause, how many items were dropped."""
        self._again._rest(PAUSE)
        try:
            self.log("warn", f"{count()} of the messages that ask this agent for work were dropped: the agent does not serve")
        except Torn:
            pass  # the broken stream shows in the next write

    def open_session(self, agent: str = "", type: str = "", session: str = "") -> Session:
        """Returns the agent's membership in a session. Empty arguments default to $ORC_AGENT_ID,
        $ORC_SESSION_TYPE and $ORC_SESSION, which the orchestrator sets for the agents that it
        starts."""
        return Session(self, identity(agent, type, session))

    def talk(self, timeout: Optional[float] = None) -> Iterator[Said]:
        """Iterates over the session messages for the agent, in order, from the first one and each
        once. Ends as news does. Each message goes to one caller; the roles of a Session take them,
        too."""
        return self._inbox.talk(None, timeout)

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
        self._delegations.end(why)
        self._hatch.end()
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
                    self._hatch.leave()
        elif isinstance(message.get("message_type"), str):
            self._inbox.overheard(message)
        elif isinstance(kind, str):
            self._hatch.hand(message, len(line))
        elif "status" in message:
            self._delegations.responded(message, len(line))

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
            if not self._delegations.refused(name, why) and not self._answered(message, why) and isinstance(name, str):
                self._hatch.protest(name, why)
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
