"""What the orchestrator has said and was not taken yet.

The thread that reads puts things in and waits for nothing; a caller that takes something waits here. So an
agent that is busy for an hour, or never looks at its notices, still gets its answers.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, Generic, Iterator, List, Optional, Tuple, TypeVar, cast

from ._documents import Mail
from ._errors import AgentError, Closed, Undelivered
from ._said import Said, Sent, read_said
from ._stop import Stop

__all__ = ["Event", "Inbox", "Notice", "Recent"]

T = TypeVar("T")

#: How many messages of a session a connection remembers. One that comes again comes soon.
REMEMBERED = 4096


@dataclass(frozen=True)
class Notice:
    """What the orchestrator says without having been asked."""

    name: str  #: such as task-assigned
    id: str = ""
    timestamp: str = ""
    payload: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """What a role of a session listens to: one of these."""

    said: Optional[Said] = None
    lost: Optional[Sent] = None
    notice: Optional[Notice] = None


class Recent(Generic[T]):
    """What was known latest, by its key."""

    def __init__(self) -> None:
        self._by_key: "OrderedDict[str, T]" = OrderedDict()

    def add(self, key: str, value: T) -> bool:
        """Remembers something, and forgets the oldest for it. Says whether the key is new."""
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
    """Notices, mail, and what a session brings."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._news: Deque[Notice] = deque()
        self._told = 0  # how many notices there have been
        self._looked = False  # a caller has looked for notices
        self._serves = False  # the agent does work that needs none
        self._heard: Deque[Tuple[Event, int]] = deque()  # with how many notices there had been
        self._known: Recent[bool] = Recent()
        self._sent: Recent[Sent] = Recent()
        self._mail: List[Tuple[int, Mail]] = []  # not dealt with, in order of the numbers
        self._dealt = 0
        self._over: Optional[AgentError] = None

    # The end.

    @property
    def closed(self) -> bool:
        """Whether the stream has ended as it should."""
        return isinstance(self._over, Closed)

    def failure(self) -> AgentError:
        """Why there is nothing more."""
        return self._over or Closed()

    def end(self, why: AgentError) -> None:
        with self._changed:
            self._over = why
            self._changed.notify_all()

    # Putting in.

    def noticed(self, notice: Notice) -> None:
        with self._changed:
            self._news.append(notice)
            self._told += 1
            if self._serves and not self._looked and len(self._news) > REMEMBERED:
                self._news.popleft()
            self._changed.notify_all()

    def serves(self) -> None:
        """Says that the agent does work that needs no notices, so that it need not look for any: as long
        as it does not, the latest are kept."""
        with self._changed:
            self._serves = True

    def overheard(self, message: Dict[str, Any]) -> None:
        """Keeps a message unless it was there before: it is delivered again when it is not certain
        that it arrived."""
        said = read_said(message)
        if said is not None:
            with self._changed:
                if self._known.add(f"{said.from_agent['agent_id']}\n{said.message_id}", True):
                    self._keep(Event(said=said))

    def _keep(self, event: Event) -> None:
        self._heard.append((event, self._told))
        self._changed.notify_all()

    def say(self, sent: Sent) -> None:
        """Remembers a message that is about to be written, because it may be refused before the one that
        says it goes on."""
        with self._changed:
            self._sent.add(sent.message_id, sent)

    def sent(self, name: str) -> Optional[Sent]:
        """A message that the agent has said, as long as it is remembered."""
        with self._changed:
            return self._sent.get(name)

    def lost(self, sent: Sent, why: Undelivered) -> None:
        """Tells the sender of a message that it will not be delivered."""
        with self._changed:
            if sent.refuse(why):
                self._keep(Event(lost=sent))

    def posted(self, mail: Mail) -> None:
        """Puts a message in, in order of the numbers. One that comes twice is there once."""
        with self._changed:
            seq = mail["seq"]
            at = bisect.bisect_left([number for number, _ in self._mail], seq)
            if seq > self._dealt and (at == len(self._mail) or self._mail[at][0] != seq):
                self._mail.insert(at, (seq, mail))
                self._changed.notify_all()

    def dealt_with(self, seq: int) -> None:
        """Takes a message out, and all that is older: acknowledged is what is older in any case."""
        with self._changed:
            self._dealt = seq
            self._mail = [(number, mail) for number, mail in self._mail if number > seq]

    # Taking.

    def news(self, stop: Optional[Stop], timeout: Optional[float] = None) -> Iterator[Notice]:
        """The notices. It ends at the stop, with the stream, or when nothing comes in time."""

        def take() -> Optional[Notice]:
            self._looked = True
            return self._news.popleft() if self._news else None

        return self._all(take, stop, timeout)

    def talk(self, stop: Optional[Stop], timeout: Optional[float] = None) -> Iterator[Said]:
        """What the others of a session say."""

        def take() -> Optional[Said]:
            while self._heard:
                event, _ = self._heard.popleft()
                if event.said is not None:
                    return event.said
            return None

        return self._all(take, stop, timeout)

    def events(self, stop: Stop) -> Iterator[Event]:
        """What a session brings and the notices, in the order in which they came: that a task is
        cancelled must not be heard before it is assigned."""

        def take() -> Optional[Event]:
            self._looked = True
            taken = self._told - len(self._news)
            if self._heard and self._heard[0][1] <= taken:
                return self._heard.popleft()[0]
            return Event(notice=self._news.popleft()) if self._news else None

        return self._all(take, stop, None)

    def letters(self, stop: Stop) -> Iterator[Mail]:
        """Mail, oldest first. Each stays until it is dealt with."""

        def take() -> Optional[Mail]:
            return self._mail[0][1] if self._mail else None

        return self._all(take, stop, None, beyond=True)

    def _all(
        self, take: Callable[[], Optional[T]], stop: Optional[Stop], timeout: Optional[float], beyond: bool = False
    ) -> Iterator[T]:
        """Takes until there is nothing more to come; beyond the end of the stream for those that the
        stop tells of it."""
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
    """The mail of a notice, None when it is none."""
    seq = payload.get("seq")
    return cast(Mail, payload) if isinstance(seq, int) and not isinstance(seq, bool) else None
