// Package manual tests that the README, the manual and the help are right, and plays the scripts of all commands.
package manual

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"orchestrator/cmd/orchestrator/app"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/serve"
)

func TestMain(m *testing.M) {
	stage.Main(m, map[string]func(){"broken-orchestrator": brokenOrchestrator})
}

// brokenOrchestrator runs the program with a bug in it.
func brokenOrchestrator() {
	a := cli.New(cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: ".",
		Root: app.Root, OpenRecord: serve.OpenRecord,
		SocketPath: func(string) string { panic("the socket has no path\nand this is a second line") },
	})
	os.Exit(a.Run(os.Args[1:]))
}

// TestScripts runs the scripts that need no orchestrator, or one with canned answers (stand-in).
func TestScripts(t *testing.T) {
	stage.RunScripts(t, "testdata/script", func(*testscript.Env) error { return nil })
}
