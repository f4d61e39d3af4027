# Prints the id of the first task with a name. With a second argument, runs that command of orchestrator task with the id.
name=$1
id=$(orchestrator task ls -n all --json | sed 's/},{"id":/},\n{"id":/g' | sed -n 's/.*{"id":"\([^"]*\)","name":"'"$name"'".*/\1/p' | head -n 1)
[ $# -gt 1 ] || {
  echo "$id"
  exit
}
shift
command=$1
shift
exec orchestrator task "$command" "$id" "$@"
