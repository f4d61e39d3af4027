#!/bin/sh
# An agent is any program. It reads messages on stdin and prints messages on stdout,
# each of them a JSON object in a line of its own. What else it prints is its log.
echo "hello, I am $ORC_AGENT_ID"

while IFS= read -r line; do
  case $line in
  '{"type":"notify:task-assigned"'*)
    task=${line##*'"taskId":"'} task=${task%%'"'*}
    echo "working on $task" # the work is done here
    echo '{"type":"request:complete-task","id":"done-'"$task"'","timestamp":"'"$(date -u +%FT%TZ)"'","payload":{"taskId":"'"$task"'"}}'
    ;;
  esac # and anything else is passed over
done   # stdin ends when the agent is to end
