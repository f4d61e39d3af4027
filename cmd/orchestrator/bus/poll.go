package bus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// pollFlags are the flags of bus poll.
type pollFlags struct {
	actor  string
	cursor mailNumber
	most   string
	all    bool
}

func busPollCommand(a *cli.App) *cobra.Command {
	var f pollFlags
	verb := &cobra.Command{
		Use:   "poll",
		Short: "Read the messages that are not acknowledged",
		Long: `Shows messages to an actor, oldest first: number, time, sender, addressee, topic and
text. The list begins after the actor's cursor, which is the last acknowledged message, or
after --cursor. Reading does not acknowledge messages: see orchestrator bus ack.

The orchestrator's own records are left out: starts and ends of agents, heartbeats and
unknown topics. --all and --json show them.

Without --actor the actor is GO, which is you. Inside an agent it is the agent's own
actor.`,
		Example: `  orchestrator bus poll
  orchestrator bus poll --cursor 0 -n 20    from the first one on
  orchestrator bus poll --actor PO:shop     the unacknowledged mail of an agent
  orchestrator bus poll --json              in full, for a program`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := cli.NotEmpty(verb, "actor"); err != nil {
				return err
			}
			return poll(a, &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.actor, "actor", "", "messages to `ACTOR` (default GO; inside an agent its own actor)")
	set.Var(&f.cursor, "cursor", "messages after `SEQ` (default: the last acknowledged one)")
	set.StringVarP(&f.most, "lines", "n", "100", "at most `N` messages")
	set.BoolVar(&f.all, "all", false, "include the records of the orchestrator")
	_ = verb.RegisterFlagCompletionFunc("actor", CompleteActors(a))
	_ = verb.RegisterFlagCompletionFunc("cursor", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("lines", cobra.NoFileCompletions)
	return verb
}

func poll(a *cli.App, f *pollFlags) error {
	most, err := strconv.ParseInt(f.most, 10, 64)
	if err != nil || most < 1 || most > mail.MaxPage {
		return cli.UsageError(fmt.Sprintf("-n cannot be %q", f.most), fmt.Sprintf("Use a number of messages, at most %d", mail.MaxPage))
	}
	if err := ActorGiven(a, "actor", f.actor, mail.CheckAddressee); err != nil {
		return err
	}
	return cli.Query[mail.List]{
		Operation: "poll-messages", Request: wire.PollMessages{Actor: f.actor, Cursor: f.cursor.pointer(), Limit: most},
		Quiet: func(list *mail.List) error {
			return cli.PrintNames(a, list.Messages, func(m *mail.Message) string { return strconv.FormatInt(m.Seq, 10) })
		},
		Text: func(list *mail.List) error { return showMail(a, f, list) },
	}.Run(a)
}

func showMail(a *cli.App, f *pollFlags, list *mail.List) error {
	behind := list.Cursor
	if f.cursor.given {
		behind = f.cursor.value
	}
	switch {
	case len(list.Messages) == 0 && behind == 0:
		return a.Print("No messages for %s.\n", term.OneLine(list.Actor))
	case len(list.Messages) == 0:
		return a.Print("No messages for %s after %d.\n", term.OneLine(list.Actor), behind)
	}
	show := newMailPrinter(a, time.Now())
	shown := slices.Clone(list.Messages)
	if !f.all {
		shown = slices.DeleteFunc(shown, func(m mail.Message) bool { return m.Housekeeping() })
	}
	for i := range shown {
		show.measure(&shown[i])
	}
	for i := range shown {
		if err := show.mail(&shown[i]); err != nil {
			return err
		}
	}
	if n := len(list.Messages) - len(shown); n > 0 {
		a.Note("%s of the orchestrator not shown. Show all: --all", term.Count(n, "message"))
	}
	saidOfMail(a, f, list)
	return nil
}

// saidOfMail prints the next commands. It suggests an ack only for the messages to GO: an
// ack for another actor would hide the messages from that actor.
func saidOfMail(a *cli.App, f *pollFlags, list *mail.List) {
	last := list.Messages[len(list.Messages)-1].Seq
	whose := ""
	if f.actor != "" {
		whose = " --actor " + term.OneLine(f.actor)
	}
	if list.More {
		a.Note("More messages: orchestrator bus poll%s --cursor %d", whose, last)
	}
	if last > list.Cursor && (f.actor == "" || f.actor == mail.Global) {
		a.Note("When you have processed them: orchestrator bus ack %d", last)
	}
}

func busAckCommand(a *cli.App) *cobra.Command {
	var actor string
	var once bool
	verb := &cobra.Command{
		Use:   "ack SEQ",
		Short: "Acknowledge messages",
		Long: `Acknowledges the messages to an actor up to a number. The next poll begins after that
number, and an agent is not notified of these messages again. A number below the last
one has no effect. If no orchestrator answers, or the answer has an HTTP status of 500 or
above, the command retries after 2, 10 and 60 seconds, unless --no-retry is given.`,
		Example: `  orchestrator bus ack 42
  orchestrator bus ack 42 --actor PO:shop`,
		Args: cli.ArgCount(1, 1),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "actor"); err != nil {
				return err
			}
			return ack(a, args[0], actor, once)
		},
	}
	verb.ValidArgsFunction = completeMail(a, "actor")
	verb.Flags().StringVar(&actor, "actor", "", "`ACTOR` that acknowledges (default GO; inside an agent its own actor)")
	verb.Flags().BoolVar(&once, "no-retry", false, "make one attempt")
	_ = verb.RegisterFlagCompletionFunc("actor", CompleteActors(a))
	return verb
}

func ack(a *cli.App, word, actor string, once bool) error {
	var seq mailNumber
	if err := seq.Set(word); err != nil {
		return cli.UsageError(fmt.Sprintf("SEQ cannot be %q: %v", word, err), "List them: orchestrator bus poll")
	}
	if err := ActorGiven(a, "actor", actor, mail.CheckAddressee); err != nil {
		return err
	}
	show := cli.Query[mail.Acked]{
		Explain: func(err error) error {
			return cli.WithHint(err, wire.CodeInvalid, "List them: orchestrator bus poll")
		},
		Quiet: func(acked *mail.Acked) error { return a.Print("%d\n", acked.Cursor) },
		Text: func(acked *mail.Acked) error {
			if acked.Cursor > seq.value {
				return a.Print("%s had already processed its messages up to %d.\n", term.OneLine(acked.Actor), acked.Cursor)
			}
			return a.Print("%s has processed its messages up to %d.\n", term.OneLine(acked.Actor), acked.Cursor)
		},
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := askAgain(ctx, a, d, once, "ack-messages", wire.AckMessages{Actor: actor, Seq: seq.value})
		return show.Show(a, text, err)
	})
}
