// Package config reads orchestrator.hcl: the agents to run and how to run them. Load reports
// every mistake of the file in file order, each with its position, its source line and a
// correction. A valid configuration is complete: defaults are filled in, replicas are separate
// agents, paths are absolute, and dependencies have no cycles.
//
// Secrets are not read with the file. Environ reads them for each start of an agent that
// mentions them. No message of this package contains a secret, a value of env() or file(), or
// the value of a sensitive variable.
//
// The package does not start, watch or change anything. It opens no socket, creates no folder and does not search a
// PATH. It does not know the running agents: Compare only returns the steps that the difference between two files
// requires. The program that loads the file runs the commands of secrets (Options.Run). No exported name uses an HCL
// type.
//
// # Reload
//
// The row of an attribute has the need of a change while the orchestrator runs: live takes effect at once, restarts
// needs a start of the agent, refused needs one of the orchestrator. Some blocks are compared as a whole. A change of
// replicas starts or stops some, and the rest stay. A task is given out once, so a change of its block has no effect on
// it.
//
// An env that mentions secrets counts as changed if its text, its other values, or the
// definition of such a secret has changed. The secrets themselves are not compared.
package config
