// Package config reads orchestrator.hcl: the agents to run and how to run them. Load reports
// every mistake of the file in file order, each with its position, its source line and a
// correction. A valid configuration is complete: defaults are filled in, replicas are separate
// agents, paths are absolute, and dependencies have no cycles.
//
// Secrets are not read with the file. Environ reads them for each start of an agent that
// mentions them. No message of this package contains a secret, a value of env() or file(), or
// the value of a sensitive variable.
//
// The package does not start, watch or change anything. It opens no socket, creates no folder
// and does not search a PATH. It does not know what runs: Compare only returns what the
// difference between two files requires. The program that loads the file runs the commands of
// secrets (Options.Run). No exported name uses an HCL type.
//
// # Reload
//
// The table lists what a change requires while the orchestrator runs. A row that ends in .*
// covers all attributes of that block that have no row.
//
//	agent attribute      needs     because
//	command              restart   it is another program
//	wrap                 restart   the same
//	user                 restart   a process keeps its user
//	dir                  restart   a process has its folder from its start
//	env                  restart   the same
//	env_file             restart   the same
//	inherit_env          restart   the same
//	protocol             restart   it decides who reads stdout
//	stdin                restart   it is opened at the start
//	pty                  restart   the same
//	actor                restart   letters are addressed to it
//	permission           restart   a coding agent gets it at its start
//	allow                restart   the same
//	model                restart   the same
//	instructions         restart   the same
//	on_turn_end          restart   the same
//	wire_log             restart   the same
//	resume               restart   the same
//	mcp                  restart   the same
//	limits.open_tasks    live      it is looked at with each task
//	limits.rate_bytes    restart   the bytes of a run are counted from its start
//	limits.connections   live      it is looked at with each connection
//	limits.stored        live      it is looked at with each message
//	limits.*             restart   they are set before the program runs
//	confine              restart   the same
//	placement            restart   a process stays on its machine
//	workspace            live      it is looked at with each task
//	verify               live      the same
//	verify_env           live      the same
//	budget               live      it is looked at when something was used
//	output.dir           restart   a run has one file
//	output.*             live      the writer looks at them
//	restart.*            live      they are looked at after an exit
//	stop.*               live      they are looked at when stopping
//	health.*             live      they are looked at all the time
//	description          live
//	role                 live
//	operator             live      it is looked at with each request
//	manage               live      the same
//	capabilities         live
//	depends_on           live      they order the next start and stop
//	autostart            live
//	on_exit              live
//	replicas             scale     replicas are started or stopped, the others stay
//
//	other attribute      needs     because
//	orchestrator.name    refused   it is in the records
//	orchestrator.state_dir refused it is locked
//	orchestrator.shutdown refused  it is read at the start
//	http.*               refused   the listener is open
//	store.*              refused   the log is open
//	log.format           refused   it is read at the start
//	log.level            live
//	protocol.max_line    refused   it is read at the start
//	protocol.max_depth   refused   the same
//	protocol.rate        refused   the same
//	protocol.burst       refused   the same
//	protocol.*           live
//	scheduler.*          live
//	bus.*                live
//	notify               live      it is looked at when something happens
//	merge.queue          live
//	prices               live      the same, when something was used
//	host                 live      it is looked at when a host joins or is chosen
//	session              live
//	task                 live      it is given out once; a change has no effect on it
//
// An env that mentions secrets counts as changed if its text, its other values, or the
// definition of such a secret has changed. The secrets themselves are not compared.
package config
