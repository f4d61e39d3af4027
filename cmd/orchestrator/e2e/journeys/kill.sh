# Kills the orchestrator.
kill -9 "$(orchestrator status --json | sed 's/^[^{]*{\("[a-z_]*":"[^"]*",\)*"pid":\([0-9]*\).*/\2/')"
