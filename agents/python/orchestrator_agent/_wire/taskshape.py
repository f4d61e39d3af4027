"""Validation of messages about delegated work, as the orchestrator does it. Messages that it would
refuse are neither sent nor received. null counts as missing."""

from __future__ import annotations

from typing import Any, Mapping

from .errors import Unsaid
from .lines import spell
from .shape import Check, Shape, _list, _moment, _name, _object, _text, _truth, _whole, _word, problem_in

__all__ = ["ACTS", "CANCEL", "FINAL", "STATUS", "UPDATE", "act_problem", "request_problem", "response_problem", "says"]

STATUS, UPDATE, CANCEL = ACTS = ("task.status", "task.update", "task.cancel")

FINAL = ("completed", "failed", "cancelled")
STATUSES = ("pending", "in_progress", "input_required", *FINAL)

#: The maximal length of a label and of baggage, in bytes.
LONGEST_LABEL, LONGEST_BAGGAGE = 4096, 16 << 10


def says(text: Any) -> bool:
    """Reports whether the value is a text that is not blank."""
    return isinstance(text, str) and bool(text.strip(" \t\n\r\f"))


def _label(key: str, value: Any) -> str:
    """Checks a text that other messages may refer to."""
    wrong = _text(key, value)
    if not wrong and len(value.encode("utf-8", "replace")) > LONGEST_LABEL:
        wrong = f"{key} must not be longer than {LONGEST_LABEL} bytes"
    if not wrong and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        wrong = f"{key} must not have control characters in it"
    return wrong


def _full_label(key: str, value: Any) -> str:
    return _name(key, value) or _label(key, value)


def _type(key: str, value: Any) -> str:
    wrong = _full_label(key, value)
    if not wrong and value in ACTS:
        wrong = f"{key} is of a message about a task that there is: {value} asks for none"
    if not wrong and ":" in value and value.partition(":")[0] in ("request", "event", "response", "notify"):
        wrong = f"{key} must not begin with request:, event:, response: or notify:"
    return wrong


def _baggage(key: str, value: Any) -> str:
    wrong = _object(key, value)
    try:
        if not wrong and len(spell(value)) > LONGEST_BAGGAGE:
            wrong = f"{key} must not be longer than {LONGEST_BAGGAGE} bytes"
    except Unsaid as error:
        wrong = f"{key}: {error}"
    return wrong


def _sparing(shape: Shape, document: Mapping[str, Any]) -> str:
    """Like problem_in, for a document whose optional members may be null."""
    return problem_in(shape, {
        key: document[key] for key, (needed, _) in shape.items() if key in document and (needed or document[key] is not None)
    })


def _block(shape: Shape) -> Check:
    def check(key: str, value: Any) -> str:
        return _object(key, value) or _sparing(shape, value)

    return check


def _artifact(key: str, value: Any) -> str:
    wrong = _block({"name": (True, _name), "type": (True, _name), "content": (False, _text), "ref": (False, _text)})(key, value)
    if not wrong and not value.get("ref"):
        wrong = _sparing({"content": (True, _text)}, value)
    return wrong


_REQUEST: Shape = {
    "id": (True, _full_label), "type": (True, _type), "payload": (True, _object),
    "context": (False, _block({
        "conversationId": (False, _label), "parentTaskId": (False, _label), "user": (False, _label),
        "timestamp": (False, _moment), "priority": (False, _word("low", "normal", "high", "urgent")),
    })),
    "routing": (False, _block({
        "source": (False, _label), "target": (False, _label),
        "delegationChain": (False, _list(_full_label)),
    })),
    "observability": (False, _block({"traceId": (False, _label), "spanId": (False, _label), "baggage": (False, _baggage)})),
}

_RESPONSE: Shape = {
    "id": (True, _full_label), "status": (True, _word(*STATUSES)),
    "error": (False, _block({
        "code": (False, _text), "message": (False, _text), "details": (False, _object), "recoverable": (False, _truth),
    })),
    "metadata": (False, _block({
        "startedAt": (False, _moment), "completedAt": (False, _moment), "duration_ms": (False, _whole(0)),
        "agent": (False, _label), "retryCount": (False, _whole(0)),
    })),
    "artifacts": (False, _list(_artifact)),
}

_ACT: Shape = {"id": (True, _full_label), "type": (True, _word(*ACTS)), "payload": (True, _object)}


def request_problem(message: Mapping[str, Any]) -> str:
    """Returns why a message is not a valid task request, or ""."""
    return _sparing(_REQUEST, message) or _mistakable(message)


def act_problem(message: Mapping[str, Any]) -> str:
    """Returns why a message is not a valid act, or ""."""
    wrong = _sparing(_ACT, message) or _mistakable(message)
    if not wrong and message["type"] == UPDATE and "input" not in message["payload"]:
        wrong = "input is missing"
    if not wrong and message["type"] == CANCEL:
        wrong = _sparing({"reason": (False, _text)}, message["payload"])
    return wrong


def response_problem(message: Mapping[str, Any]) -> str:
    """Returns why a message is not a valid response, or ""."""
    wrong = _sparing(_RESPONSE, message) or _mistakable(message)
    if not wrong and "type" in message:
        wrong = "type must not be in a response: only a request has it"
    if not wrong and message.get("result") is not None and message["status"] != "completed":
        wrong = f"result must not be set with the status {message['status']}: only completed has it"
    return wrong


def _mistakable(message: Mapping[str, Any]) -> str:
    """Returns why a message would be taken for one of another kind, or ""."""
    if message.get("jsonrpc") == "2.0" and "method" in message:
        return "jsonrpc makes it the call of a tool"
    if "from_actor" in message and ("topic" in message or "to_actor" in message):
        return "from_actor makes it mail"
    return ""
