"""Agents as processes: every example of README.md, and what print() and other programs do to the lines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import unittest


from tests.dialogue import Dialogue, Names, parsed, read_dialogues

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)


def text_of(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class TestProcess(unittest.TestCase):
    def test_every_example(self) -> None:
        examples = re.findall(r"^```python\n(.*?)^```$", text_of(TOP, "README.md"), re.M | re.S)
        found = read_dialogues("readme.txt", text_of(HERE, "readme.txt"))
        self.assertEqual(len(found), len(examples), "every example has a dialogue")
        for example, dialogue in zip(examples, found):
            with self.subTest(dialogue.title):
                self.run_agent(example, dialogue)

    def test_what_else_is_printed(self) -> None:
        script = """
import os, subprocess, sys
print("before")  # a line of its own, which is log
from orchestrator_agent import Connection
conn = Connection()
print("half a line", end="")
sys.stdout.write("more of it")
subprocess.run(["cat"], check=True)  # an empty stdin
subprocess.run(["echo", "from another program"], check=True)
os.write(1, b"straight to the file")
conn.log("info", "done")
"""
        dialogue = read_dialogues("inline", 'dialogue d\n> {"type":"event:log","id":"$a","timestamp":"$time",'
                                            '"payload":{"level":"info","message":"done"}}\n')[0]
        shown = self.run_agent(script, dialogue, first="before\n")
        for text in ("half a line", "more of it", "from another program", "straight to the file"):
            self.assertIn(text, shown)

    def test_many_threads_print_whole_lines(self) -> None:
        script = """
import threading
from orchestrator_agent import Connection
conn = Connection()
def run(n):
    for i in range(50):
        conn.log("info", "x" * 70000, {"n": n, "i": i})
all = [threading.Thread(target=run, args=(n,)) for n in range(8)]
[t.start() for t in all]
[t.join() for t in all]
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=self.environment(), timeout=60, check=True)
        lines = [json.loads(line)["payload"]["context"] for line in done.stdout.splitlines()]
        self.assertEqual(len(lines), 400)
        for n in range(8):
            self.assertEqual([each["i"] for each in lines if each["n"] == n], list(range(50)))

    def environment(self, **more: str) -> "dict[str, str]":
        return {**os.environ, "PYTHONPATH": TOP, "PYTHONDONTWRITEBYTECODE": "1", **more}

    def run_agent(self, script: str, dialogue: Dialogue, first: str = "") -> str:
        """Plays a dialogue with a script, and returns what it shows on stderr."""
        names, steps, more = Names(), list(dialogue.steps), {}
        if steps[0].word == "as":
            me = json.loads(steps.pop(0).rest)
            more = {"ORC_AGENT_ID": me["agent"], "ORC_SESSION_TYPE": me["type"]}
        agent = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment(**more), encoding="utf-8",
        )
        assert agent.stdin and agent.stdout and agent.stderr
        late = threading.Timer(20, agent.kill)  # then a step finds the end of the lines
        late.start()
        try:
            if first:
                self.assertEqual(agent.stdout.readline(), first)
            for place, word, rest in steps:
                text = names.expand(rest)
                if word == "<":
                    agent.stdin.write(text + "\n")
                    agent.stdin.flush()
                    continue
                line = agent.stdout.readline()
                wrong = names.same(parsed(text), parsed(line)) if line else "there is no more: " + agent.stderr.read()
                self.assertEqual(wrong, "", f"{place}: {line}")
            agent.stdin.close()
            left, shown = agent.stdout.read(), agent.stderr.read()
            self.assertEqual((agent.wait(), left), (0, ""), shown)
            return shown
        finally:
            late.cancel()
            agent.kill()
            agent.wait()
            for stream in (agent.stdin, agent.stdout, agent.stderr):
                stream.close()


if __name__ == "__main__":
    unittest.main()
