// Package config reads orchestrator.hcl: the agents to run and how to run
// them. One call finds every mistake of the file, each with its place, its
// source line and what would be right, in file order. A configuration that
// comes out is complete: defaults are filled in, replicas are agents of their
// own, paths are absolute, dependencies have no cycles.
//
// Secrets are not read with the file. They are looked up for each start of an
// agent that mentions them, by Environ, and no text of this package ever holds
// one: neither do values from env(), from file() or of sensitive variables.
//
// The package does not start, watch or change anything. It opens no socket,
// makes no folder, does not look for programs on a PATH, and does not know
// what runs: Compare only says what the difference between two files means.
// The command of a secret is run by the program that loads the file (Options.Run).
// Nothing outside of it sees an HCL type.
//
// # Reload
//
// What a change needs while the orchestrator runs. A row with a dot and a star
// stands for all attributes of that block that have no row of their own.
//
//	agent attribute      needs     because
//	command              restart   it is another program
//	dir                  restart   a process has its folder from its start
//	env                  restart   the same
//	env_file             restart   the same
//	inherit_env          restart   the same
//	protocol             restart   it decides who reads stdout
//	stdin                restart   it is opened at the start
//	pty                  restart   the same
//	actor                restart   letters are addressed to it
//	limits.*             restart   they are set before the program runs
//	output.dir           restart   a run has one file
//	output.*             live      the writer looks at them
//	restart.*            live      they are looked at after an exit
//	stop.*               live      they are looked at when stopping
//	health.*             live      they are looked at all the time
//	description          live
//	role                 live
//	capabilities         live
//	depends_on           live      they order the next start and stop
//	autostart            live
//	on_exit              live
//	replicas             scale     replicas are started or stopped, the others stay
//
//	other attribute      needs     because
//	orchestrator.name    refused   it is in the records
//	orchestrator.state_dir refused it is locked
//	orchestrator.*       live
//	http.*               refused   the listener is open
//	store.*              refused   the log is open
//	log.*                live
//	protocol.*           live
//	scheduler.*          live
//	bus.*                live
//	session              live
//
// An env that mentions secrets has changed when its text, the values in it
// that are not secret, or the definition of such a secret has changed. The
// secrets themselves are not compared.
package config
