"""All delegations of a connection."""

from __future__ import annotations

import threading
from typing import Any, Dict, Mapping, Optional

from .._connection.pipes import Writer
from .._connection.stop import current_stop
from .._wire.errors import AgentError, Closed, Refused, Unanswered, Unasked, Unsaid
from .._wire.lines import new_id, said_line, without_none
from .._wire.response import read_response
from .._wire.taskshape import request_problem
from .delegation import Aside, Delegation, at_once

__all__ = ["Delegations", "request_of"]


def request_of(
    type: str, payload: Optional[Mapping[str, Any]], target: Optional[str], id: Optional[str],
    context: Optional[Mapping[str, Any]], routing: Optional[Mapping[str, Any]], observability: Optional[Mapping[str, Any]],
) -> Dict[str, Any]:
    """Returns a task request."""
    return {
        "id": id or new_id(), "type": type, "payload": {} if payload is None else payload,
        **without_none(
            context=context, routing=routing if target is None else {**(routing or {}), "target": target},
            observability=observability,
        ),
    }


class Delegations:
    """The delegations of a connection that are not over."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lock = threading.Lock()
        self._by_id: Dict[str, Delegation] = {}
        self._over: Optional[AgentError] = None

    def ask(self, request: Mapping[str, Any], aside: Aside = at_once) -> Delegation:
        """Writes a task request and returns its delegation."""
        wrong = request_problem(request)
        if wrong:
            raise Unsaid("it cannot be said: " + wrong)
        line = said_line(request)
        stop = current_stop()
        if stop:
            stop.check()
        delegation = Delegation(request["id"], self._writer, aside)
        with self._lock:
            if self._over:
                raise Unasked() if isinstance(self._over, Closed) else self._over
            if delegation.id in self._by_id:
                raise Unsaid(f"task {delegation.id} was asked for, and is not over")
            self._by_id[delegation.id] = delegation
        try:
            self._writer.write(lambda: line)
        except BaseException:
            self._settle(delegation)
            raise
        return delegation

    def _settle(self, delegation: Delegation) -> None:
        """Removes a delegation that gets no more responses."""
        with self._lock:
            if self._by_id.get(delegation.id) is delegation:
                del self._by_id[delegation.id]

    def responded(self, message: Dict[str, Any], size: int) -> None:
        """Passes a response to its delegation."""
        response = read_response(message)
        with self._lock:
            delegation = self._by_id.get(response.id) if response else None
        if delegation and response:
            if response.final:
                self._settle(delegation)
            delegation._hear(response, size)

    def refused(self, name: Any, why: Refused) -> bool:
        """Passes a refusal to its delegation. Returns False if the refusal concerns something
        else."""
        with self._lock:
            delegation = self._by_id.get(name) if isinstance(name, str) else None
        if delegation and delegation._decline(why):
            self._settle(delegation)
        return delegation is not None

    def end(self, why: AgentError) -> None:
        """Ends all delegations: no more responses will arrive."""
        with self._lock:
            left, self._by_id, self._over = self._by_id, {}, why
        for delegation in left.values():
            delegation._lose(lambda: Unanswered() if isinstance(why, Closed) else why)
