// Package hosts is the hub's side of agents on other machines: which hosts there are, which of them
// gets an agent, and the runs of agents there. Package runner is the host's side.
//
// # How many hosts
//
// A hub with 20 hosts and 1,000 agents on one machine with two cores, each agent with a line a second, and
// something happening to a hub or a host each minute for ten minutes ("go run ./fixtures/bench farm"), has cost:
//
//	FIGURES
//
// From these, and those of the record (fixtures/bench), follows what a team of 1,000 hosts needs, if each has 100
// agents, and they do 10 million tasks a day. None of this was run.
//
//   - Lines. 100,000 agents with a line a second take PERLINE of the hub's CPU a line, which is CORES cores. One hub
//     cannot do it, and most of these lines are output that nobody reads. So the first step beyond this is that output
//     stays on its host, and the hub gets the messages of agents and what somebody follows.
//   - Beats. Each host sends one each 2 seconds, with the figures of its agents: 500 a second. They are no records.
//   - Records. 10 million tasks a day are 116 a second, 600 at the busiest times, and some 6,000 records. One log takes
//     37,000 a second. A disk gets 45 GB a day, and no record of a shared log is removed yet: that is the second step.
//   - Memory of the hub. An ended task leaves the State when there are 1,000, and is read from the record then. An open
//     one takes 1.2 KiB. So tasks are no limit.
//   - Take-over. A hub that stands by applies what it reads, so it takes over in the same time with a million tasks
//     (fixtures/bench takeover). The hosts join it, 1,000 TLS handshakes: a few seconds on one core.
//   - A start of everything. The hub orders a run, and a host starts it: START a second. So 100,000 agents take minutes.
//
// So a hub is good for some thousand agents, and what is beyond that is divided by teams: each has its own record, hub
// and hosts, and does not know of the others. That works today: with a server of PostgreSQL or NATS, any number of
// teams use it, each with a log of its own (store.log). With hubs that keep the record themselves, each team has its own
// processes and ports.
//
// One process for many teams was not built. It would save the memory of processes (FIXED MiB each) and the choice of
// ports. But it needs a bus between teams, a door that knows them by name, and rights of operators for each, which nobody
// has asked for; and one panic or a full disk would end all its teams, not one. Streams of one server sync alone, so
// 8 to 16 teams can share the disk of a server of NATS before commits get slower.
package hosts
