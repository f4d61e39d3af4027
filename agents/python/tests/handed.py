"""The functions of the program that the roles call."""

from __future__ import annotations

import json
import queue
from typing import Any, Callable, Dict, Optional, Tuple

import orchestrator_agent as sdk
from tests.dialogue import exact, parsed, told

PATIENCE = 10.0

Outcome = Tuple[Any, Optional[BaseException]]


def outcome(do: Callable[[], Any]) -> Outcome:
    """What comes of something."""
    try:
        return do(), None
    except BaseException as error:
        return None, error


class Handed:
    """A call of a function of the program: it does what the steps say until it is to return."""

    def __init__(self, kind: str, who: str, given: Any, stop: sdk.Stop, about: Any = None) -> None:
        self.kind, self.who, self.given, self.stop, self.about = kind, who, given, stop, about
        self._acts: "queue.Queue[Tuple[str, str]]" = queue.Queue()
        self.did: "queue.Queue[Outcome]" = queue.Queue()
        self.delegated: "Dict[str, queue.Queue[Outcome]]" = {}  # where the outcomes of its delegations go

    def do(self, word: str, given: str) -> None:
        self._acts.put((word, given))
        if word in ("progress", "artifact"):
            _, error = self.did.get(timeout=PATIENCE)
            if error:
                raise error

    def run(self) -> Any:
        while True:
            word, given = self._acts.get()
            if word == "return":
                return json.loads(given) if given else None
            if word == "leave":
                raise self.stop.cause or sdk.Stopped()
            if word == "fail":
                said = json.loads(given)
                raise sdk.Failed(said) if isinstance(said, str) else sdk.Failed(said["error"], said["completion"])
            if word == "fatal":
                raise sdk.Fatal(json.loads(given)["code"], json.loads(given)["error"])
            if word == "fault":
                raise sdk.Fault(**json.loads(given))
            if word == "over":
                raise sdk.Failed("the dialogue is over")
            if word == "delegate":
                number, _, request = given.partition(" ")
                self.delegated[number].put(outcome(lambda: self.about.delegate(**json.loads(request))))
                continue
            self.did.put(outcome(lambda: self._act(word, json.loads(given))))

    def _act(self, word: str, given: Dict[str, Any]) -> Any:
        if word == "help":
            return self.about.help(given["question"], given.get("context"))
        if word == "permission":
            return self.about._conn.ask_permission(**given)
        if word == "ask":
            return self.about.ask(given["question"], given.get("options", ()))
        if word == "artifact":
            return self.about.artifact(**given)
        if self.kind == "job":
            return self.about.progress(**given)
        if self.kind == "task":
            return self.about.progress(given["progress"], given.get("message"), given.get("output"))
        return self.about.progress(given["percent"], given["step"], given["files"])

    def sees(self, what: str, said: str) -> None:
        if what == "refused":
            code, _, want = said.partition(" ")
            _, error = self.did.get(timeout=PATIENCE)
            assert isinstance(error, sdk.Refused) and error.code == code, repr(error)
            wrong = told(parsed(want), exact({"message": error.message, "details": error.details}))
            assert not wrong, wrong
            return
        text = json.loads(said) if said else ""
        if what == "input":
            given, error = self.did.get(timeout=PATIENCE)
            assert error is None, repr(error)
            wrong = told(parsed(said), exact(given))
            assert not wrong, wrong
        elif what in ("answer", "withdrawn"):
            answer, error = self.did.get(timeout=PATIENCE)
            assert isinstance(error, sdk.Withdrawn) if what == "withdrawn" else (answer, error) == (text, None), (answer, error)
        elif what == "update":
            update = next(self.about.updates(PATIENCE), None)
            assert update == text, f"{update!r} is new"
        else:
            assert self.stop.wait(PATIENCE), "it need not stop"
            cause = self.stop.cause
            wanted: Dict[str, Tuple[type, ...]] = {
                "cancelled": (sdk.Cancelled,), "again": (sdk.Replaced,), "shutdown": (sdk.Shutdown, sdk.Closed),
            }
            assert isinstance(cause, wanted[what]), repr(cause)
            assert not isinstance(cause, sdk.Cancelled) or cause.reason == text, cause.reason
