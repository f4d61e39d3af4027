package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// pollFlags are which messages are asked for.
type pollFlags struct {
	actor  string
	cursor mailNumber
	most   string
}

func (a *app) busPollCommand() *cobra.Command {
	var f pollFlags
	verb := &cobra.Command{
		Use:   "poll",
		Short: "Read the messages that are not acknowledged",
		Long: `Shows messages to an actor, oldest first: the number of each, when it was sent, by
which actor to which, its topic and what it says. They are those behind the cursor, the
last message that was acked, or behind a number that you name. Nothing is taken
away by reading: "bus ack" says what has been dealt with.

Without --actor they are yours: those to GO, and broadcasts. In an agent they
are the agent's.`,
		Example: `  orchestrator bus poll
  orchestrator bus poll --cursor 0 -n 20      from the first one on
  orchestrator bus poll --actor PO:shop       what an agent has not dealt with
  orchestrator bus poll --json                whole, for a program`,
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := notEmpty(verb, "actor"); err != nil {
				return err
			}
			return a.poll(&f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.actor, "actor", "", "messages to `ACTOR`; without it GO, in an agent the agent's own")
	set.Var(&f.cursor, "cursor", "messages behind `SEQ`; behind the last that was acked without it")
	set.StringVarP(&f.most, "lines", "n", "100", "at most `N` messages")
	_ = verb.RegisterFlagCompletionFunc("actor", a.completeActors())
	_ = verb.RegisterFlagCompletionFunc("cursor", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("lines", cobra.NoFileCompletions)
	return verb
}

func (a *app) poll(f *pollFlags) error {
	most, err := strconv.ParseInt(f.most, 10, 64)
	if err != nil || most < 1 || most > wire.MostMailPage {
		return usageError(fmt.Sprintf("-n cannot be %q", f.most), fmt.Sprintf("It is a number of messages, %d at most", wire.MostMailPage))
	}
	if err := a.actorGiven("actor", f.actor, wire.CheckAddressee); err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, "poll-messages", wire.PollMessages{Actor: f.actor, Cursor: f.cursor.pointer(), Limit: most})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.answer(text)
		}
		list, err := decode[wire.MailList](text)
		if err != nil {
			return err
		}
		return a.showMail(f, &list)
	})
}

func (a *app) showMail(f *pollFlags, list *wire.MailList) error {
	behind := list.Cursor
	if f.cursor.given {
		behind = f.cursor.value
	}
	switch {
	case a.flags.quiet:
		return printNames(a, list.Messages, func(m *wire.Mail) string { return strconv.FormatInt(m.Seq, 10) })
	case len(list.Messages) == 0 && behind == 0:
		return a.print("No messages for %s.\n", plain.OneLine(list.Actor))
	case len(list.Messages) == 0:
		return a.print("No messages for %s behind %d.\n", plain.OneLine(list.Actor), behind)
	}
	show := a.mailPrinter(time.Now())
	for i := range list.Messages {
		show.measure(&list.Messages[i])
	}
	for i := range list.Messages {
		if err := show.mail(&list.Messages[i]); err != nil {
			return err
		}
	}
	a.saidOfMail(f, list)
	return nil
}

// saidOfMail tells what to do next. Who reads the mail of others is not told how
// to ack it: then they would not find it.
func (a *app) saidOfMail(f *pollFlags, list *wire.MailList) {
	last := list.Messages[len(list.Messages)-1].Seq
	whose := ""
	if f.actor != "" {
		whose = " --actor " + plain.OneLine(f.actor)
	}
	if list.More {
		a.note("There are more: orchestrator bus poll%s --cursor %d", whose, last)
	}
	if last > list.Cursor && (f.actor == "" || f.actor == wire.ActorGlobal) {
		a.note("When they are dealt with: orchestrator bus ack %d", last)
	}
}

func (a *app) busAckCommand() *cobra.Command {
	var actor string
	var once bool
	verb := &cobra.Command{
		Use:   "ack SEQ",
		Short: "Acknowledge messages",
		Long: `Says that an actor has dealt with its messages up to a number. The next poll begins
behind it, and an agent is not told of them again. It only goes forward: a number
below the last one changes nothing. If no orchestrator answers, it is said again after
2, 10 and 60 seconds, unless --no-retry is given.`,
		Example: `  orchestrator bus ack 42
  orchestrator bus ack 42 --actor PO:shop`,
		Args: argCount(1, 1),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := notEmpty(verb, "actor"); err != nil {
				return err
			}
			return a.ack(args[0], actor, once)
		},
	}
	verb.ValidArgsFunction = a.completeMail("actor")
	verb.Flags().StringVar(&actor, "actor", "", "`ACTOR` who has dealt with them; without it GO, in an agent the agent's own")
	verb.Flags().BoolVar(&once, "no-retry", false, "make one attempt")
	_ = verb.RegisterFlagCompletionFunc("actor", a.completeActors())
	return verb
}

func (a *app) ack(word, actor string, once bool) error {
	var seq mailNumber
	if err := seq.Set(word); err != nil {
		return usageError(fmt.Sprintf("SEQ cannot be %q: %v", word, err), "See which there are: orchestrator bus poll")
	}
	if err := a.actorGiven("actor", actor, wire.CheckAddressee); err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.insist(ctx, d, once, "ack-messages", wire.AckMessages{Actor: actor, Seq: seq.value})
		if err != nil {
			return hinted(err, wire.CodeInvalid, "See which there are: orchestrator bus poll")
		}
		if a.flags.json {
			return a.answer(text)
		}
		acked, err := decode[wire.Acked](text)
		switch {
		case err != nil:
			return err
		case a.flags.quiet:
			return a.print("%d\n", acked.Cursor)
		case acked.Cursor > seq.value:
			return a.print("%s had dealt with its messages up to %d already.\n", plain.OneLine(acked.Actor), acked.Cursor)
		}
		return a.print("%s has dealt with its messages up to %d.\n", plain.OneLine(acked.Actor), acked.Cursor)
	})
}
