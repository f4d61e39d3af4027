// Package notify holds the commands on notifications to people.
package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/notify"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Command returns the notify command.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "notify",
		Short: "Test notifications and list undelivered ones",
		Long: `The block notify of the file sets the notifications of people: by the terminal, a command
or a webhook. See orchestrator help notify.`,
		Example: "  orchestrator notify test\n  orchestrator notify dead\n  orchestrator notify dead --resend",
	}, testCommand(a), deadCommand(a))
}

func testCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "test",
		Short: "Send a test notification in every way that the file declares",
		Long: `Sends a test notification in each way of the block notify: the bell and the notification of
this terminal, the command and the webhook. No team needs to run, and quiet hours don't
count. The exit code is 1 if one of them fails.`,
		Example: "  orchestrator notify test\n  orchestrator notify test --json",
		Args:    cli.ArgCount(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return test(a) },
	}
}

// A trial is the outcome of one way to notify people.
type trial struct {
	Way   string `json:"way"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitzero"`
}

func test(a *cli.App) error {
	ctx, stop := a.Context()
	defer stop()
	c, o, release, err := serve.Notifications(ctx, a)
	if err != nil {
		return err
	}
	defer release()
	const text = "Test: notifications from this team arrive here"
	trials := []trial{}
	if n := &c.Notify; n.Bell || n.OSC {
		if term.IsTerminal(a.Stderr) {
			signal := ""
			if n.OSC {
				signal = notify.OSC(text, a.Getenv)
			}
			if n.Bell {
				signal += "\a"
			}
			_, err := fmt.Fprint(a.Stderr, signal)
			trials = append(trials, result("terminal", err))
		} else {
			a.Note("This is not a terminal: the bell and osc are not tested.")
		}
	}
	m := notify.Message{
		FormatVersion: wire.FormatVersion, ID: uuid.NewString(), Team: o.Team, On: "question", Kind: "notify.test",
		At: object.Timestamp(time.Now()), Text: text,
	}
	document, err := object.Encode(&m)
	if err != nil {
		return err
	}
	if o.Command != nil {
		trials = append(trials, result("command", o.Command(ctx, text, document)))
	}
	if o.URL != "" {
		sender := notify.NewSender(o.URL, o.Key)
		trials = append(trials, result("webhook at "+sender.Where(), sender.Send(ctx, m.ID, document)))
	}
	if err := a.Ended(ctx); err != nil {
		return err
	}
	return show(a, trials)
}

func result(way string, err error) trial {
	if err != nil {
		return trial{Way: way, Error: err.Error()}
	}
	return trial{Way: way, OK: true}
}

// show prints the outcome of each way.
func show(a *cli.App, trials []trial) error {
	failed := false
	for _, t := range trials {
		failed = failed || !t.OK
	}
	if a.JSON() {
		if err := a.Document(map[string]any{"format_version": wire.FormatVersion, "ways": trials}); err != nil {
			return err
		}
	} else if len(trials) == 0 {
		return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the file has no notifications here", Hint: "Add a notify block: orchestrator help notify"}
	}
	paint := a.Paint(a.Stdout)
	for _, t := range trials {
		said := paint.Good("told")
		if !t.OK {
			said = paint.Bad("failed") + ": " + cli.VisibleLines(t.Error)
		}
		if !a.JSON() {
			if err := a.Print("%s  %s\n", t.Way, said); err != nil {
				return err
			}
		}
	}
	if failed {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

func deadCommand(a *cli.App) *cobra.Command {
	var resend, forget bool
	verb := &cobra.Command{
		Use:   "dead",
		Short: "List the undelivered messages of the webhook",
		Long: `Lists undelivered messages: each was tried six times within a quarter of an hour, or
refused. They are in the state directory of this machine. --resend sends each message
again and removes the delivered ones. --forget removes all.`,
		Example: "  orchestrator notify dead\n  orchestrator notify dead --resend",
		Args:    cli.ArgCount(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return dead(a, resend, forget) },
	}
	verb.Flags().BoolVar(&resend, "resend", false, "send each message again")
	verb.Flags().BoolVar(&forget, "forget", false, "remove all")
	return verb
}

func dead(a *cli.App, resend, forget bool) error {
	_, dir, err := a.RecordPath(nil)
	if err != nil {
		return err
	}
	all, err := notify.ReadDead(dir)
	if err != nil {
		return fmt.Errorf("reading the messages: %w", err)
	}
	ctx, stop := a.Context()
	defer stop()
	var sender *notify.Sender
	if resend && len(all) > 0 {
		_, o, release, err := serve.Notifications(ctx, a)
		if err != nil {
			return err
		}
		release()
		if o.URL == "" {
			return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the file has no webhook", Hint: "Add one: notify { webhook = … }"}
		}
		sender = notify.NewSender(o.URL, o.Key)
	}
	if a.JSON() && sender == nil && !forget {
		if all == nil {
			all = []notify.Dead{}
		}
		return a.Document(map[string]any{"format_version": wire.FormatVersion, "messages": all})
	}
	if len(all) == 0 {
		return a.Print("All messages were delivered.\n")
	}
	left := 0
	for _, d := range all {
		done, err := handle(ctx, a, dir, sender, forget, d)
		if err != nil {
			return err
		}
		if !done {
			left++
		}
	}
	if sender != nil && left > 0 {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

// handle shows, sends or forgets one message. It reports whether the message is gone.
func handle(ctx context.Context, a *cli.App, dir string, sender *notify.Sender, forget bool, d notify.Dead) (done bool, err error) {
	var m notify.Message
	_ = object.DecodeOwn(d.Message, &m)
	said := d.Error
	switch {
	case sender != nil:
		if err := sender.Send(ctx, m.ID, d.Message); err != nil {
			said = "not accepted: " + err.Error()
			break
		}
		said, done = "sent", true
	case forget:
		said, done = "forgotten", true
	}
	if err := a.Ended(ctx); err != nil {
		return false, err
	}
	if done {
		if err := notify.RemoveDead(dir, d); err != nil {
			return false, fmt.Errorf("removing the message: %w", err)
		}
	}
	return done, a.Print("%s  %s  %s\n", term.Clock(m.At, time.Now(), "15:04:05"), term.OneLine(m.Text), a.Paint(a.Stdout).Dim(term.OneLine(said)))
}
