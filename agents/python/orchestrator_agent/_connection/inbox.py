"""Messages of the orchestrator that are not taken yet.

The reading thread adds messages and never blocks; callers wait here. So an agent that is busy for
an hour, or never takes its notices, still gets its answers.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, Generic, Iterator, List, Optional, Tuple, TypeVar, cast

from .._wire.documents import Mail
from .._wire.errors import AgentError, Closed, Undelivered
from .said import Said, Sent, read_said
from .stop import Stop

__all__ = ["Event", "Inbox", "Notice", "Recent"]

T = TypeVar("T")

#: How many session messages a connection remembers. Duplicates arrive soon, because only messages
#: that may not have arrived are repeated.
REMEMBERED = 4096


@dataclass(frozen=True)
class Notice:
    """An unsolicited message from the orchestrator."""

    name: str  #: such as task-assigned
    id: str = ""
    timestamp: str = ""
    payload: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """What a role of a session handles: one of these."""

    said: Optional[Said] = None
    lost: Optional[Sent] = None
    notice: Optional[Notice] = None


class Recent(Generic[T]):
    """The latest values by key."""

    def __init__(self) -> None:
        self._by_key: "OrderedDict[str, T]" = OrderedDict()

    def add(self, key: str, value: T) -> bool:
        """Adds a value, drops the oldest one if full, and reports whether the key is new."""
        if key in self._by_key:
            return False
        self._by_key[key] = value
        if len(self._by_key) > REMEMBERED:
            self._by_key.popitem(last=False)
        return True

    def get(self, key: str) -> Optional[T]:
        return self._by_key.get(key)

    def take(self, key: str) -> Optional[T]:
        return self._by_key.pop(key, None)


class Inbox:
    """The queues of notices, mail and session events."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._news: Deque[Notice] = deque()
        self._told = 0  # number of notices received
        self._looked = False  # a caller has asked for notices
        self._serves = False  # the agent serves, which needs no notices
        self._heard: Deque[Tuple[Event, int]] = deque()  # each with the number of notices received before it
        self._known: Recent[bool] = Recent()
        self._sent: Recent[Sent] = Recent()
        self._mail: List[Tuple[int, Mail]] = []  # not handled yet, ordered by number
        self._dealt = 0
        self._over: Optional[AgentError] = None

    # The end.

    @property
    def closed(self) -> bool:
        """Whether the stream has ended without an error."""
        return isinstance(self._over, Closed)

    def failure(self) -> AgentError:
        """Returns the reason why nothing more arrives."""
        return self._over or Closed()

    def end(self, why: AgentError) -> None:
        with self._changed:
            self._over = why
            self._changed.notify_all()

    # Adding.

    def noticed(self, notice: Notice) -> None:
        with self._changed:
            self._news.append(notice)
            self._told += 1
            if self._serves and not self._looked and len(self._news) > REMEMBERED:
                self._news.popleft()
            self._changed.notify_all()

    def serves(self) -> None:
        """Notes that the agent serves, which needs no notices. Unless a caller asks for notices,
        only the latest are kept from then on."""
        with self._changed:
            self._serves = True

    def overheard(self, message: Dict[str, Any]) -> None:
        """Queues a session message unless it is a duplicate. The orchestrator repeats a message if
        its arrival is uncertain."""
        said = read_said(message)
        if said is not None:
            with self._changed:
                if self._known.add(f"{said.from_agent['agent_id']}\n{said.message_id}", True):
                    self._keep(Event(said=said))

    def _keep(self, event: Event) -> None:
        self._heard.append((event, self._told))
        self._changed.notify_all()

    def say(self, sent: Sent) -> None:
        """Registers a message before it is written, because a refusal may arrive before the sender
        goes on."""
        with self._changed:
            self._sent.add(sent.message_id, sent)

    def sent(self, name: str) -> Optional[Sent]:
        """Returns a message that the agent has sent, or None if it is no longer remembered."""
        with self._changed:
            return self._sent.get(name)

    def lost(self, sent: Sent, why: Undelivered) -> None:
        """Records that a message will not be delivered."""
        with self._changed:
            if sent.refuse(why):
                self._keep(Event(lost=sent))

    def posted(self, mail: Mail) -> None:
        """Inserts mail in the order of the numbers. Duplicates are ignored."""
        with self._changed:
            seq = mail["seq"]
            at = bisect.bisect_left([number for number, _ in self._mail], seq)
            if seq > self._dealt and (at == len(self._mail) or self._mail[at][0] != seq):
                self._mail.insert(at, (seq, mail))
                self._changed.notify_all()

    def dealt_with(self, seq: int) -> None:
        """Removes a message and all older ones, which its acknowledgment covers."""
        with self._changed:
            self._dealt = seq
            self._mail = [(number, mail) for number, mail in self._mail if number > seq]

    # Taking.

    def news(self, stop: Optional[Stop], timeout: Optional[float] = None) -> Iterator[Notice]:
        """Iterates over the notices. Ends when stop is set, when the stream has ended, or when none
        arrives within timeout seconds."""

        def take() -> Optional[Notice]:
            self._looked = True
            return self._news.popleft() if self._news else None

        return self._all(take, stop, timeout)

    def talk(self, stop: Optional[Stop], timeout: Optional[float] = None) -> Iterator[Said]:
        """Iterates over the session messages for the agent."""

        def take() -> Optional[Said]:
            while self._heard:
                event, _ = self._heard.popleft()
                if event.said is not None:
                    return event.said
            return None

        return self._all(take, stop, timeout)

    def events(self, stop: Stop) -> Iterator[Event]:
        """Iterates over session events and notices in the order of arrival. So a cancellation is
        not seen before its assignment."""

        def take() -> Optional[Event]:
            self._looked = True
            taken = self._told - len(self._news)
            if self._heard and self._heard[0][1] <= taken:
                return self._heard.popleft()[0]
            return Event(notice=self._news.popleft()) if self._news else None

        return self._all(take, stop, None)

    def letters(self, stop: Stop) -> Iterator[Mail]:
        """Iterates over the mail, oldest first. Each message stays until it is handled."""

        def take() -> Optional[Mail]:
            return self._mail[0][1] if self._mail else None

        return self._all(take, stop, None, beyond=True)

    def _all(
        self, take: Callable[[], Optional[T]], stop: Optional[Stop], timeout: Optional[float], beyond: bool = False
    ) -> Iterator[T]:
        """Calls take for each item until no more can arrive. With beyond, only stop ends the
        iteration."""
        stopped = stop.on_end(self._wake) if stop else None
        try:
            while True:
                with self._changed:
                    found: List[T] = []

                    def ready() -> bool:
                        if stop is not None and stop.is_set():
                            return True
                        thing = take()
                        if thing is not None:
                            found.append(thing)
                        return bool(found) or (self._over is not None and not beyond)

                    self._changed.wait_for(ready, timeout)
                if not found:
                    return
                yield found[0]
        finally:
            if stopped:
                stopped()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def as_mail(payload: Dict[str, Any]) -> Optional[Mail]:
    """Returns the mail in a notice, or None if it has none."""
    seq = payload.get("seq")
    return cast(Mail, payload) if isinstance(seq, int) and not isinstance(seq, bool) else None
