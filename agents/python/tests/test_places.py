"""What the dialogues do not reach of many jobs: threads, places, memory."""

from __future__ import annotations

import queue
import threading
import unittest
from typing import Any, List
from unittest import mock

import orchestrator_agent as sdk
from orchestrator_agent._work import exchange
from orchestrator_agent._work.exchange import Final, Finals
from orchestrator_agent._work.serve import Server
from tests.wire import PATIENCE, Wire


class TestPlaces(unittest.TestCase):
    def test_no_more_than_the_capacity_and_in_order(self) -> None:
        lock, at_work, most, begun = threading.Lock(), [0], [0], []

        def do(job: sdk.Delegated) -> None:
            with lock:
                begun.append(job.id)
                at_work[0] += 1
                most[0] = max(most[0], at_work[0])
            job.progress()
            with lock:
                at_work[0] -= 1

        with Wire() as wire:
            served = wire.serve(do, capacity=3)
            for n in range(200):
                wire.bake(str(n))
            said = [wire.hear() for _ in range(400)]
            wire.shut_down()
            served()
        self.assertLessEqual(most[0], 3)
        self.assertEqual(len([each for each in said if each["status"] == "completed"]), 200)
        self.assertEqual(sorted(begun, key=int), [str(n) for n in range(200)])
        self.assertTrue(all(int(each) - at < 3 for at, each in enumerate(begun)), begun)

    def test_a_job_that_waits_for_two_things_has_one_place(self) -> None:
        begun, go, back = threading.Event(), threading.Event(), threading.Event()
        one_is_there = threading.Event()

        def do(job: sdk.Delegated) -> Any:
            if job.id == "other":
                begun.set()
                self.assertTrue(go.wait(PATIENCE))
                return back.is_set()
            flour, salt = job.delegate("mill", id="flour"), job.delegate("fetch", id="salt")
            fetched = wire.start(lambda: (salt.wait(PATIENCE), one_is_there.set()))
            flour.wait(PATIENCE)
            back.set()
            fetched()
            return "baked"

        with Wire() as wire:
            served = wire.serve(do, capacity=1)
            wire.bake("loaf")
            self.assertEqual([wire.hear()["id"], wire.hear()["id"]], ["flour", "salt"])
            wire.bake("other")
            self.assertTrue(begun.wait(PATIENCE))
            wire.say(id="salt", status="completed")
            self.assertTrue(one_is_there.wait(PATIENCE), "as long as the job waits for flour it needs no place")
            wire.say(id="flour", status="completed")
            wire.read()
            go.set()
            self.assertEqual([wire.hear()["result"], wire.hear()["result"]], [False, "baked"])
            wire.close()
            served()

    def test_two_jobs_of_a_task_are_never_at_work(self) -> None:
        acts: "queue.Queue[str]" = queue.Queue()
        begun: "queue.Queue[int]" = queue.Queue()

        def do(job: sdk.Delegated) -> str:
            begun.put(job.payload["n"])
            return acts.get(timeout=PATIENCE)

        with Wire() as wire:
            served = wire.serve(do)
            for n in range(3):  # the second is cancelled before it begins
                wire.say(id="loaf", type="bake", payload={"n": n})
                if n == 0:
                    self.assertEqual(begun.get(timeout=PATIENCE), 0)
                if n < 2:
                    wire.act("loaf", "cancel")
                    self.assertEqual(wire.hear()["status"], "cancelled")
            wire.act("loaf", "status")
            self.assertEqual(wire.hear(), {"id": "loaf", "status": "pending"})
            self.assertTrue(begun.empty())
            acts.put("of the first")
            self.assertEqual(begun.get(timeout=PATIENCE), 2)
            acts.put("of the third")
            self.assertEqual(wire.hear()["result"], "of the third")
            wire.close()
            served()

    def test_no_thread_can_be_started(self) -> None:
        go, start = threading.Event(), threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if thread.name == "job b":
                raise RuntimeError("can't start new thread")
            start(thread)

        with Wire() as wire:
            served = wire.serve(lambda job: job.id == "b" or go.wait(PATIENCE))
            wire.bake("a")
            with mock.patch.object(threading.Thread, "start", refuse):
                wire.bake("b")
                wire.act("b", "status")
                self.assertEqual(wire.hear(), {"id": "b", "status": "pending"})
            go.set()
            self.assertEqual([wire.hear()["id"], wire.hear()["id"]], ["a", "b"])
            wire.close()
            served()


