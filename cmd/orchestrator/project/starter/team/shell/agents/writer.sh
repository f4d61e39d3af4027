#!/bin/sh
# The writer does each task that it is given: it looks up what the task says, and hands
# over what it has made.
. agents/lib.sh

while IFS= read -r line; do
  case $line in
  '{"type":"notify:task-assigned"'*)
    task=$(member taskId)
    request get-task "read-$task" '{"taskId":"'"$task"'"}'
    ;;
  *'"correlationId":"read-'*)
    topic=$(member topic)
    printf 'writing about %s\n' "$topic" # everything that is not a message is log
    request complete-task "done-$task" '{"taskId":"'"$task"'","result":{"letter":"Dear friends, this is about '"$topic"'."}}'
    ;;
  esac
done
