"""What the dialogues do not reach of jobs: exceptions, questions, shutdown."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

import orchestrator_agent as sdk
from tests.wire import PATIENCE, Wire

Error = Dict[str, Any]


class TestSkills(unittest.TestCase):
    def failing(self, do: Callable[[sdk.Delegated], Any]) -> "tuple[Error, str]":
        """The error of a job, and what is shown on stderr."""
        with Wire() as wire, contextlib.redirect_stderr(io.StringIO()) as shown:
            served = wire.serve(do)
            wire.bake("loaf")
            response = wire.hear()
            self.assertEqual(response["status"], "failed")
            wire.shut_down()
            served()
            return response["error"], shown.getvalue()

    def test_exceptions(self) -> None:
        def key(job: sdk.Delegated) -> Any:
            return job.payload["grams"]

        def silent(job: sdk.Delegated) -> Any:
            raise ValueError

        def leaves(job: sdk.Delegated) -> Any:
            sys.exit("enough")

        def half(job: sdk.Delegated) -> Any:
            raise sdk.Failed("\ud800")

        for do, message, seen in (
            (key, "KeyError: 'grams'", "in key"), (silent, "ValueError", "in silent"), (leaves, "enough", "SystemExit"),
        ):
            error, shown = self.failing(do)
            self.assertEqual(error, {"code": "INTERNAL_ERROR", "message": message, "recoverable": False})
            self.assertIn(seen, shown)
        error, shown = self.failing(half)
        self.assertIn("what came of it cannot be told", error["message"])
        self.assertEqual(shown, "")

    def test_what_cannot_be_told(self) -> None:
        loop: List[Any] = []
        loop.append(loop)
        faults: List[Any] = [sdk.Fault("A\nB", "x"), sdk.Fault("A", "x", {"n": object()}), sdk.Fault("A", "x", None, 7)]  # type: ignore[arg-type]
        for made in (loop, {1, 2}, float("nan"), object()):
            self.assertIn("cannot be told", self.failing(lambda job: made)[0]["message"])
        for fault in faults[1:]:
            with self.subTest(fault):
                self.assertIn("cannot be told", self.failing(mock.Mock(side_effect=fault))[0]["message"])
        self.assertEqual(self.failing(mock.Mock(side_effect=faults[0]))[0]["code"], "A\nB")

    def test_what_came_of_what_it_has_delegated(self) -> None:
        error = {"code": "MCP_ERROR", "message": "no mill", "recoverable": True, "details": {"n": 1}}
        for status in ("failed", "cancelled"):
            with Wire() as wire:
                served = wire.serve(lambda job: job.delegate("mill", id="flour").wait(PATIENCE))
                wire.bake("loaf")
                self.assertEqual(wire.hear()["id"], "flour")
                wire.say(id="flour", status=status, error=error)
                self.assertEqual(wire.hear()["error"], error)
                wire.close()
                served()

    def test_nothing_is_said_of_a_job_that_is_over(self) -> None:
        jobs: List[sdk.Delegated] = []
        with Wire() as wire:
            served = wire.serve(jobs.append)
            wire.bake("loaf")
            wire.hear()
            made = ("a", "text/plain", "b")
            for say in (jobs[0].progress, lambda: jobs[0].ask("Which?"), lambda: jobs[0].artifact(*made)):
                with self.assertRaises(sdk.Unsaid):
                    say()
            wire.close()
            served()
            self.assertFalse(wire.heard())

    def test_a_job_that_has_made_too_much_is_cancelled_all_the_same(self) -> None:
        def do(job: sdk.Delegated) -> None:
            for name in ("a", "b"):
                job.artifact(name, "text/plain", "x" * (9 << 20))
            job.progress("ready")
            job.stop.wait(PATIENCE)

        with Wire() as wire:
            served = wire.serve(do)
            wire.bake("loaf")
            wire.hear()
            wire.act("loaf", "cancel")
            response = wire.hear()
            self.assertEqual((response["status"], "artifacts" in response), ("cancelled", False))
            wire.close()
            served()

    def test_what_makes_no_sense_is_not_said(self) -> None:
        def do(job: sdk.Delegated) -> Any:
            twice: List[sdk.Option] = [{"label": "a", "value": "r"}, {"label": "b", "value": "r"}]
            for say in (
                lambda: job.ask(" "), lambda: job.ask("Which?", twice), lambda: job.ask("\ud800"),
                lambda: job.artifact("", "text/plain", ""), lambda: job.artifact("a", "text/plain", b"b"),  # type: ignore[arg-type]
                lambda: job.delegate("mill", [1]), lambda: job.delegate("task.status"), lambda: job.progress("\ud800"),  # type: ignore[arg-type]
            ):
                with self.assertRaises(sdk.Unsaid):
                    say()
            job.progress("all the same")

        with Wire() as wire:
            served = wire.serve(do)
            wire.bake("loaf")
            self.assertEqual([wire.hear().get("message"), wire.hear()["status"]], ["all the same", "completed"])
            wire.close()
            served()

    def test_who_it_is(self) -> None:
        with mock.patch.dict(os.environ, ORC_AGENT_ID="baker"), Wire() as wire:
            served = wire.serve(lambda job: None)
            wire.bake("loaf")
            self.assertEqual(wire.hear()["metadata"]["agent"], "baker")
            wire.close()
            served()


class TestAsking(unittest.TestCase):
    def test_a_question_to_a_person_is_withdrawn_after_its_time(self) -> None:
        with Wire() as wire:
            with self.assertRaises(TimeoutError):
                wire.conn.ask("ask-user", {"question": "Which?"}, timeout=0)
            asked, withdrawn = wire.hear(), wire.hear()
            self.assertEqual(withdrawn["type"], "request:withdraw-question")
            self.assertEqual(withdrawn["payload"], {"requestId": asked["id"]})

    def test_a_time_limit(self) -> None:
        def do(job: sdk.Delegated) -> str:
            with self.assertRaises(TimeoutError):
                job.ask("Which?", timeout=0)
            return str(job.ask("And now?"))

        with Wire() as wire:
            served = wire.serve(do)
            wire.bake("loaf")
            said = [wire.hear() for _ in range(3)]
            self.assertEqual([each["status"] for each in said], ["input_required", "in_progress", "input_required"])
            wire.act("loaf", "update", input="rye")
            self.assertEqual([wire.hear()["status"], wire.hear()["result"]], ["in_progress", "rye"])
            wire.close()
            served()

    def test_one_question_at_a_time(self) -> None:
        def do(job: sdk.Delegated) -> List[str]:
            asked = [wire.start(lambda n=n: job.ask(f"Which {n}?")) for n in range(8)]
            return sorted(wait() for wait in asked)

        with Wire() as wire:
            served = wire.serve(do)
            wire.bake("loaf")
            for _ in range(8):
                question = wire.hear()
                self.assertEqual(question["status"], "input_required")
                wire.act("loaf", "update", input=question["message"])
                self.assertEqual(wire.hear()["status"], "in_progress")
            self.assertEqual(wire.hear()["result"], [f"Which {n}?" for n in range(8)])
            wire.close()
            served()


class TestTheEnd(unittest.TestCase):
    def test_what_is_asked_while_it_goes(self) -> None:
        go = threading.Event()

        def do(job: sdk.Delegated) -> Any:
            if job.id == "asks":
                return job.ask("Which?")
            self.assertTrue(job.stop.wait(PATIENCE))
            return go.wait(PATIENCE)

        with Wire() as wire:
            served = wire.serve(do, capacity=2)
            for task in ("asks", "works", "cancelled", "waits"):
                wire.bake(task)
            self.assertEqual(wire.hear()["id"], "asks")
            wire.act("asks", "status")
            wire.hear()
            wire.shut_down()
            wire.act("works", "status")
            wire.act("cancelled", "cancel")
            wire.bake("late")
            said = sorted((wire.hear() for _ in range(2)), key=lambda each: str(each["id"]))
            self.assertEqual([each["status"] for each in said], ["cancelled", "in_progress"])
            wire.read()
            go.set()
            self.assertIs(wire.hear()["result"], True)
            with self.assertRaises(sdk.Unfinished) as left:
                served()
            self.assertIn(left.exception.count, (2, 3), "what asks, what waits, and what came too late if it was heard")

    def test_stdout_breaks(self) -> None:
        go = threading.Event()
        with Wire() as wire:
            served = wire.serve(lambda job: go.wait(PATIENCE))
            wire.bake("a")
            wire.act("a", "status")
            wire.hear()
            wire.tear()
            go.set()
            with self.assertRaises(sdk.Torn):
                served()

    def test_beside_work(self) -> None:
        with Wire() as wire:
            worked, served = wire.start(lambda: wire.conn.work(lambda job: None)), wire.serve(lambda job: 1)
            wire.bake("loaf")
            self.assertEqual(wire.hear()["result"], 1)
            wire.shut_down()
            worked()
            served()


if __name__ == "__main__":
    unittest.main()
