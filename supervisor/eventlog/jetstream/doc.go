// Package jetstream keeps the entries of a shared event log in a stream of NATS JetStream.
//
// Start starts a server of NATS in the process of each hub. The servers of all hubs are one cluster, which needs most
// of them: two of three. The stream has a copy on each of up to three hubs, and a message is confirmed
// when most copies are on the disk. That needs sync_interval always, which the server has only because
// it is set here; with the default a power failure of all machines loses minutes.
//
// Connect uses servers that this program does not run. The monitor of each must show that it syncs
// always, when the engine is opened and every few seconds after that. While one does not, Put waits.
//
// A server of a hub opens one port for the other hubs. They prove that they know the team's credentials, and
// use TLS between machines. It opens another port on the loopback interface, because without one it starts no
// routes. This process does not use that port, which asks for the same credentials.
//
// # Writing
//
// An entry is a message that is only accepted after message N, which JetStream calls the expected last sequence. An
// answer can be lost. So the same message, with the same id, is sent until its outcome is known. A refusal is no proof
// before the message at that place has been read from the stream's leader: it may be our own, or it may not be stored
// yet.
//
// # Reading
//
// Entries never change, so any server may be asked for them, in batches. Only the leader of the stream
// is asked where it ends.
//
// # Objects
//
// A second stream, with as many copies, has the objects. Only its leader is asked for them.
//
// # Elections
//
// The servers elect a new leader when they have not heard from it for 4 to 9 seconds. The server has no option for
// that, so shortenElections sets its variables. A hub at work asks the leader to be on another machine than itself, so
// the loss of the hub's machine needs no election.
package jetstream
