"""The final responses that a connection has sent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Dict, Optional

__all__ = ["Final", "Finals"]

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
