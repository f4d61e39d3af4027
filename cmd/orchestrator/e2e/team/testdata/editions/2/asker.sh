echo '{"type":"request:ask-user","id":"q","timestamp":"2026-11-21T14:00:00Z","payload":{"question":"Which colour?","options":[{"value":"red"},{"value":"blue"}]}}'
echo '{"type":"request:submit-task","id":"t","timestamp":"2026-11-21T14:00:00Z","payload":{"type":"greet","name":"From an agent","requiredCapabilities":["greet"]}}'
cat >/dev/null
