"""The connection of an agent that exchanges delegated work with other agents."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, Dict, Mapping, Optional

from .._connection.stream import PAUSE, Stream
from .._wire.errors import AgentError, Refused, Torn
from .._wire.taskdocuments import TaskContext, TaskRouting, TaskTrace
from .asked import Hatch
from .delegation import Delegation
from .delegations import Delegations, request_of

__all__ = ["Exchange", "Final", "Finals"]

#: Bounds of the final responses: their number, and the bytes of their lines.
MOST, LARGEST = 4096, 8 << 20


@dataclass
class Final:
    """The final response of a job."""

    line: bytes
    metadata: Dict[str, Any]
    again: bool = False  # a repeated request is done again
    instead: bool = False  # it replaced a final response that was refused
    tries: int = 0  # how often it was refused for the rate limit; used by the serving thread


class Finals:
    """The latest final responses, at least the last one. Older ones are dropped: the orchestrator
    knows the outcome of their tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_task: "OrderedDict[str, Final]" = OrderedDict()
        self._size = 0

    def add(self, task: str, final: Final) -> None:
        """Adds a final response. It replaces an older one of the same task."""
        with self._lock:
            before = self._by_task.pop(task, None)
            self._by_task[task] = final
            self._size += len(final.line) - (len(before.line) if before else 0)
            while len(self._by_task) > 1 and (self._size > LARGEST or len(self._by_task) > MOST):
                self._size -= len(self._by_task.popitem(last=False)[1].line)

    def get(self, task: str) -> Optional[Final]:
        with self._lock:
            return self._by_task.get(task)


class Exchange(Stream):
    """A connection that exchanges delegated work: it holds the work that the agent has delegated,
    the work that it is asked for, and the final responses that it has sent."""

    def __init__(self, reader: Optional[BinaryIO] = None, writer: Optional[BinaryIO] = None) -> None:
        super().__init__(reader, writer)
        self._delegations = Delegations(self._writer)
        self._hatch = Hatch(self._tell_dropped)
        self._finals = Finals()
        self._start()

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

    def _tell_dropped(self, count: Callable[[], int]) -> None:
        """Logs, after a pause, how many items were dropped."""
        self._again._rest(PAUSE)
        try:
            self.log("warn", f"{count()} of the messages that ask this agent for work were dropped: the agent does not serve")
        except Torn:
            pass  # the broken stream shows in the next write

    # Receiving.

    def _handed(self, message: Dict[str, Any], size: int) -> None:
        self._hatch.hand(message, size)

    def _responded(self, message: Dict[str, Any], size: int) -> None:
        self._delegations.responded(message, size)

    def _declined(self, name: Optional[str], why: Refused) -> bool:
        return self._delegations.refused(name, why)

    def _protested(self, name: str, why: Refused) -> None:
        self._hatch.protest(name, why)

    def _shutting_down(self) -> None:
        self._hatch.leave()

    def _over(self, why: AgentError) -> None:
        self._delegations.end(why)
        self._hatch.end()
