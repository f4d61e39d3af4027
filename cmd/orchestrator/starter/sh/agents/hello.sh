#!/bin/sh
# An agent is any program. What it prints is its log.
echo "hello, I am $ORC_AGENT_ID"

# What arrives on stdin are messages, one JSON object a line. The last one is
# notify:shutdown; then stdin ends, and so should the agent.
while IFS= read -r line; do
  case $line in
  *notify:shutdown*) echo "asked to stop" ;;
  *) echo "told: $line" ;;
  esac
done
echo "goodbye"
