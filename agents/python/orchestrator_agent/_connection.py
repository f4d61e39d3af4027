"""The connection of an agent with its orchestrator."""

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

#: How long one waits who has asked too much: the orchestrator counts by the second.
PAUSE = 1.0

_Reply = Union[Dict[str, Any], BaseException]


class Connection(Verbs):
    """An agent's connection with its orchestrator. All its methods may be called at the same time,
    from any thread.

    Without streams it takes the agent's stdin and stdout for itself: print() writes to stderr from
    then on. Streams that are given are binary; they stay the caller's.
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

    # Asking.

    def ask(
        self, operation: str, payload: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Asks for an operation, such as "get-task", and waits for its answer: the payload of it.

        A request that is refused raises Refused, one that cannot be said Unsaid. After so many
        seconds it is a TimeoutError, and an answer that comes later is passed over. When the stream
        ends first it is Unasked or Unanswered. A question of a handler ends when its task does.
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
        """Asks for what must not get lost because the agent has said too much of other things: a
        request over the limit had no effect, and is asked again."""
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
        """Asks for what must be heard even when no answer comes any more: after the end of the stream
        the orchestrator still listens, for as long as it grants the agent."""
        try:
            self._ask_patiently(operation, payload, None)
        except Unasked:
            _, line = message_line("request:" + operation, payload)
            self._writer.write(lambda: line)
        except Unanswered:
            pass

    # Telling.

    def tell(self, event: str, payload: Optional[Mapping[str, Any]] = None) -> None:
        """Tells of an event, such as "progress". There is no answer: what is wrong with an event of the
        protocol is raised as Unsaid, because the orchestrator would pass over it in silence."""
        check_event(event, payload)
        _, line = message_line("event:" + event, payload)
        self._writer.write(lambda: line)

    def progress(self, task_id: str, fraction: float, message: Optional[str] = None) -> None:
        """Tells how much of a task is done, from 0 to 1. It ends nothing."""
        self.tell("progress", without_none(taskId=task_id, progress=fraction, message=message or None))

    def log(self, level: str, message: str, context: Optional[Mapping[str, Any]] = None) -> None:
        """Writes into the agent's log, at the level info, warn or error."""
        self.tell("log", without_none(level=level, message=message, context=context))

    def trouble(self, error: Union[str, BaseException], task_id: Optional[str] = None, recoverable: bool = True) -> None:
        """Tells of an error at work. One from which there is no recovery fails the task."""
        self.tell("error", without_none(taskId=task_id or None, error=str(error), recoverable=recoverable))

    def wonder(self, question: str, context: Optional[Mapping[str, Any]] = None) -> None:
        """Shows people a question without waiting for an answer."""
        self.tell("question", without_none(question=question, context=context))

    # Hearing.

    def news(self, timeout: Optional[float] = None) -> Iterator[Notice]:
        """The notices, in order, from the first one on. It ends when the stream has ended and all is
        taken, or when nothing comes for so many seconds. Each notice goes to one taker, and work and
        the roles of a session are some."""
        return self._inbox.news(None, timeout)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the orchestrator will say nothing more; says whether it is so far. It raises
        what kept the stream from being read."""
        self._listener.join(timeout)
        if self._listener.is_alive():
            return False
        if not self._inbox.closed:
            raise self._inbox.failure()
        return True

    # Working.

    def work(
        self,
        do: Do,
        *,
        plan: Optional[Planner] = None,
        mail: Optional[MailReader] = None,
        beat: Optional[float] = None,
    ) -> None:
        """Does tasks as they are assigned to the agent, until it is to shut down or the stream ends;
        then it waits for the handlers and returns.

        What a handler returns completes its task, an exception fails it. A task that was cancelled is
        not reported. Neither is one that the handler gave up because the agent has to go, by letting
        Stopped through; then it raises Unfinished at the end, and an agent that ends well in spite of
        it would say that its tasks are done.

        A planner says how a task will be done, when a person wants to know that first. It is called
        again when the plan is sent back. A reader deals with the agent's mail, one message at a time:
        when it returns, the message is acknowledged; when it fails, GO is told first. Heartbeats are
        sent with it, every so many seconds, or as often as the orchestrator says.
        """
        Worker(self, do, plan, mail, beat).run()

    # Delegating, and doing what is delegated.

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
        """Asks another agent for work: the target, or one that can do what the type says. Which agent it
        comes the orchestrator says. The id is a new UUID, unless one is given; asking once more with the
        same one, after a restart perhaps, asks for the same work.

        It returns when the request is written. What becomes of it is in the Delegation: that the request
        was refused, too. What cannot be said is raised as Unsaid.
        """
        return self._delegations.ask(request_of(type, payload, target, id, context, routing, observability))

    def serve(self, skills: Mapping[str, Skill], *, agent: str = "", capacity: Optional[int] = None) -> None:
        """Does what others delegate to the agent, until it is to shut down or the stream ends; then it
        waits for the skills and returns. A skill is called for each request of its type, in a thread of
        its own; what the agent has no skill for fails with CAPABILITY_NOT_FOUND.

        Each job comes to one final response. What a skill returns completes it: any value, and None is
        an empty object. A Fault says why it failed; any other exception is an INTERNAL_ERROR that
        another try does not mend. A question how a job stands is answered at once, and when it is over
        gets its final response once more. So does a request for the same again, unless it was
        cancelled or failed so that another try may go well: then it is done again.

        A job that is cancelled is over at once, and what its skill returns is dropped. Of one that the
        skill gave up because the agent has to go, by letting Stopped through, nothing is said by itself,
        nor of one that has not begun: then it raises Unfinished at the end, as work does. Until the last
        skill has returned requests are answered, and a job may be cancelled.

        The capacity is how many jobs are done at a time, with no bound unless one is given; the others
        wait. One that waits itself, for input or for what it has delegated, makes room for another one.
        The agent is who it is, as its responses say: $ORC_AGENT_ID when it is "".

        What is asked before a function serves waits for that, the latest thousand as far as 8 MiB go; what
        is dropped is counted in the log. It takes no notices, so work, news or the roles of a session may
        go on beside it. There is one serve at a time.
        """
        self._inbox.serves()
        with self._hatch.serving():
            Server(self, skills, agent, capacity).run()

    def _tell_dropped(self, count: Callable[[], int]) -> None:
        """Tells after a while how much was dropped by then of what was asked."""
        self._again._rest(PAUSE)
        try:
            self.log("warn", f"{count()} of the messages that ask this agent for work were dropped: the agent does not serve")
        except Torn:
            pass  # which shows in what is said next

    def open_session(self, agent: str = "", type: str = "", session: str = "") -> Session:
        """The agent's place in a session. What is "" is $ORC_AGENT_ID, $ORC_SESSION_TYPE and
        $ORC_SESSION, as the orchestrator has set them for the agents that it starts."""
        return Session(self, identity(agent, type, session))

    def talk(self, timeout: Optional[float] = None) -> Iterator[Said]:
        """What the others of a session say to the agent, in order, from the first message on and each
        once. It ends as news does. Each message goes to one taker: the roles of a Session take them,
        too."""
        return self._inbox.talk(None, timeout)

    # Reading, which waits for nothing but the stream.

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
        """Takes a line for what it is."""
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
        """Brings an answer to the caller that waits for it. A second one and one that is late find none."""
        name = _member(message, "correlationId", str)
        with self._lock:
            call = self._waiting.pop(name, None) if self._waiting and isinstance(name, str) else None
        if call is not None:
            call.put(reply)
        return call is not None

    def _refused(self, message: Dict[str, Any], error: Optional[Dict[str, Any]]) -> None:
        """Brings a no to the caller that said what is refused: a request, or a message of a session."""
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
    """A member, None when it is missing or null, _WRONG when it is something else."""
    value = message.get(key)
    return value if value is None or isinstance(value, kind) else _WRONG
