# A developer or a reviewer of a session, as its type says. The developer writes NAME.txt in the workspace of its task and
# commits it. The reviewer requests changes as long as there is a file "strict" where it runs, and approves otherwise.
# It waits for a file "read" there if HOLD is set.
home=$PWD n=0
write() {
  n=$((n + 1))
  printf '{"message_id":"msg-%s-%s","timestamp":"%s","sequence_number":%s,"from_agent":{"agent_id":"%s","agent_type":"%s"},"to_agent":{"agent_id":"%s","agent_type":"architect"},"message_type":"%s","correlation_id":"%s","reply_to":"%s","payload":%s}\n' \
    "$(date +%s)" "$$x$n" "$(date -u +%FT%TZ)" "$n" "$ORC_AGENT_ID" "$ORC_SESSION_TYPE" "$boss" "$1" "$chain" "$message" "$2"
}
member() { expr "$line" : '.*"'"$1"'":"\([^"]*\)"'; }
heading() {
  message=${line#*'"message_id":"'} message=${message%%'"'*}
  boss=${line#*'"from_agent":{"agent_id":"'} boss=${boss%%'"'*}
  chain=$(member correlation_id) task=${line#*'"task_id":"'} task=${task%%'"'*}
}
while read -r line; do
  case $line in
  *'"message_type":"task_assignment"'*)
    heading
    name=$(expr "$line" : '.*"task_description":"\([a-z]*\)')
    write acknowledgment '{}'
    printf '{"type":"request:get-task","id":"%s-%s","timestamp":"%s","payload":{"taskId":"%s"}}\n' "$ORC_RUN_ID" "$n" "$(date -u +%FT%TZ)" "$task"
    ;;
  '{"type":"response:success"'*'"workspace":{"path":'*)
    cd "$(member path)"
    echo "for $boss" >>"$name.txt"
    git add -A
    git commit -qm "$name"
    write task_completion '{"task_id":"'"$task"'","status":"completed","changes":{"files_created":[{"path":"'"$name"'.txt","change_type":"created"}],"files_modified":[],"files_deleted":[]},"summary":"It is there","self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}}'
    ;;
  *'"message_type":"review_request"'*)
    heading
    echo "reads $task"
    while [ -n "$HOLD" ] && [ ! -e "$home/read" ]; do sleep 0.05; done
    verdict=approved findings=
    if [ -e "$home/strict" ]; then
      rm "$home/strict"
      verdict=changes_requested findings='{"finding_id":"f-1","severity":"major","category":"logic","location":{"file":"a.txt","line_start":1},"description":"one line is too few","rationale":"two are better","suggestion":"another line"}'
    fi
    write review_result '{"review_id":"'"$(member review_id)"'","task_id":"'"$task"'","verdict":"'$verdict'","findings":['"$findings"'],"verification":{"tests":{"passed":true},"type_check":{"passed":true},"lint":{"passed":true}},"summary":"It was read"}'
    ;;
  '{"type":"response:error"'*) printf '%s\n' "$line" >&2 ;;
  *'"notify:shutdown"'*) exit ;;
  esac
done
