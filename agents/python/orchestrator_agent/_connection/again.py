"""Session messages that are sent again.

A message that was refused because of a rate limit or a full queue had no effect, so the same line
is sent again. Until then, later messages wait in the same lane:

    ""        rate limit of the agent: all its session messages wait
    an agent  full queue of that agent: messages to it wait

Delivered messages are not confirmed. So a lane sends a round of messages and pauses. If none is
refused, the next round is larger and sooner, otherwise smaller and later.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from typing import Callable, Dict, List, Optional, Tuple

from .._wire.errors import AgentError, Undelivered
from .pipes import Writer
from .said import Sent
from .stop import Stop

__all__ = ["Again"]

PAUSE = 1.0  #: the orchestrator counts requests per second
LONG_PAUSE = 16.0  #: the longest pause between rounds, before jitter
MOST_AGAIN = 64  #: messages in a round, at most
TRIES = 10  #: how often a message is sent again
LONGEST = 16 << 20  #: bytes of the lines that are kept
LATEST = 4096  #: number of the lines that are kept


class _Lane:
    def __init__(self) -> None:
        self.held: List[Tuple[int, Sent, bytes]] = []  # ordered by place
        self.wait = PAUSE
        self.most = MOST_AGAIN
        self.refused = False  # a message of the last round was refused


class Again:
    """Repeats session messages that were refused because of a rate limit or a full queue."""

    def __init__(self, writer: Writer) -> None:
        self.over = threading.Event()  #: set when the stream has ended: no refusals arrive
        self._writer = writer
        self._changed = threading.Condition()
        self._lanes: Dict[str, _Lane] = {}
        self._lines: "OrderedDict[str, bytes]" = OrderedDict()  # the latest written lines, by message_id
        self._size = 0
        self._places = 0

    def keep(self, sent: Sent, line: bytes) -> None:
        """Stores the line of a message that is about to be written."""
        with self._changed:
            if not sent.place:
                self._places += 1
                sent.place = self._places
            self._keep(sent, line)

    def _keep(self, sent: Sent, line: bytes) -> None:
        self._lines[sent.message_id] = line
        self._size += len(line)
        while len(self._lines) > 1 and (self._size > LONGEST or len(self._lines) > LATEST):
            self._size -= len(self._lines.popitem(last=False)[1])

    def later(self, sent: Sent, why: Undelivered) -> bool:
        """Queues a refused message in its lane and reports whether it will be sent again. Only the
        reading thread calls it."""
        name = _lane_of(sent, why)
        if name is None:
            return False
        with self._changed:
            line = self._lines.pop(sent.message_id, None)
            self._size -= len(line or b"")
            if sent.held:
                return True  # refused twice, as it was sent twice
            if line is None or sent.tries == TRIES:
                return False
            lane = self._lanes.get(name)
            if lane is None:
                lane = self._lanes[name] = _Lane()
                threading.Thread(target=self._say, args=(name, lane), name="again", daemon=True).start()
            lane.held.append((sent.place, sent, line))
            lane.held.sort(key=lambda each: each[0])
            lane.refused = sent.held = True
            return True

    def _say(self, name: str, lane: _Lane) -> None:
        """Sends the messages of a lane in rounds until none is left. After the end of the stream no
        refusals arrive, so the rest is sent in one round."""
        begun, over = False, False
        try:
            while not over:
                over = self._rest(PAUSE)  # by then, refused messages are back
                if begun:
                    more = self._slower(lane)
                    over = over or more > 0 and self._rest(more)
                begun = True
                said = self._round(name, lane, over)
                for line in said:
                    self._writer.write(lambda: line)
                if not said:
                    return
        except AgentError:
            pass  # and nothing else can be sent
        finally:
            with self._changed:
                if self._lanes.get(name) is lane:
                    del self._lanes[name]
                self._changed.notify_all()

    def _rest(self, wait: float) -> bool:
        """Waits for the given time plus some jitter, so that agents refused together do not return
        together. Reports whether the stream has ended; it then returns soon."""
        if self.over.wait(wait * (1 + random.random() / 4)):
            threading.Event().wait(min(wait, PAUSE))
            return True
        return False

    def _slower(self, lane: _Lane) -> float:
        """Slows a lane down after a refusal and speeds it up otherwise. Returns the extra pause."""
        with self._changed:
            if lane.refused:
                lane.wait, lane.most = min(2 * lane.wait, LONG_PAUSE), max(lane.most // 2, 1)
            else:
                lane.wait, lane.most = PAUSE, min(2 * lane.most, MOST_AGAIN)
            return lane.wait - PAUSE

    def _round(self, name: str, lane: _Lane, all: bool) -> List[bytes]:
        """Takes the next messages of a lane. Removes an empty lane."""
        with self._changed:
            lane.refused = False
            many = len(lane.held) if all else min(len(lane.held), lane.most)
            said, lane.held = lane.held[:many], lane.held[many:]
            for _, sent, line in said:
                sent.held = False
                sent.tries += 1
                self._keep(sent, line)
            if not said:
                del self._lanes[name]
                self._changed.notify_all()
            return [line for _, _, line in said]

    def _free(self, to: str) -> bool:
        return "" not in self._lanes and to not in self._lanes

    def write_behind(self, to: str, spell: Callable[[], bytes], stop: Optional[Stop]) -> None:
        """Writes a message that must not overtake messages to be sent again."""
        leave = stop.on_end(self._wake) if stop else None
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._free(to) or stop is not None and stop.is_set())
                    if stop is not None and not self._free(to):
                        stop.check()

                def turn() -> bytes:
                    with self._changed:
                        if not self._free(to):
                            raise _Behind()
                    return spell()

                try:
                    self._writer.write(turn)
                    return
                except _Behind:
                    pass  # a message was refused meanwhile
        finally:
            if leave:
                leave()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def all_said(self) -> None:
        """Waits until every lane is empty. Messages still waiting when the agent exits are lost."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lanes)


class _Behind(Exception):
    """Raised if other messages have to be written first."""


def _lane_of(sent: Sent, why: Undelivered) -> Optional[str]:
    """Returns the lane of a refused message, or None if it is not to be sent again."""
    if why.reason == "rate_limited":
        return ""
    waiting = why.details.get("waiting")
    crowded = isinstance(waiting, (int, float)) and not isinstance(waiting, bool) and waiting > 0
    return sent.to if why.error_type == "timeout" and crowded else None
