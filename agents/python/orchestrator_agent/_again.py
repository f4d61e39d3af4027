"""Messages of a session that are said again.

One that was refused because there is too much of it just now had no effect, and may be taken later: it
is said again, the same line. Until it is, what comes after it waits in the same lane:

    ""        the agent has said too much, so everything that it says in sessions waits
    an agent  that one has not taken what it was sent before, so what is for it waits

No answer says that a message was taken. So a lane says some, and is silent for a while: if none of them
was refused by then, more of them follow sooner, otherwise fewer, later.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from typing import Callable, Dict, List, Optional, Tuple

from ._errors import AgentError, Undelivered
from ._said import Sent
from ._stop import Stop
from ._streams import Writer

__all__ = ["Again"]

PAUSE = 1.0  #: the orchestrator counts by the second
LONG_PAUSE = 16.0  #: the longest between two rounds, but for a spread
MOST_AGAIN = 64  #: how many are said again at a time
TRIES = 10  #: how often one is said again
LONGEST = 16 << 20  #: how much is kept to be said again, in bytes
LATEST = 4096  #: likewise, in lines


class _Lane:
    def __init__(self) -> None:
        self.held: List[Tuple[int, Sent, bytes]] = []  # in the order in which they were said first
        self.wait = PAUSE
        self.most = MOST_AGAIN
        self.refused = False  # one of the last round


class Again:
    """Says again what was refused because there was too much."""

    def __init__(self, writer: Writer) -> None:
        self.over = threading.Event()  #: the stream has ended: no refusals arrive
        self._writer = writer
        self._changed = threading.Condition()
        self._lanes: Dict[str, _Lane] = {}
        self._lines: "OrderedDict[str, bytes]" = OrderedDict()  # the latest that were written
        self._size = 0
        self._places = 0

    def keep(self, sent: Sent, line: bytes) -> None:
        """Keeps the line of a message that is about to be written."""
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
        """Puts a refused message into its lane, and says whether it will be said again. It is called by
        the thread that reads."""
        name = _lane_of(sent, why)
        if name is None:
            return False
        with self._changed:
            line = self._lines.pop(sent.message_id, None)
            self._size -= len(line or b"")
            if sent.held:
                return True  # it was refused twice, as it was said
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
        """Says what is in a lane until there is nothing left. After the end of the stream the rest is
        said once."""
        begun, over = False, False
        try:
            while not over:
                over = self._rest(PAUSE)  # by then, what was refused is back
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
            pass  # and nothing else can be said
        finally:
            with self._changed:
                if self._lanes.get(name) is lane:
                    del self._lanes[name]
                self._changed.notify_all()

    def _rest(self, wait: float) -> bool:
        """Waits for a while and a little longer, because agents that were refused together need not come
        back together. Says whether the stream has ended, after which it does not wait long."""
        if self.over.wait(wait * (1 + random.random() / 4)):
            threading.Event().wait(min(wait, PAUSE))
            return True
        return False

    def _slower(self, lane: _Lane) -> float:
        """Lets a lane take its time when something of its last round was refused, and says how much
        more."""
        with self._changed:
            if lane.refused:
                lane.wait, lane.most = min(2 * lane.wait, LONG_PAUSE), max(lane.most // 2, 1)
            else:
                lane.wait, lane.most = PAUSE, min(2 * lane.most, MOST_AGAIN)
            return lane.wait - PAUSE

    def _round(self, name: str, lane: _Lane, all: bool) -> List[bytes]:
        """Takes what a lane says next. When that is nothing the lane is no more."""
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
        """Writes a message that must not overtake those which are said again."""
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
        """Waits until nothing is to be said again: an agent that goes before takes it along."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lanes)


class _Behind(Exception):
    """Another message comes first."""


def _lane_of(sent: Sent, why: Undelivered) -> Optional[str]:
    """Where a refused message waits; None for one that is not to be said again."""
    if why.reason == "rate_limited":
        return ""
    waiting = why.details.get("waiting")
    crowded = isinstance(waiting, (int, float)) and not isinstance(waiting, bool) and waiting > 0
    return sent.to if why.error_type == "timeout" and crowded else None
