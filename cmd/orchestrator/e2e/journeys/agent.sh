# Does each task in its workspace, or where it runs: it writes NAME.txt with the names of the other files, and commits it.
#
# FAIL   names a task that fails as long as there is no file "fixed" in the folder where the agent runs
# HOLD   names a task that goes on when there is a file "go" there
# SHARED lets each task write to the same file as well
# TOKENS is what each task uses, in tokens
# NOTES  is the number of notes, of 1 KB each, that the agent adds to each task
home=$PWD n=0
say() {
  n=$((n + 1))
  printf '{"type":"%s","id":"%s-%s","timestamp":"%s","payload":%s}\n' "$1" "$ORC_RUN_ID" "$n" "$(date -u +%FT%TZ)" "$2"
}
commit() {
  git add -A
  git diff --cached --quiet || git commit -qm "$name"
}
others() {
  set --
  for file in *.txt; do [ ! -e "$file" ] || [ "$file" = "$name.txt" ] || set -- "$@" "$file"; done
  echo "$*"
}
work() {
  id=$(expr "$line" : '.*"task":{"id":"\([^"]*\)"') name=$(expr "$line" : '.*"task":{"id":"[^"]*","name":"\([^"]*\)"')
  path=$(expr "$line" : '.*"workspace":{"path":"\([^"]*\)"') || path=
  cd "${path:-$home}"
  echo "$name begins"
  [ -z "$TOKENS" ] || say event:usage "{\"taskId\":\"$id\",\"input\":$TOKENS,\"output\":0}"
  for note in $(seq ${NOTES:-0}); do
    say request:add-note "{\"taskId\":\"$id\",\"content\":\"$(printf '%01000d' "$note")\"}"
  done
  if [ "$name" = "$FAIL" ] && [ ! -e "$home/fixed" ]; then
    echo half >half.txt
    say request:fail-task "{\"taskId\":\"$id\",\"error\":\"no luck\"}"
    return
  fi
  while [ "$name" = "$HOLD" ] && [ ! -e "$home/go" ]; do sleep 0.05; done
  case $name in
  Merge*)
    commit=$(expr "$line" : '.*Merge the commit \([0-9a-f]*\)')
    git merge -q "$commit" >/dev/null 2>&1 || {
      grep -v '^[<=>]' shared.txt | sort >merged
      mv merged shared.txt
      git add -A
      git commit -qm resolved
    }
    ;;
  *)
    others >"$name.txt"
    [ -z "$SHARED" ] || echo "$name" >shared.txt
    [ -z "$path" ] || commit
    ;;
  esac
  echo "$name is done"
  say request:complete-task "{\"taskId\":\"$id\"}"
}
while read -r line; do
  case $line in
  *'"notify:task-assigned"'*) say request:get-task "{\"taskId\":\"$(expr "$line" : '.*"taskId":"\([^"]*\)"')\"}" ;;
  *'"status":"completed"'* | *'"status":"failed"'* | *'"note":{'*) ;; # answers to what it has said
  '{"type":"response:success"'*'"task":{"id":"'*) work ;;
  '{"type":"response:error"'*) printf '%s\n' "$line" >&2 ;;
  *'"notify:shutdown"'*) exit ;;
  esac
done
