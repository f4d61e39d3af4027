# An agent that does tasks. What the function returns is the result, and what it raises fails
# the task. What it prints is its log.
import os

from orchestrator_agent import Connection

print("hello, I am", os.environ.get("ORC_AGENT_ID"), flush=True)


def work(job):
    return {"greeting": "hello, world", "task": job.task["name"]}  # the work is done here


Connection().work(work)  # it returns when the agent is to end
