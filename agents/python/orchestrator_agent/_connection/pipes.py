"""The streams between an agent and its orchestrator."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, BinaryIO, Callable, Optional, Tuple

from .._wire.errors import Torn

__all__ = ["Reading", "Writer", "standard_streams"]

Reading = Callable[[int], bytes]


def standard_streams() -> Tuple[BinaryIO, BinaryIO]:
    """Returns the agent's stdin and stdout, reserved for the protocol.

    Other output would corrupt messages, so print() and the programs that the agent starts write to
    stderr from now on. Their stdin is empty, because they would consume the orchestrator's
    messages.
    """
    sys.stdout.flush()
    reader = os.fdopen(os.dup(0), "rb", buffering=0)
    writer = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reader, writer


def reading(stream: Any) -> Reading:
    """Returns a function that reads what is available, without waiting for more."""
    read1: Optional[Reading] = getattr(stream, "read1", None)
    return read1 if read1 is not None else stream.read


class Writer:
    """Writes whole lines, one at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._turn = threading.Lock()
        self._torn: Optional[Torn] = None

    def write(self, spell: Callable[[], bytes]) -> None:
        """Writes a line. It is spelled when its turn comes, because it may contain its own
        position. After a failed write nothing more is written: half a line would corrupt the next
        one."""
        with self._turn:
            if self._torn is not None:
                raise self._torn
            line = memoryview(spell())
            try:
                while line:  # a raw stream may write only a part
                    taken = self._stream.write(line)
                    line = line[taken:] if taken is not None else line[:0]
                self._stream.flush()
            except (OSError, ValueError) as error:  # a closed file is a ValueError
                self._torn = Torn(f"writing to the orchestrator: {error}")
                raise self._torn from error