class TestMemory(unittest.TestCase):
    def test_what_came_of_jobs(self) -> None:
        finals = Finals()
        for n in range(exchange.MOST + 10):
            finals.add(str(n), Final(b"x", {}))
        self.assertEqual((finals.get("9"), len(finals._by_task)), (None, exchange.MOST))
        for n in range(3):
            finals.add("large", Final(b"x" * (exchange.LARGEST + n), {}))
        self.assertEqual((list(finals._by_task), finals._size), (["large"], exchange.LARGEST + 2))

    def test_what_is_asked_again_and_again(self) -> None:
        with Wire() as wire:
            for _ in range(100):
                wire.bake("loaf")
            for _ in range(100):
                wire.act("loaf", "status")
            wire.say(type="response:error", correlationId="loaf", error={"code": "TIMEOUT", "message": "no server"})
            wire.read()
            self.assertEqual(len(wire.conn._hatch._asked), 2)
            go = threading.Event()
            served = wire.serve(lambda job: go.wait(PATIENCE))
            self.assertEqual(wire.hear()["status"], "in_progress")
            go.set()
            self.assertEqual(wire.hear()["status"], "completed")
            wire.close()
            served()
            self.assertEqual((list(wire.conn._hatch._asked), wire.conn._hatch._latest), ([], {}))

    def test_what_is_asked_while_nobody_serves(self) -> None:
        with Wire() as wire:
            wire.shut_down()
            for n in range(1500):
                wire.bake(str(n))
            dropped = 0
            while dropped < 501:  # which may be told in parts
                dropped += int(wire.hear()["payload"]["message"].partition(" ")[0])
            self.assertEqual(dropped, 501)
            hatch = wire.conn._hatch
            self.assertEqual(([hatch._asked[at].task for at in (0, 1, -1)], len(hatch._asked)), (["", "501", "1499"], 1000))
            wire.serve(lambda job: None)()  # the agent is to go, and nothing begins
            served = wire.serve(lambda job: None)
            for _ in range(999):
                self.assertEqual(wire.hear()["status"], "completed")
            wire.close()
            served()
            self.assertEqual((hatch._size, hatch._latest), (0, {}))

    def test_nothing_is_left_of_jobs(self) -> None:
        servers: List[Any] = []

        class Kept(Server):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                servers.append(self)

        with mock.patch("orchestrator_agent._agent.Server", Kept), Wire() as wire:
            def do(job: sdk.Delegated) -> Any:
                return job.delegate("mill", id=job.id + "-flour").wait(PATIENCE).result

            served = wire.serve(do)
            for n in range(50):
                wire.bake(str(n))
                wire.say(id="x", type="paint", payload={})
                said = [wire.hear(), wire.hear()]
                wire.say(id=f"{n}-flour", status="completed", result=1)
                said.append(wire.hear())
                self.assertEqual({each.get("status") for each in said}, {None, "completed", "failed"})
            wire.shut_down()
            served()
        server = servers[0]
        self.assertEqual((server._jobs, server._busy, server._stop._bells), ({}, 0, []))
        self.assertEqual(wire.conn._delegations._by_id, {})

    def test_notices_that_nobody_takes(self) -> None:
        with mock.patch("orchestrator_agent._connection.inbox.REMEMBERED", 10), Wire() as wire:
            served = wire.serve(lambda job: None)
            wire.bake("loaf")
            wire.hear()
            for n in range(30):
                wire.say(type="notify:weather", payload={"n": n})
            wire.close()
            served()
            self.assertEqual([notice.payload["n"] for notice in wire.conn.news()], list(range(20, 30)))


if __name__ == "__main__":
    unittest.main()
