"""Tasks, delegated work and single messages of sessions. It imports only _wire and _connection."""
