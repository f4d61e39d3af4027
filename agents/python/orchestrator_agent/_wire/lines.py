"""Encoding and decoding of lines, which are JSON objects."""

from __future__ import annotations

import dataclasses
import json
import re
import time
import uuid
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .errors import Unsaid

__all__ = [
    "Lines", "check_event", "each_option", "message_line", "moment", "new_id", "now", "read_line", "said_line", "spell",
    "without_doubled", "without_none",
]

#: The orchestrator's default limit for the length of a line.
LONGEST = 16 << 20


def new_id() -> str:
    return str(uuid.uuid4())


def now() -> str:
    """Returns the current time in the format of messages."""
    return moment(time.time())


def moment(when: float) -> str:
    """Returns a time in the format of messages."""
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be spelled")


def spell(value: Any) -> bytes:
    """Encodes a value as JSON. Integers are exact."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:  # half of a surrogate pair is a ValueError
        raise Unsaid(f"it cannot be said: {error}") from None


def said_line(message: Mapping[str, Any]) -> bytes:
    """Encodes a message as a line."""
    line = spell(message)
    if len(line) > LONGEST:
        raise Unsaid(f"it cannot be said: it takes more than {LONGEST >> 20} MiB")
    return line + b"\n"


def message_line(kind: str, payload: Optional[Mapping[str, Any]]) -> Tuple[str, bytes]:
    """Returns the id and the line of a request or an event."""
    if payload is None:
        payload = {}
    if not isinstance(payload, Mapping):
        raise Unsaid("it cannot be said: a payload must be an object")
    name = new_id()
    return name, said_line({"type": kind, "id": name, "timestamp": now(), "payload": payload})


#: The longest partial result of a task, in bytes.
MAX_OUTPUT = 64 << 10


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
        if wanted.get("output") is not None and len(spell(wanted["output"])) > MAX_OUTPUT:
            raise Unsaid(f"output must be at most {MAX_OUTPUT} bytes of JSON")
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
    else:
        _check_activity(event, wanted)


#: The whole numbers of event:usage.
_COUNTS = ("turn", "input", "output", "cacheRead", "cacheWrite", "reasoning", "contextUsed", "contextSize")


def _check_activity(event: str, wanted: Mapping[str, Any]) -> None:
    """Checks the events of coding agents."""
    if event == "usage":
        _texts(wanted, "taskId", "model", "currency")
        for key in _COUNTS:
            _counts(wanted, key, 0, key in ("input", "output"))
        cost = wanted.get("cost")
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, (int, float)) or cost < 0):
            raise Unsaid("cost must be a number of at least 0")
    elif event == "session":
        _says(wanted, "id")
        _texts(wanted, "kind", "dir", "version", "model")
    elif event == "turn":
        _one_of(wanted, "state", "busy", "waiting", "idle")
        _texts(wanted, "what", "taskId")
        _time(wanted, "since")
    elif event == "limited":
        _says(wanted, "until")
        _time(wanted, "until")
        _texts(wanted, "scope")
    elif event == "receipt":
        _counts(wanted, "seq", 1, True)
        _one_of(wanted, "state", "in_context", "refused")


def _texts(payload: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        _is(payload, key, str, "a string")


def _counts(payload: Mapping[str, Any], key: str, least: int, needed: bool) -> None:
    value = payload.get(key)
    if value is None and not needed:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Unsaid(f"{key} must be a whole number of at least {least}")


def _one_of(payload: Mapping[str, Any], key: str, *words: str) -> None:
    if payload.get(key) not in words:
        raise Unsaid(f"{key} must be one of {', '.join(words)}")


def _time(payload: Mapping[str, Any], key: str) -> None:
    _texts(payload, key)
    if payload.get(key) is not None and not re.match(r"\d{4}-?\d\d-?\d\d(T\d\d:?\d\d|$)", payload[key]):
        raise Unsaid(f"{key} must be an ISO 8601 time")


def _is(payload: Mapping[str, Any], key: str, kind: type, name: str) -> None:
    if payload.get(key) is not None and not isinstance(payload[key], kind):
        raise Unsaid(f"{key} must be {name}")


def _says(payload: Mapping[str, Any], key: str) -> None:
    if payload.get(key) is None:
        raise Unsaid(f"{key} is missing")
    _is(payload, key, str, "a string")
    if not payload[key].strip(" \t\n\r\f"):
        raise Unsaid(f"{key} must not be empty")


def each_option(options: Optional[Sequence[Any]]) -> Optional[List[Any]]:
    """Returns the options of a question as they are sent. A text is its own value."""
    if options is None:
        return None
    return [{"label": option, "value": option} if isinstance(option, str) else option for option in options]


def without_none(**members: Any) -> Dict[str, Any]:
    """Returns the members that are not None."""
    return {key: value for key, value in members.items() if value is not None}


def _never(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def read_line(line: bytes) -> Optional[Dict[str, Any]]:
    """Decodes a line. Returns None if it is not a JSON object.

    A duplicate member of the line itself becomes _Twice, because it is unknown which one was meant.
    In nested objects, the last one counts.
    """
    twice: List[Tuple[Dict[str, Any], List[Tuple[str, Any]]]] = []

    def object_of(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.append((found, pairs))
        return found

    try:
        text = line.decode("utf-8")
        found = json.loads(text, object_pairs_hook=object_of, parse_constant=_never)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode("utf-8")  # rejects half of a surrogate pair
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    for where, pairs in twice:
        if where is found:
            keys = [key for key, _ in pairs]
            return {key: _Twice if keys.count(key) > 1 else value for key, value in found.items()}
    return found


def without_doubled(message: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns a message without duplicate members."""
    return {key: value for key, value in message.items() if value is not _Twice}


class _Twice:
    """The value of a duplicate member. It has none of the types that callers ask for."""


class Lines:
    """Splits a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the lines that are complete now, and keeps the rest."""
        if b"\n" not in chunk:
            self._rest += chunk
            return
        first, *others = chunk.split(b"\n")
        yield bytes(self._rest) + first
        self._rest = bytearray(others.pop())
        yield from others

    def rest(self) -> bytes:
        """Returns a last line that has no end."""
        return bytes(self._rest)
