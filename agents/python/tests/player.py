"""Plays a dialogue: the orchestrator's side of it, and the program's, which does with the package what the
steps say."""

from __future__ import annotations

import json
import os
import queue
import re
import threading
import time
from typing import Any, Callable, Dict, List, Optional

import orchestrator_agent as sdk
from tests.dialogue import Dialogue, Names, exact, parsed, told
from tests.handed import PATIENCE, Handed, Outcome, outcome

#: The methods for the events of coding agents.
REPORTS = {
    "usage": "report_usage", "session": "report_conversation", "turn": "report_turn", "limited": "report_limit",
    "receipt": "report_receipt",
}


class Player:
    """Has a dialogue played."""

    def __init__(self) -> None:
        stdin, self._say = os.pipe()
        self._hear, stdout = os.pipe()
        self._stdin, self._stdout = os.fdopen(stdin, "rb", 0), os.fdopen(stdout, "wb", 0)
        self.conn = sdk.Connection(self._stdin, self._stdout)
        self.names = Names()
        self.lines: "queue.Queue[Optional[str]]" = queue.Queue()
        self.started: Dict[str, "queue.Queue[Outcome]"] = {}
        self.sent: Dict[str, sdk.Sent] = {}
        self.said: Dict[str, sdk.Said] = {}
        self.handed: "queue.Queue[Handed]" = queue.Queue()
        self.hands: Dict[str, Handed] = {}
        self.all_hands: List[Handed] = []
        self.delegations: Dict[str, sdk.Delegation] = {}
        self.session: Any = None
        self.architect: Any = None
        self._closed = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def play(self, dialogue: Dialogue) -> None:
        place = ""
        try:
            for place, word, rest in dialogue.steps:
                self.take(word, rest)
            place = "the end"
            self.take("end", "")
            assert not self.started, f"no step says what came of {list(self.started)}"
            self._stdout.close()
            left = self.lines.get(timeout=PATIENCE)
            assert left is None, f"a line that no step took: {left}"
        except BaseException as error:
            raise AssertionError(f"{place}: {type(error).__name__}: {error}"[:4000]) from error
        finally:
            self._over()

    def _over(self) -> None:
        """What goes on after a step that failed must come to an end."""
        if not self._closed:
            os.close(self._say)
        for hand in self.all_hands:
            hand._acts.put(("over", ""))
        self.conn.wait(PATIENCE)
        if not self._stdout.closed:
            self._stdout.close()
        self._listener.join(PATIENCE)
        self._stdin.close()

    def _listen(self) -> None:
        """Takes what is printed, so that no writer waits."""
        with os.fdopen(self._hear, "rb") as printed:
            for line in printed:
                self.lines.put(line.decode("utf-8"))
        self.lines.put(None)

    def take(self, word: str, rest: str) -> None:
        if word == ">":
            line = self.lines.get(timeout=PATIENCE)
            assert line is not None and line.endswith("\n"), f"half a line: {line!r}"
            wrong = self.names.same(parsed(self.names.expand(rest)), parsed(line))
            assert not wrong, f"{wrong}\nwant {rest}\ngot  {line}"
        elif word == "<":
            self._write((self.names.expand(rest) + "\n").encode("utf-8"))
        elif word == "<part":
            self._write(self.names.expand(re.sub(r"\\$", "", rest)).encode("utf-8"))
        elif word == "<hex":
            self._write(bytes.fromhex(rest))
        elif word == "pause":
            time.sleep(0.2)
        elif word == "end":
            if not self._closed:
                self._closed = True
                os.close(self._say)
            assert self.conn.wait(PATIENCE), "the end is not noticed"
        else:
            self._act(word, self.names.expand(rest))

    def _write(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._say, text):]

    def _act(self, word: str, rest: str) -> None:
        first, _, others = rest.partition(" ")
        second, _, third = others.partition(" ")
        if word == "call":
            self.start(first, lambda: self._call(second, json.loads(third)))
        elif word == "tell":
            self.start(first, lambda: self._tell(second, json.loads(third)))
        elif word == "as":
            self.session = self.conn.open_session(**json.loads(rest))
        elif word == "say":
            self.start(first, lambda: self._speak(second, json.loads(third)))
        elif word in ("work", "develop", "review", "lead", "order", "serve"):
            self._role(word, first, json.loads(others or "{}"))
        elif word in ("task", "plan", "mail", "assignment", "rescope", "request", "correct", "job"):
            self._hand(word, first, others)
        elif word == "do":
            if second == "delegate":
                self.hands[first].delegated = self.started
                self.started[third.partition(" ")[0]] = queue.Queue()
            self.hands[first].do(second, third)
        elif word == "sees":
            self.hands[first].sees(second, third)
        elif word == "delegate":
            self.start(first, lambda: self.conn.delegate(**json.loads(others)))
        elif word in ("await", "status", "update", "cancel"):
            self._about(word, first, self.delegations[second], third)
        elif word == "response":
            self._responds(self.delegations[first], others)
        elif word in ("news", "said"):
            self._hears(word, rest)
        else:
            self._comes(word, first, others)

    def start(self, number: str, do: Callable[[], Any]) -> None:
        done: "queue.Queue[Outcome]" = queue.Queue()
        self.started[number] = done

        threading.Thread(target=lambda: done.put(outcome(do)), daemon=True).start()

    # What comes of things.

    def tells(self, want: str, got: Any) -> None:
        wrong = told(parsed(want or "{}"), exact(got))
        assert not wrong, f"{wrong}\nwant {want}\ngot  {got}"

    def _comes(self, word: str, number: str, rest: str) -> None:
        first, _, others = rest.partition(" ")
        if word == "undelivered":
            self._refused(self.sent[number].wait_refused(PATIENCE), first, others)
            return
        value, error = self.started[number].get(timeout=PATIENCE)
        del self.started[number]
        if word in ("answer", "delivered", "done"):
            if error:
                raise error
            if word != "done":
                self.tells(rest, value)
            elif isinstance(value, sdk.Sent):
                self.sent[number] = value
            elif isinstance(value, sdk.Delegation):
                self.delegations[number] = value
        elif word == "failed":
            assert isinstance(error, sdk.Fault), repr(error)
            self.tells(rest, vars(error))
        elif word == "cancelled":
            assert isinstance(error, sdk.WorkCancelled), repr(error)
            self.tells(rest, vars(error.fault) if error.fault else {})
        elif word == "refused":
            self._refused(error, first, others)
        elif word == "unfinished":
            assert isinstance(error, sdk.Unfinished) and error.count == int(first), repr(error)
        elif word == "undone":
            self._undone(error, first, others)
        else:
            wanted = {"unsaid": sdk.Unsaid, "unasked": sdk.Unasked, "unanswered": sdk.Unanswered}[word]
            assert isinstance(error, wanted), repr(error)

    def _refused(self, error: Optional[BaseException], code: str, want: str) -> None:
        assert isinstance(error, sdk.Refused) and error.code == code, repr(error)
        self.tells(want, {"message": error.message, "details": error.details or None})

    def _undone(self, error: Optional[BaseException], why: str, want: str) -> None:
        wanted = {
            "incomplete": sdk.Incomplete, "rejected": sdk.Rejected, "unreviewed": sdk.Unreviewed, "ended": sdk.Ended,
            "undelivered": sdk.Undelivered,
        }[why]
        assert isinstance(error, wanted), repr(error)
        if isinstance(error, sdk.Ended):
            self.tells(want, {"taskId": error.task_id, "state": error.state, "why": error.why})
        elif isinstance(error, sdk.Undelivered):
            self.tells(want, {"code": error.code, "message": error.message, "details": error.details})

    def _hears(self, word: str, want: str) -> None:
        if word == "news":
            notice = next(self.conn.news(PATIENCE), None)
            got = None if notice is None else {
                "name": notice.name, "id": notice.id, "timestamp": notice.timestamp, "payload": notice.payload,
            }
        else:
            said = next(self.conn.talk(PATIENCE), None)
            if said is not None:
                self.said[said.message_id] = said
            got = None if said is None else dict(said.document)
        if want == "end":
            assert got is None, got
        else:
            self.tells(want, got)

    def _responds(self, delegation: sdk.Delegation, want: str) -> None:
        response = next(delegation.responses(PATIENCE), None)
        if want == "end":
            assert response is None, response
        else:
            assert response, "there are no more"
            self.tells(want, shown(response))

    # What the program does.

    def _about(self, word: str, number: str, delegation: sdk.Delegation, rest: str) -> None:
        if word == "await":
            self.start(number, lambda: shown(delegation.wait()))
        elif word == "status":
            self.start(number, lambda: shown(delegation.status()))
        elif word == "update":
            self.start(number, lambda: delegation.update(json.loads(rest)))
        else:
            self.start(number, lambda: delegation.cancel(json.loads(rest)))

    def _call(self, operation: str, payload: Any) -> Any:
        verb = getattr(self.conn, operation.replace("-", "_"), None)
        if verb is None:
            return self.conn.ask(operation, payload)
        return verb(**{_snake(key): value for key, value in payload.items()})

    def _tell(self, event: str, payload: Any) -> None:
        if event == "progress":
            self.conn.progress(payload["taskId"], payload["progress"], payload.get("message"), payload.get("output"))
        elif event == "log":
            self.conn.log(payload["level"], payload["message"], payload.get("context"))
        elif event == "error":
            self.conn.trouble(payload["error"], payload.get("taskId"), payload["recoverable"])
        elif event == "question":
            self.conn.wonder(payload["question"], payload.get("context"))
        elif event in REPORTS:
            getattr(self.conn, REPORTS[event])(**{_snake(key): value for key, value in payload.items()})
        else:
            self.conn.tell(event, payload)

    def _speak(self, verb: str, given: Dict[str, Any]) -> sdk.Sent:
        session = self.session.chain(given.pop("chain")) if "chain" in given else self.session
        if "said" in given:
            given["said"] = self.said[given["said"]]
        sent: sdk.Sent = getattr(session, verb.replace("-", "_"))(*given.values())
        return sent

    def _hand(self, kind: str, who: str, want: str) -> None:
        hand = self.handed.get(timeout=PATIENCE)
        self.hands[who] = hand
        self.all_hands.append(hand)
        assert (hand.kind, hand.who) == (kind, who), f"{hand.kind} {hand.who} is called"
        self.tells(want, hand.given)

    def _called(self, kind: str, who: str, given: Any, stop: sdk.Stop, about: Any = None) -> Any:
        hand = Handed(kind, who, given, stop, about)
        self.handed.put(hand)
        return hand.run()

    def _role(self, word: str, number: str, options: Dict[str, Any]) -> None:
        called = self._called
        if word == "work":
            self.start(number, lambda: self.conn.work(
                lambda job: called("task", job.id, job.task, job.stop, job),
                plan=(lambda job: called("plan", job.id, job.task, job.stop, job)) if options.get("plan") else None,
                mail=(lambda mail, stop: called("mail", str(mail["seq"]), mail, stop)) if options.get("mail") else None,
            ))
        elif word == "develop":
            self.start(number, lambda: self.session.develop(
                lambda task: called("assignment", task.id, task.assignment, task.stop, task),
                rescope=(lambda task, why: called("rescope", task.id, {"scope": why.scope}, task.stop, task))
                if options.get("rescope") else None,
                capacity=options.get("capacity", 1), progress_after=options.get("progressAfter", 120e3) / 1000,
                progress_every=options.get("progressEvery", 30e3) / 1000,
            ))
        elif word == "review":
            self.start(number, lambda: self.session.review(
                lambda request, stop: called("request", request["review_id"], request, stop),
                correct=(lambda request, result, why, stop: called(
                    "correct", request["review_id"], {"code": why.code, "message": why.message}, stop,
                )) if options.get("correct") else None,
                capacity=options.get("capacity", 1),
            ))
        elif word == "serve":
            self.start(number, lambda: self.conn.serve(
                {skill: lambda job: called("job", job.id, job.request, job.stop, job) for skill in options["skills"]},
                agent=options.get("agent", ""), capacity=options.get("capacity"),
            ))
        elif word == "lead":
            self.start(number, lambda: self.session.lead(self._lead))
            self._hand("lead", "lead", "")
        else:
            self.start(number, lambda: self._order(options))

    def _lead(self, architect: sdk.Architect) -> Any:
        self.architect = architect
        return self._called("lead", "lead", {}, architect.stop)

    def _order(self, options: Dict[str, Any]) -> Any:
        d = self.architect.deliver(
            options["developer"], options["assignment"], options.get("reviewer"), options.get("review"),
        )
        return {"taskId": d.task_id, "reviews": d.reviews, "forced": d.forced, "completion": d.completion, "review": d.review}


def _snake(key: str) -> str:
    return re.sub("([A-Z])", lambda found: "_" + found[1].lower(), key)


def shown(response: sdk.Response) -> Dict[str, Any]:
    """What the program is told with a response."""
    return {key: value for key, value in vars(response).items() if key != "document"}
