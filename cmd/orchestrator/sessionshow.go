package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// sessionFlags choose among the messages of a session.
type sessionFlags struct {
	task  string
	chain string
	most  string
	all   bool
}

func (a *app) sessionShowCommand() *cobra.Command {
	var f sessionFlags
	verb := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a session with its members, tasks and messages",
		Long: `Shows a session: its rules, its members and what each is at, and what they have
said, chain by chain, with answers below what they answer. Each task has its phase,
the reviews that it has had of those that it may have, and the findings that are still
open. A message that was refused is there too, with what was wrong with it.

Of many messages the last 100 are shown. -v shows what they say whole, --json is
all of it.`,
		Example: `  orchestrator session show checkout
  orchestrator session show checkout --task login-form
  orchestrator session show checkout --all -v
  orchestrator session show checkout --json`,
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneSession,
		RunE: func(verb *cobra.Command, args []string) error {
			if err := notEmpty(verb, "task", "chain", "limit"); err != nil {
				return err
			}
			return a.showSession(args[0], &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.task, "task", "", "only messages about the task `ID`")
	set.StringVar(&f.chain, "chain", "", "only messages with this `CORRELATION`")
	set.StringVarP(&f.most, "limit", "n", "", "only the last `N` messages, or all (100; with --json all)")
	set.BoolVar(&f.all, "all", false, "all messages")
	_ = verb.RegisterFlagCompletionFunc("task", a.completeOfSession(sessionTasks))
	_ = verb.RegisterFlagCompletionFunc("chain", a.completeOfSession(sessionChains))
	_ = verb.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	return verb
}

// shownMessages is how many messages a person is shown who did not say.
const shownMessages = 100

// mostMessages is how many messages are wanted; 0: all.
func (f *sessionFlags) mostMessages(json bool) (int, error) {
	switch {
	case f.all && f.most != "":
		return 0, usageError("--all and --limit contradict each other", "Leave one of them out")
	case f.all, f.most == "all", f.most == "" && json:
		return 0, nil
	case f.most == "":
		return shownMessages, nil
	}
	n, err := strconv.Atoi(f.most)
	if err != nil || n < 1 {
		return 0, usageError(fmt.Sprintf("-n cannot be %q", f.most), "It is a number of messages, or all")
	}
	return n, nil
}

func (a *app) showSession(name string, f *sessionFlags) error {
	most, err := f.mostMessages(a.flags.json)
	if err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *client) error {
		seen, err := a.getSession(ctx, d, &wire.GetSession{SessionID: name, TaskID: f.task, CorrelationID: f.chain}, most)
		if err != nil {
			return a.noSession(ctx, d, name, err)
		}
		if a.flags.json {
			text, err := seen.document()
			if err != nil {
				return err
			}
			return a.answer(text)
		}
		log, err := readLog(seen)
		switch {
		case err != nil:
			return err
		case a.flags.quiet:
			named := slices.DeleteFunc(log.said, func(s said) bool { return s.id == "" })
			return printNames(a, named, func(s *said) string { return s.id })
		}
		return a.showLog(f, seen, log)
	})
}

// showLog shows a session to people.
func (a *app) showLog(f *sessionFlags, seen *sessionSeen, log *sessionLog) error {
	p, now := a.paint(a.stdout), time.Now()
	wide := max(columns(a.stdout, 120), 60)
	if a.flags.verbose {
		wide = 0
	}
	text := ""
	if f.task == "" && f.chain == "" {
		text = sessionCard(&seen.SessionView, p) + "\n" + membersTable(&seen.SessionView, p)
	}
	drawn := log.draw(p, now, wide)
	switch {
	case drawn != "" && text != "":
		text += "\n" + drawn
	case drawn != "":
		text = drawn
	case text != "":
		text += "\nNothing was said yet. How that is done: orchestrator help session\n"
	default:
		text = "No message is like that. All of them: orchestrator session show " + plain.OneLine(seen.ID) + "\n"
	}
	if err := a.print("%s", text); err != nil {
		return err
	}
	if seen.before > 0 {
		a.note("%s not shown here: orchestrator session show %s --all", earlierMessages(seen.before), plain.OneLine(seen.ID))
	}
	return nil
}

func earlierMessages(n int) string {
	if n == 1 {
		return "1 earlier message is"
	}
	return plain.Count(n, "earlier message") + " are"
}

// completeOfSession offers what a session has, which the line names.
func (a *app) completeOfSession(have func(*wire.SessionView) []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		seen := forShell[sessionSeen](a, "get-session", wire.GetSession{SessionID: words[0], Limit: 1})
		return have(&seen.SessionView), cobra.ShellCompDirectiveNoFileComp
	}
}

func sessionTasks(v *wire.SessionView) (offered []cobra.Completion) {
	for i := range v.Tasks {
		t := &v.Tasks[i]
		offered = append(offered, cobra.CompletionWithDesc(t.TaskID, plain.Clip(plain.OneLine(t.Name), 40)+", "+plain.OneLine(t.Phase)))
	}
	return offered
}

func sessionChains(v *wire.SessionView) (offered []cobra.Completion) {
	known := make(map[string]bool)
	for i := range v.Tasks {
		t := &v.Tasks[i]
		if t.CorrelationID != "" && !known[t.CorrelationID] {
			known[t.CorrelationID] = true
			offered = append(offered, cobra.CompletionWithDesc(t.CorrelationID, plain.Clip(plain.OneLine(t.Name), 40)))
		}
	}
	return offered
}
