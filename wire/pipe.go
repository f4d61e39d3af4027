package wire

// Farewell is the line that ends what the orchestrator says to an agent that
// has joined by a connection: the control character EOT, which no message
// begins with. A connection that ends without it was cut, and the listener
// has not heard all.
const Farewell = "\x04\n"
