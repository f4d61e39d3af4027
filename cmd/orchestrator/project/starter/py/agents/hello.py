# An agent is any program. It reads messages on stdin and prints messages on stdout,
# each of them a JSON object in a line of its own. What else it prints is its log.
import json, os, sys, time

print("hello, I am", os.environ.get("ORC_AGENT_ID"), flush=True)

for line in sys.stdin:  # it ends when the agent is to end
    message = json.loads(line)
    if message["type"] == "notify:task-assigned":
        task = message["payload"]["taskId"]
        result = {"greeting": "hello, world"}  # the work is done here
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        done = {"type": "request:complete-task", "id": "done-" + task, "timestamp": now, "payload": {"taskId": task, "result": result}}
        print(json.dumps(done), flush=True)
