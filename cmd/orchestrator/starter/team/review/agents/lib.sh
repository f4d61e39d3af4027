# What the agents of this folder have in common. Each message is a JSON object in a line.

# request TYPE ID PAYLOAD asks the orchestrator for something. The answer is a line on stdin
# with the ID as its correlationId.
request() {
  echo '{"type":"request:'"$1"'","id":"'"$2"'","timestamp":"'"$(date -u +%FT%TZ)"'","payload":'"$3"'}'
}

# member KEY prints the first text with that KEY in the payload of the message in $line.
member() {
  value=${line#*'"payload":'} value=${value#*'"'"$1"'":"'}
  echo "${value%%'"'*}"
}
