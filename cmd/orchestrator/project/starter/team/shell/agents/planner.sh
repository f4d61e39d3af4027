#!/bin/sh
# The planner asks what the letter is about, and gives out two tasks: one to write it, and
# one to review it, which starts when the letter is written.
. agents/lib.sh

request ask-user topic '{"question":"What is the letter about?","options":[{"value":"thanks"},{"value":"an invitation"}],"timeout":3600000}'
while IFS= read -r line; do
  case $line in
  '{"type":"response:error"'*)
    echo "that did not go well: $line" >&2
    exit 1
    ;;
  *'"correlationId":"topic"'*)
    request submit-task letter '{"type":"write","name":"Write the letter","requiredRole":"writer","payload":{"topic":"'"$(member answer)"'"}}'
    ;;
  *'"correlationId":"letter"'*)
    request submit-task review '{"type":"review","name":"Review the letter","requiredRole":"reviewer","dependencies":["'"$(member id)"'"]}'
    ;;
  *'"correlationId":"review"'*)
    exit 0 # all is planned
    ;;
  esac
done
