"""Validation of events: the orchestrator would ignore an invalid one."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._errors import Unsaid

__all__ = ["check_event"]


def check_event(event: str, payload: Optional[Mapping[str, Any]]) -> None:
    """Raises Unsaid if an event of the protocol is invalid."""
    if payload is not None and not isinstance(payload, Mapping):
        raise Unsaid("a payload must be an object")
    wanted = payload or {}
    if event == "progress":
        _says(wanted, "taskId")
        _is(wanted, "message", str, "a string")
        fraction = wanted.get("progress")
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise Unsaid("progress must be from 0 to 1")
    elif event == "log":
        _says(wanted, "level")
        if wanted.get("message") is None:
            raise Unsaid("message is missing")
        _is(wanted, "message", str, "a string")
        _is(wanted, "context", Mapping, "an object")
    elif event == "error":
        _says(wanted, "error")
        _is(wanted, "taskId", str, "a string")
        _is(wanted, "stack", str, "a string")
        _is(wanted, "recoverable", bool, "true or false")
    elif event == "question":
        _says(wanted, "question")
        _is(wanted, "context", Mapping, "an object")


def _is(payload: Mapping[str, Any], key: str, kind: type, name: str) -> None:
    if payload.get(key) is not None and not isinstance(payload[key], kind):
        raise Unsaid(f"{key} must be {name}")


def _says(payload: Mapping[str, Any], key: str) -> None:
    if payload.get(key) is None:
        raise Unsaid(f"{key} is missing")
    _is(payload, key, str, "a string")
    if not payload[key].strip(" \t\n\r\f"):
        raise Unsaid(f"{key} must not be empty")
