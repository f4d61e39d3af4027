say() { echo '{"type":"request:'"$1"'","id":"'"$1-$task"'","timestamp":"2026-11-21T14:00:00Z","payload":'"$2"'}'; }
while read -r line; do
  task=$(expr "$line" : '{"type":"notify:task-assigned".*"taskId":"\([^"]*\)"') || continue
  say complete-task '{"taskId":"'"$task"'","result":{"greeting":"hello"}}'
done
