package wire

// Farewell is the last line that the orchestrator sends to an agent on a connection. It is the
// control character EOT, which begins no message. A connection that ends without it was
// interrupted, and messages may be missing.
const Farewell = "\x04\n"
