# An agent is any program. What it prints is its log.
import json
import os
import sys

print("hello, I am", os.environ.get("ORC_AGENT_ID"))

# What arrives on stdin are messages, one JSON object a line. The last one is
# notify:shutdown; then stdin ends, and so should the agent.
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "notify:shutdown":
        print("asked to stop:", message["payload"]["reason"])
    else:
        print("told:", message["type"])
print("goodbye")
