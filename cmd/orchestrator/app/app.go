// Package app joins the commands, each in a folder beside it, to one command line, and runs it.
//
// Package serve runs a team. The other commands work on files, or are HTTP clients of the
// orchestrator's socket. Only main, and tests that play the program with their binary, import this
// package.
package app

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/access"
	"orchestrator/cmd/orchestrator/agent"
	"orchestrator/cmd/orchestrator/bus"
	"orchestrator/cmd/orchestrator/check"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/demo"
	"orchestrator/cmd/orchestrator/first"
	"orchestrator/cmd/orchestrator/inbox"
	"orchestrator/cmd/orchestrator/join"
	"orchestrator/cmd/orchestrator/live"
	"orchestrator/cmd/orchestrator/notify"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/session"
	"orchestrator/cmd/orchestrator/store"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/ui"
	"orchestrator/cmd/orchestrator/watch"
	"orchestrator/cmd/orchestrator/why"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/home"
)

// The main goroutine stays on the main thread: see child.LendMainThread. Only code that runs before
// main can guarantee this.
var _ = keepThread()

func keepThread() bool {
	runtime.LockOSThread()
	return true
}

// Main runs the program with the arguments, streams and environment of its process, and exits. It must be called by
// the main goroutine.
func Main() {
	child.Shim()
	if live.IsGuard() {
		live.Guard()
		return
	}
	child.LendMainThread(func() {
		dir, _ := os.Getwd()
		a := cli.New(cli.Env{
			Stdin:      os.Stdin,
			Stdout:     os.Stdout,
			Stderr:     os.Stderr,
			Environ:    os.Environ(),
			Dir:        dir,
			SocketPath: home.SocketPath,
			Root:       Root,
			OpenRecord: serve.OpenRecord,
		})
		if first.Failed != nil {
			os.Exit(a.Fail(os.Args[1:], unanswered(a, first.Failed)))
		}
		os.Exit(a.Run(os.Args[1:]))
	})
}

// unanswered returns the error of a command that was passed on and has no whole answer.
func unanswered(a *cli.App, f *first.Failure) error {
	if f.Err != nil {
		return f.Err
	}
	d := a.NewClient(client.Target{Socket: f.Socket, Subject: filepath.Join(filepath.Dir(filepath.Dir(f.Socket)), "orchestrator.hcl")})
	return d.Failed(context.Background(), &client.UnansweredError{Err: io.ErrUnexpectedEOF})
}

// Root returns the whole command line.
func Root(a *cli.App) *cobra.Command {
	return cli.Root(a,
		demo.Command(a), project.InitCommand(a), project.ValidateCommand(a), project.FmtCommand(a), project.SchemaCommand(a), project.SDKCommand(a),
		serve.UpCommand(a), serve.JoinCommand(a), serve.RunCommand(a), serve.PipeCommand(a), join.MCPCommand(a), join.ACPCommand(a), join.LeadCommand(a), serve.ReloadCommand(a), serve.UpgradeCommand(a), serve.DownCommand(a),
		agent.StatusCommand(a), watch.Command(a), ui.Command(a), notify.Command(a),
		cli.OnRecord(agent.LogsCommand(a)), cli.OnRecord(agent.EventsCommand(a)), cli.OnRecord(why.Command(a)), cli.OnRecord(task.CostCommand(a)), cli.OnRecord(task.GraphCommand(a, "orchestrator graph")),
		task.Command(a), inbox.Command(a), bus.Command(a), session.Command(a), session.ReviewCommand(a), task.WorkspaceCommand(a),
		agent.Command(a), agent.PsCommand(a), agent.HostsCommand(a), agent.DrainCommand(a), check.Command(a), check.DoctorCommand(a), check.SimulateCommand(a), access.KeyCommand(a), access.TokenCommand(a), store.BackupCommand(a), store.RestoreCommand(a), store.ReplayCommand(a), store.Command(a),
	)
}
