"""Session messages: those from other agents, and the agent's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, cast

from .._wire.errors import Undelivered
from .._wire.sessiondocuments import AgentID
from .._wire.shape import problem_of
from .stop import Stop

__all__ = ["Said", "Sent", "read_said"]


@dataclass(frozen=True)
class Said:
    """A session message from another agent."""

    message_id: str
    timestamp: str
    sequence_number: int  #: 0 if missing
    from_agent: AgentID
    to_agent: AgentID
    message_type: str
    payload: Dict[str, Any]
    correlation_id: str  #: "" if missing, like reply_to and session_id
    reply_to: str
    session_id: str
    document: Mapping[str, Any]  #: the whole message, as it came


def read_said(message: Dict[str, Any]) -> Optional[Said]:
    """Reads a session message as the orchestrator does, from any sender. Returns None if it is
    invalid."""
    if problem_of(message):
        return None
    return Said(
        message_id=message["message_id"], timestamp=message["timestamp"],
        sequence_number=int(message.get("sequence_number", 0)), from_agent=cast(AgentID, message["from_agent"]),
        to_agent=cast(AgentID, message["to_agent"]), message_type=message["message_type"], payload=message["payload"],
        correlation_id=message.get("correlation_id", ""), reply_to=message.get("reply_to", ""),
        session_id=message.get("session_id", ""), document=message,
    )


class Sent:
    """A session message that the agent has sent. Delivery is never confirmed; a failure is reported
    sooner or later."""

    def __init__(self, message_id: str, correlation_id: str, message_type: str, to: str) -> None:
        self.message_id = message_id
        self.correlation_id = correlation_id
        self.sequence_number = 0  #: set when it is written
        self.message_type = message_type
        self.to = to  #: the name of its addressee
        self.place = 0  # among the messages of the connection
        self.held = False  # it waits in a lane
        self.tries = 0  # how often it was sent again
        self._why: Optional[Undelivered] = None
        self._bells = Stop()

    @property
    def undelivered(self) -> Optional[Undelivered]:
        """Why the message will not be delivered, or None while that is not known."""
        return self._why

    def wait_refused(self, timeout: Optional[float] = None) -> Optional[Undelivered]:
        """Waits until the message is known not to be delivered, or for timeout seconds. Returns the
        reason, or None."""
        self._bells.wait(timeout)
        return self._why

    def refuse(self, why: Undelivered) -> bool:
        """Records that the message will not be delivered. Returns False if that was known
        before."""
        if self._why is not None:
            return False
        self._why = why
        self._bells.end(None)
        return True

    def on_refused(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Registers a function to call when the message is known not to be delivered, or calls it
        now if it already is. Returns a function that unregisters it."""
        return self._bells.on_end(bell)
