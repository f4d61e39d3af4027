// Package hosts is the hub's side of agents on other machines: the list of hosts, the choice of a host for an agent,
// and the runs of agents there. Package runner is the host's side.
//
// # What a host costs
//
// "go run ./fixtures/bench farm" ran 20 hosts with 1,000 agents for ten minutes on one machine with two
// cores. Each agent printed a line a second. Each minute a hub or a host was killed, stopped or drained.
//
//	CPU of the hub for each line              69-85 us
//	CPU of the hosts for each line            69-104 us
//	memory of the hub for each agent          100 KiB, and 215 KiB after 420 lines, which it keeps for logs
//	memory of a host, with its 50 agents      41-45 MiB
//	agents that ran a minute after each event 1,000 of 1,000
//
// # A thousand hosts
//
// The following is arithmetic with these figures and the figures of the record. It assumes a team of 1,000 hosts with
// 100 agents each, and 10 million tasks a day. Such a team was not run.
//
//   - Lines: 100,000 lines a second take 7 to 8 cores of the hub. Most of them are output that no client reads. The
//     first change would be to keep output on its host, and to send the hub only messages and followed output.
//   - Beats: each host sends one each 2 seconds, so 500 arrive each second. They are not recorded.
//   - Records: 10 million tasks a day make up to 6,000 records a second at the busiest time. One log takes 37,000.
//   - Disk: a day has 45 GB of records, and no record of a shared log is removed yet. That would be the second change.
//   - Memory for tasks: the hub holds 1,000 ended tasks, and about 1.2 KiB for each open one.
//   - Take-over: a hub that stands by applies records as it reads them. It takes over in 0.8 s with 1,000,000 open
//     tasks (fixtures/bench takeover). Then 1,000 hosts join the new hub, each with a TLS handshake.
//   - Memory for agents: 100,000 agents take 10 to 20 GiB of the hub.
//
// One hub is therefore enough for some thousand agents. Beyond that, the work is divided into teams. Each team has its
// own record, hub and hosts. With a server of PostgreSQL or NATS, teams share the server, and each has its own log
// (store.log). With hubs that keep the record themselves, each team has its own processes and ports. "orchestrator bus
// forward" carries messages between teams.
//
// A process that carries several teams was not built. It would save about 20 MiB for each team, but a panic or a full
// disk would end all teams of the process.
package hosts
