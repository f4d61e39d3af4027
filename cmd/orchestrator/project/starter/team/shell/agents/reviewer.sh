#!/bin/sh
# The reviewer is given a task when the one that it depends on is done. The result of that
# stands in the task.
. agents/lib.sh

while IFS= read -r line; do
  case $line in
  '{"type":"notify:task-assigned"'*)
    task=$(member taskId)
    request get-task "read-$task" '{"taskId":"'"$task"'"}'
    ;;
  *'"correlationId":"read-'*)
    letter=$(member letter)
    printf 'reading: %s\n' "$letter"
    case $letter in
    Dear*) request complete-task "done-$task" '{"taskId":"'"$task"'","result":{"verdict":"approved"}}' ;;
    *) request fail-task "done-$task" '{"taskId":"'"$task"'","error":"it does not begin with Dear"}' ;;
    esac
    ;;
  esac
done
