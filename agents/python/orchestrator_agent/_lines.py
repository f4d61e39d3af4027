"""Lines that are JSON objects: how they are spelled, and how they are read."""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._errors import Unsaid

__all__ = [
    "Lines", "message_line", "moment", "new_id", "now", "read_line", "said_line", "spell", "without_doubled", "without_none",
]

#: The longest line that an orchestrator takes unless it is told otherwise.
LONGEST = 16 << 20


def new_id() -> str:
    return str(uuid.uuid4())


def now() -> str:
    """The time as it stands in messages."""
    return moment(time.time())


def moment(when: float) -> str:
    """A time, likewise."""
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be spelled")


def spell(value: Any) -> bytes:
    """A value as JSON, whole numbers digit for digit."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:  # a half of a character is a ValueError
        raise Unsaid(f"it cannot be said: {error}") from None


def said_line(message: Mapping[str, Any]) -> bytes:
    """A message as a whole line."""
    line = spell(message)
    if len(line) > LONGEST:
        raise Unsaid(f"it cannot be said: it takes more than {LONGEST >> 20} MiB")
    return line + b"\n"


def message_line(kind: str, payload: Optional[Mapping[str, Any]]) -> Tuple[str, bytes]:
    """The id and the line of a request or an event."""
    if payload is None:
        payload = {}
    if not isinstance(payload, Mapping):
        raise Unsaid("it cannot be said: a payload must be an object")
    name = new_id()
    return name, said_line({"type": kind, "id": name, "timestamp": now(), "payload": payload})


def without_none(**members: Any) -> Dict[str, Any]:
    """The members that say something: None is for what is left out."""
    return {key: value for key, value in members.items() if value is not None}


def _never(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def read_line(line: bytes) -> Optional[Dict[str, Any]]:
    """The object that a line is, None when it is none.

    Members of the line itself that stand twice are taken out: it is unknown which was meant. Inside
    them the last one counts, as everywhere in Python.
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
            json.dumps(found, ensure_ascii=False).encode("utf-8")  # refuses half a character
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
    """A message without the members that stand twice."""
    return {key: value for key, value in message.items() if value is not _Twice}


class _Twice:
    """Stands where a member stands twice: it is of no type that is asked for."""


class Lines:
    """A stream of bytes, as lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that are whole now. What is left is kept."""
        if b"\n" not in chunk:
            self._rest += chunk
            return
        first, *others = chunk.split(b"\n")
        yield bytes(self._rest) + first
        self._rest = bytearray(others.pop())
        yield from others

    def rest(self) -> bytes:
        """A last line without its end."""
        return bytes(self._rest)
