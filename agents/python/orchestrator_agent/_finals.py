"""What came of the jobs that the agent was asked to do."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Dict, Optional

__all__ = ["Final", "Finals"]

#: How many are remembered, and how much of them in bytes.
MOST, LARGEST = 4096, 8 << 20


@dataclass
class Final:
    """The final response of a job."""

    line: bytes
    metadata: Dict[str, Any]
    again: bool = False  # who asks for the same once more wants it to be done once more
    instead: bool = False  # of another one, which was refused
    tries: int = 0  # how often it was refused because there was too much; for the one who serves


class Finals:
    """The latest, the last of them in any case. One that is gone is known no more: the orchestrator
    knows what came of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_task: "OrderedDict[str, Final]" = OrderedDict()
        self._size = 0

    def add(self, task: str, final: Final) -> None:
        """Remembers one, in the place of an older one of its task."""
        with self._lock:
            before = self._by_task.pop(task, None)
            self._by_task[task] = final
            self._size += len(final.line) - (len(before.line) if before else 0)
            while len(self._by_task) > 1 and (self._size > LARGEST or len(self._by_task) > MOST):
                self._size -= len(self._by_task.popitem(last=False)[1].line)

    def get(self, task: str) -> Optional[Final]:
        with self._lock:
            return self._by_task.get(task)
