"""Dialogues as they stand in their files, and what is equal in them."""

from __future__ import annotations

import json
import os
import re
import uuid
from decimal import Decimal
from typing import Any, Callable, Dict, List, NamedTuple, Set

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "dialogues")


class Step(NamedTuple):
    """A line of a dialogue, with those that continue it."""

    place: str
    word: str
    rest: str


class Dialogue(NamedTuple):
    """One of a file."""

    title: str
    steps: List[Step]


def dialogues() -> List[Dialogue]:
    """All that there are."""
    found: List[Dialogue] = []
    for name in sorted(os.listdir(FOLDER)):
        if name.endswith(".txt"):
            with open(os.path.join(FOLDER, name), encoding="utf-8", newline="\n") as file:
                found += read_dialogues(name, file.read())
    return found


def read_dialogues(name: str, text: str) -> List[Dialogue]:
    found: List[Dialogue] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] in " \t":
            place, word, rest = found[-1].steps.pop()
            found[-1].steps.append(Step(place, word, rest + " " + line.strip()))
            continue
        word, _, rest = line.partition(" ")
        if word == "dialogue":
            found.append(Dialogue(f"{name}: {rest}", []))
        else:
            found[-1].steps.append(Step(f"{name}:{number}", word, rest))
    return found


def parsed(text: str) -> Any:
    """JSON as values, with numbers as exact decimals."""
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


def exact(value: Any) -> Any:
    """What a program is told, likewise."""
    return parsed(json.dumps(value, ensure_ascii=False))


_REPEAT = re.compile(r'"\$repeat:(\d+):([^"]*)"')
_NAME = re.compile(r'"\$([0-9A-Za-z]+)"')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

Same = Callable[[Any, Any, str], str]


class Names:
    """What the names of a dialogue stand for."""

    def __init__(self) -> None:
        self.known: Dict[str, str] = {}
        self._uuids: Set[str] = set()

    def expand(self, text: str) -> str:
        """Puts in what stands for something that is known."""
        text = _REPEAT.sub(lambda found: '"' + found[2] * int(found[1]) + '"', text)
        return _NAME.sub(lambda found: json.dumps(self.known[found[1]]) if found[1] in self.known else found[0], text)

    def same(self, want: Any, got: Any, at: str = "") -> str:
        """Why a value of a line is not the one that is wanted, "" if it is."""
        if isinstance(want, dict):
            if not isinstance(got, dict):
                return f"{at} is no object"
            for key in want:
                wrong = self.same(want[key], got[key], f"{at}/{key}") if key in got else f"{at}/{key} is missing"
                if wrong:
                    return wrong
            return next((f"{at}/{key} is not wanted" for key in got if key not in want), "")
        if isinstance(want, list):
            return _items(want, got, at, self.same)
        if want == "$any":
            return ""
        if isinstance(want, str) and want.startswith("$") and isinstance(got, str):
            return "" if self._stands(want[1:], got) else f"{at} must not be {got[:200]!r}, which stands for {want}"
        return _plain(want, got, at)

    def _stands(self, name: str, text: str) -> bool:
        if name.startswith("has:"):
            return name[4:] in text
        if name == "text":
            return text != ""
        if name == "time":
            return _TIME.fullmatch(text) is not None
        if name == "uuid":
            fresh = text not in self._uuids
            self._uuids.add(text)
            return fresh and uuid.UUID(text).version == 4 and str(uuid.UUID(text)) == text
        fresh = text not in self.known.values()
        self.known[name] = text
        return text != "" and fresh


def told(want: Any, got: Any, at: str = "") -> str:
    """Why what the program is told is not what is wanted: what is not named is not looked at."""
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return f"{at} is no object: {got!r:.200}" if want else ""
        return next((wrong for key in want for wrong in [told(want[key], got.get(key), f"{at}/{key}")] if wrong), "")
    if isinstance(want, list):
        return _items(want, got, at, told)
    return "" if want is None and got == "" else _plain(want, got, at)


def _items(want: List[Any], got: Any, at: str, same: Same) -> str:
    if not isinstance(got, list) or len(got) != len(want):
        return f"{at} is no list of {len(want)}"
    return next((wrong for i in range(len(want)) for wrong in [same(want[i], got[i], f"{at}/{i}")] if wrong), "")


def _plain(want: Any, got: Any, at: str) -> str:
    return "" if type(want) is type(got) and want == got else f"{at} is {got!r:.200}, not {want!r:.200}"
