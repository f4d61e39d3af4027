package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
)

// runWithin runs a command line for a screen: in this process, at the orchestrator
// that is watched unless the line names another, without colours, and with its
// output kept. Nothing can be typed into it.
func (a *app) runWithin(ctx context.Context, args []string, columns int) (text string, exit int) {
	if len(args) > 0 && args[0] == "orchestrator" {
		args = args[1:]
	}
	kept := &keptOutput{wide: columns}
	inner := func() *app {
		return &app{
			stdin: strings.NewReader(""), stdout: kept, stderr: kept, dir: a.dir, socketPath: a.socketPath, root: a.root, openRecord: a.openRecord,
			environ: append(slices.Clone(a.environ), "NO_COLOR=1"), over: ctx.Done(),
		}
	}
	if err := inner().unfit(args); err != nil {
		return err.Error(), exitUsage
	}
	exit = inner().run(append(a.sameTarget(), args...))
	return kept.String(), exit
}

// sameTarget are the flags that say which orchestrator this verb speaks to.
func (a *app) sameTarget() []string {
	f := &a.flags
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	add("--config", f.config)
	add("--state-dir", f.stateDir)
	add("--host", f.host)
	for _, v := range f.vars {
		add("--var", v)
	}
	for _, file := range f.varFiles {
		add("--var-file", file)
	}
	return args
}

// unfit returns why a command line is not for a screen that others use: it would never
// end, or wants the terminal for itself. What is wrong with it otherwise it says
// itself.
func (a *app) unfit(args []string) error {
	verb, rest, err := a.root(a).Find(args)
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

// shownIn is the tab that keeps up with what a verb shows.
func shownIn(verb *cobra.Command) string {
	tab := map[string]string{"status": "1", "tail": "6", "logs": "7"}[verb.Name()]
	if tab == "" {
		return ""
	}
	return ", or see [" + tab + "]"
}

// mostKeptOutput is how much of what a verb prints is kept.
const mostKeptOutput = 1 << 20

// keptOutput keeps what is printed, for a terminal of so many columns.
type keptOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	more int64
	wide int
}

func (k *keptOutput) columns() int { return k.wide }

// Write implements io.Writer.
func (k *keptOutput) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := min(len(text), mostKeptOutput-k.text.Len())
	k.text.Write(text[:room])
	k.more += int64(len(text) - room)
	return len(text), nil
}

func (k *keptOutput) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.more > 0 {
		return k.text.String() + "\n… " + plain.Bytes(k.more) + " more"
	}
	return k.text.String()
}
