"""What the dialogues do not reach of delegated work: threads, time limits, memory, streams that break."""

from __future__ import annotations

import threading
import unittest
from typing import Any, List

import orchestrator_agent as sdk
from orchestrator_agent._work.delegation import LARGEST, MOST
from tests.wire import PATIENCE, Wire


class TestDelegation(unittest.TestCase):
    def test_many_threads(self) -> None:
        with Wire() as wire:
            done = [wire.start(lambda n=n: wire.conn.delegate("bake", {"n": n}).wait(PATIENCE)) for n in range(40)]
            for request in sorted((wire.hear() for _ in done), key=lambda each: str(each["id"])):
                wire.say(id=request["id"], status="completed", result=request["payload"]["n"])
            self.assertEqual([wait().result for wait in done], list(range(40)))

    def test_a_time_limit_ends_the_waiting_and_no_more(self) -> None:
        with Wire() as wire:
            work = wire.conn.delegate("bake", id="loaf")
            wire.hear()
            with self.assertRaises(TimeoutError):
                work.wait(0)
            with self.assertRaises(TimeoutError):
                work.status(0)
            self.assertEqual(wire.hear()["type"], "task.status")
            self.assertEqual(list(work.responses(0)), [])
            wire.say(type="response:error", correlationId="loaf", error={"code": "TIMEOUT", "message": "of the first one"})
            wire.read()
            again = wire.start(lambda: work.status(PATIENCE))
            self.assertEqual(wire.hear()["type"], "task.status")
            wire.say(id="loaf", status="completed", result=1)
            self.assertEqual(again().result, 1)
            self.assertEqual(work.wait(0).result, 1)

    def test_what_nobody_takes_is_bounded(self) -> None:
        with Wire() as wire:
            many, large = wire.conn.delegate("bake", id="many"), wire.conn.delegate("bake", id="large")
            for n in range(MOST + 100):
                wire.say(id="many", status="in_progress", message=str(n))
            for _ in range(5):
                wire.say(id="large", status="in_progress", message="x" * (LARGEST // 3))
            for task in ("many", "large"):
                wire.say(id=task, status="completed")
            self.assertEqual((many.wait(PATIENCE).status, large.wait(PATIENCE).status), ("completed", "completed"))
            taken = list(many.responses())
            self.assertEqual((len(taken), taken[0].message, taken[-1].status), (MOST, "101", "completed"))
            self.assertLess(sum(len(each.message) for each in large.responses()), LARGEST)
            self.assertEqual((large._size, wire.conn._delegations._by_id), (0, {}))

    def test_a_handler_that_has_to_stop_waits_for_nothing(self) -> None:
        causes: List[Any] = []

        def do(job: sdk.Job) -> None:
            work = wire.conn.delegate("bake", id="loaf")
            for wait in (work.wait, work.status, lambda: wire.conn.delegate("bake")):
                try:
                    wait()
                except sdk.Cancelled as error:
                    causes.append(error.reason)
            causes.append(list(work.responses()))

        with Wire() as wire:
            worked = wire.start(lambda: wire.conn.work(do))
            wire.say(type="notify:task-assigned", payload={"taskId": "t-1"})
            wire.say(type="response:success", correlationId=wire.hear()["id"], payload={"task": {"id": "t-1", "state": "running"}})
            self.assertEqual(wire.hear()["id"], "loaf")
            wire.say(type="notify:task-cancelled", payload={"taskId": "t-1", "reason": "enough"})
            wire.shut_down()
            worked()
            self.assertEqual(causes, ["enough", "enough", "enough", []])

    def test_streams_that_break(self) -> None:
        with Wire() as wire:
            work = wire.conn.delegate("bake", id="loaf")
            wire.tear()
            for say in (work.status, work.cancel, lambda: wire.conn.delegate("bake", id="cake")):
                with self.assertRaises(sdk.Torn):
                    say()
            self.assertEqual(list(wire.conn._delegations._by_id), ["loaf"])
        with self.assertRaises(sdk.Unanswered):
            work.wait()

    def test_what_is_refused_stays_so(self) -> None:
        with Wire() as wire:
            work = wire.conn.delegate("bake", id="loaf")
            wire.say(type="response:error", correlationId="loaf", error={"code": "UNAUTHORIZED", "message": "not you"})
            for ask in (work.wait, work.status, work.cancel, lambda: work.update(1)):
                with self.assertRaises(sdk.Refused) as refused:
                    ask()
                self.assertEqual(refused.exception.code, "UNAUTHORIZED")
            self.assertEqual(wire.hear()["id"], "loaf")
            wire.conn.delegate("bake", id="loaf")  # its id is free again

    def test_options(self) -> None:
        def option(value: str, label: str) -> sdk.Option:
            return {"label": label, "value": value}

        found = [option("r", "r"), option("w", "Wheat")]
        cases = [
            (["r", "w"], [option("r", "r"), option("w", "w")]), ([{"value": "r"}, {"value": "w", "label": "Wheat"}], found),
            (["r", "r"], []), ([{"value": "r"}, {"value": "r", "label": "Rye"}], []), (["r", " "], []), ("r", []),
            ([{"label": "Rye"}], []), ([{"value": "r", "label": 1}], []), ([None], []), ([], []), (None, []),
        ]
        with Wire() as wire:
            responses = wire.conn.delegate("bake", id="loaf").responses(PATIENCE)
            for given, want in cases:
                wire.say(id="loaf", status="input_required", input={"question": "Which?", "options": given})
                response = next(responses)
                self.assertEqual((response.question, response.options), ("Which?", want), given)

    def test_content_that_is_kept_elsewhere(self) -> None:
        with Wire() as wire:
            work = wire.conn.delegate("bake", id="loaf")
            made = {"name": "photo", "type": "image/png", "content": "", "ref": "sha256:" + "0" * 64}
            wire.say(id="loaf", status="completed", artifacts=[made])
            self.assertEqual(work.wait(PATIENCE).artifacts, [made])

    def test_the_reader_gets_over_everything(self) -> None:
        deep: Any = {}
        for _ in range(900):
            deep = {"deeper": deep}
        with Wire() as wire:
            work = wire.conn.delegate("bake", id="loaf")
            wire.say(id="a", type="bake", payload={}, observability={"baggage": deep})
            for bad in ({"status": 1}, {"status": None}, {"type": []}, {"type": "", "status": "completed"}):
                wire.say(id="loaf", **bad)
            for bad in ({"error": "x"}, {"metadata": []}, {"artifacts": {}}, {"message_type": 7, "type": {}}):
                wire.say(id="loaf", status="failed", **bad)
            wire.say(id="loaf", status="completed", message=7, input=[], result=1)
            self.assertEqual(work.wait(PATIENCE).message, "")

    def test_one_waits_in_many_threads(self) -> None:
        with Wire() as wire:
            work = wire.conn.delegate("bake", id="loaf")
            started = threading.Barrier(9)
            waits = [wire.start(lambda: (started.wait(PATIENCE), work.wait(PATIENCE))[1]) for _ in range(8)]
            started.wait(PATIENCE)
            wire.say(id="loaf", status="failed", error={"code": "TIMEOUT", "message": "late", "recoverable": True})
            raised = []
            for wait in waits:
                with self.assertRaises(sdk.Fault) as fault:
                    wait()
                raised.append(fault.exception)
            self.assertEqual({(each.code, each.message, each.recoverable) for each in raised}, {("TIMEOUT", "late", True)})
            self.assertEqual(len({id(each) for each in raised}), 8, "each has an exception, and a traceback, of its own")


if __name__ == "__main__":
    unittest.main()
