"""The roles of a session. It imports only the layers below: _wire, _connection and _work."""
