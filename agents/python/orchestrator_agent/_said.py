"""Messages of a session: those that others have said, and the agent's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, cast

from ._errors import Undelivered
from ._sessiondocuments import AgentID
from ._shape import problem_of
from ._stop import Stop

__all__ = ["Said", "Sent", "read_said"]


@dataclass(frozen=True)
class Said:
    """What one agent of a session has said to another."""

    message_id: str
    timestamp: str
    sequence_number: int  #: 0 when there is none
    from_agent: AgentID
    to_agent: AgentID
    message_type: str
    payload: Dict[str, Any]
    correlation_id: str  #: "" when it begins something, as the others below
    reply_to: str
    session_id: str
    document: Mapping[str, Any]  #: all of it, as it came


def read_said(message: Dict[str, Any]) -> Optional[Said]:
    """Reads a message as the orchestrator does, no matter who says it; None when it makes no sense."""
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
    """A message that the agent has said. That it was delivered is never told; that it was not,
    sooner or later."""

    def __init__(self, message_id: str, correlation_id: str, message_type: str, to: str) -> None:
        self.message_id = message_id
        self.correlation_id = correlation_id
        self.sequence_number = 0  #: when it is said
        self.message_type = message_type
        self.to = to  #: the name of the agent that it is for
        self.place = 0  # among those that the agent has said
        self.held = False  # it is to be said again
        self.tries = 0  # how often it was
        self._why: Optional[Undelivered] = None
        self._bells = Stop()

    @property
    def undelivered(self) -> Optional[Undelivered]:
        """Why the message will not be delivered, None as long as that was not said."""
        return self._why

    def wait_refused(self, timeout: Optional[float] = None) -> Optional[Undelivered]:
        """Waits until it is said that it will not be delivered, or for so many seconds."""
        self._bells.wait(timeout)
        return self._why

    def refuse(self, why: Undelivered) -> bool:
        """Says that it will not be delivered; False when that was said before."""
        if self._why is not None:
            return False
        self._why = why
        self._bells.end(None)
        return True

    def on_refused(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Has a function called then, or now if that was before. Returns how to take it back."""
        return self._bells.on_end(bell)
