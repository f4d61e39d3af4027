"""The connection of an agent that exchanges delegated work with other agents."""

from __future__ import annotations

from typing import Any, BinaryIO, Callable, Dict, Mapping, Optional

from ._asked import Hatch
from ._delegation import Delegation
from ._delegations import Delegations, request_of
from ._errors import AgentError, Refused, Torn
from ._finals import Finals
from ._stream import PAUSE, Stream
from ._taskdocuments import TaskContext, TaskRouting, TaskTrace

__all__ = ["Exchange"]


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

    def _told_to_leave(self) -> None:
        self._hatch.leave()

    def _over(self, why: AgentError) -> None:
        self._delegations.end(why)
        self._hatch.end()
