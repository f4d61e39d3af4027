# What the agents of this folder have in common. Each message is a JSON object in a line.

# request TYPE ID PAYLOAD asks the orchestrator for something. The answer is a line on stdin
# with the ID as its correlationId.
request() {
  printf '{"type":"request:%s","id":"%s","timestamp":"%s","payload":%s}\n' "$1" "$2" "$(date -u +%FT%TZ)" "$3"
}

# member KEY prints the first text with that KEY in the payload of the message in $line, as it
# stands there: with its escapes, and so ready for another message.
member() {
  value=${line#*'"payload":'}
  printf '%s\n' "${value#*'"'"$1"'":"'}" | sed -E 's/^(([^"\\]|\\.)*)".*/\1/'
}
