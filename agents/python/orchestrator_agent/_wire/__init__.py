"""The lines of the protocol: JSON, errors, documents, and the validation of messages. It imports no
other layer."""
