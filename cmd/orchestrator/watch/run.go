package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
)

// runWithin runs a command line in this process, without input, and returns its output. The
// command uses the orchestrator that is watched, unless it names another.
func runWithin(ctx context.Context, a *cli.App, args []string, columns int) (text string, exit int) {
	if len(args) > 0 && args[0] == "orchestrator" {
		args = args[1:]
	}
	kept := &keptOutput{wide: columns}
	inner := func() *cli.App {
		env := a.Env
		env.Stdin, env.Stdout, env.Stderr, env.Over = strings.NewReader(""), kept, kept, ctx.Done()
		env.Environ = append(slices.Clone(a.Environ), "NO_COLOR=1")
		return cli.New(env)
	}
	if err := unfit(inner(), args); err != nil {
		return err.Error(), cli.ExitUsage
	}
	exit = inner().Run(append(sameTarget(a), args...))
	return kept.String(), exit
}

// sameTarget returns the flags that select the orchestrator of this command.
func sameTarget(a *cli.App) []string {
	f := &a.Flags
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	add("--config", f.Config)
	add("--state-dir", f.StateDir)
	add("--host", f.Host)
	for _, v := range f.Vars {
		add("--var", v)
	}
	for _, file := range f.VarFiles {
		add("--var-file", file)
	}
	return args
}

// unfit returns an error for a command that never ends or needs the terminal. It ignores
// other errors in the command line, which the command reports itself.
func unfit(a *cli.App, args []string) error {
	verb, rest, err := a.Root(a).Find(args)
	if err != nil {
		return nil
	}
	name := strings.TrimPrefix(verb.CommandPath(), "orchestrator ")
	switch name {
	case "up", "run", "pipe", "watch":
		return fmt.Errorf("%q wants a terminal of its own: run it in another one", name)
	case "inbox watch":
		return fmt.Errorf("%q never ends: [5] shows the same", name)
	}
	if verb.ParseFlags(rest) != nil {
		return nil
	}
	for _, flag := range []string{"follow", "watch"} {
		if f := verb.Flags().Lookup(flag); f != nil && f.Value.String() == "true" {
			return fmt.Errorf("%q never ends with --%s: leave that out%s", name, flag, shownIn(verb))
		}
	}
	return nil
}

// shownIn returns a hint to the tab that shows the same as a command, or "".
func shownIn(verb *cobra.Command) string {
	tab := map[string]string{"status": "1", "tail": "6", "logs": "7"}[verb.Name()]
	if tab == "" {
		return ""
	}
	return ", or see [" + tab + "]"
}

// maxKeptOutput is how many bytes of a command's output are kept.
const maxKeptOutput = 1 << 20

// keptOutput collects output for a terminal of a given width.
type keptOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	more int64
	wide int
}

func (k *keptOutput) Columns() int { return k.wide }

// Write implements io.Writer.
func (k *keptOutput) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := min(len(text), maxKeptOutput-k.text.Len())
	k.text.Write(text[:room])
	k.more += int64(len(text) - room)
	return len(text), nil
}

func (k *keptOutput) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.more > 0 {
		return k.text.String() + "\n… " + term.Bytes(k.more) + " more"
	}
	return k.text.String()
}

// shellBehind reports whether a shell with job control would continue this process after a
// stop. Such a shell is the parent, in the same session and in another process group.
// Without one, the process would not stop, and would wait forever to be continued.
func shellBehind() bool {
	parent := os.Getppid()
	theirs, err := unix.Getsid(parent)
	ours, failed := unix.Getsid(0)
	group, gone := unix.Getpgid(parent)
	return err == nil && failed == nil && gone == nil && theirs == ours && group != unix.Getpgrp()
}
