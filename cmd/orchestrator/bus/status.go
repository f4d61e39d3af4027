package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

func busStatusCommand(a *cli.App) *cobra.Command {
	verb := &cobra.Command{
		Use:   "status SEQ",
		Short: "Show the delivery of a message",
		Long: `Shows the states of a message with their times: stored, delivered to the stdin of an agent,
read by its model, refused by its program, and acknowledged. Only coding agents report what
their models have read. The time of delivery is known until the orchestrator stops.`,
		Example: "  orchestrator bus status 41\n  orchestrator bus status 41 --json",
		Args:    cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			seq := mailNumber{least: 1}
			if err := seq.Set(args[0]); err != nil {
				return cli.UsageError(fmt.Sprintf("SEQ cannot be %q: %v", args[0], err), "List them: orchestrator bus tail")
			}
			return cli.Query[mail.Status]{
				Operation: "message-status", Request: wire.MessageSeq{Seq: seq.value},
				Explain: func(err error) error {
					return cli.WithHint(err, wire.CodeNotFound, "List them: orchestrator bus tail")
				},
				Quiet: func(m *mail.Status) error { return a.Print("%s\n", latestState(m)) },
				Text:  func(m *mail.Status) error { return showStatus(a, m) },
			}.Run(a)
		},
	}
	verb.ValidArgsFunction = cli.OneArg(a.Completion(completeSent))
	return verb
}

// completeSent completes the numbers of messages that actors have not acknowledged yet.
func completeSent(a *cli.App, _ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, v := range actorsForShell(a) {
		if v.Latest > v.Cursor {
			offered = append(offered, cobra.CompletionWithDesc(strconv.FormatInt(v.Latest, 10), "latest to "+term.OneLine(cmp.Or(v.Agent, v.Actor))))
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func latestState(m *mail.Status) string {
	if len(m.States) == 0 {
		return ""
	}
	return stateWords(m.States[len(m.States)-1].State)
}

// stateNames are the states of messages as people read them.
var stateNames = map[string]string{
	mail.StateKept: "stored", mail.StateWritten: "delivered", mail.StateInContext: "read by the model", mail.StateAcked: "acknowledged",
}

func stateWords(state string) string { return cmp.Or(stateNames[state], term.OneLine(state)) }

func showStatus(a *cli.App, m *mail.Status) error {
	names := newNames(a)
	if err := a.Print("%s  %s  %s\n", a.Paint(a.Stdout).Strong(strconv.FormatInt(m.Seq, 10)), names.parties(m.From, m.To), term.OneLine(m.Topic)); err != nil {
		return err
	}
	now := time.Now()
	var rows [][]term.Cell
	for _, s := range m.States {
		at := "-"
		if s.At != "" {
			at = term.Clock(s.At, now, "15:04:05.000")
		}
		rows = append(rows, []term.Cell{
			term.Text(stateWords(s.State)), term.Text(at), term.Text(sinceStored(m, s.At)), term.Text(cmp.Or(term.OneLine(s.Agent), names.of(s.Actor))),
		})
	}
	return a.Print("%s", term.Table(rows))
}

// sinceStored returns the time between the sending of a message and one of its states.
func sinceStored(m *mail.Status, stamp string) string {
	stored, ok := object.ParseTime(m.States[0].At)
	at, known := object.ParseTime(stamp)
	if !ok || !known {
		return ""
	}
	return term.Duration(max(0, at.Sub(stored)))
}

// awaited is the flag for the state that a message must reach.
type awaited struct{ cli.Choice }

// order lists the states that --wait takes, by their words. Each implies those before it.
var order = []string{mail.StateWritten, mail.StateInContext, mail.StateAcked}

var awaitedWords = []string{"delivered", "read", "acknowledged"}

func newAwaited() awaited { return awaited{cli.Choice{Of: awaitedWords}} }

// Set also accepts the states as JSON has them, and in-context.
func (w *awaited) Set(word string) error {
	if i := slices.Index(order, strings.ReplaceAll(word, "-", "_")); i >= 0 {
		word = awaitedWords[i]
	}
	return w.Choice.Set(word)
}

// state returns the state to wait for.
func (w *awaited) state() string { return order[slices.Index(awaitedWords, w.Value)] }

// between is the pause between two looks at a message. Writing to an agent causes no event.
const between = 100 * time.Millisecond

// until waits until a message that was sent has the state, and prints its states.
func (w *awaited) until(ctx context.Context, a *cli.App, d *client.Client, sent []byte) error {
	m, err := client.Decode[mail.Sent](sent)
	if err != nil {
		return err
	}
	for _, warning := range m.Warnings {
		a.Note("%s %s", a.Paint(a.Stderr).Warn("Warning:"), term.OneLine(warning))
	}
	done := a.ShowWait(fmt.Sprintf("message %d to be %s", m.Seq, stateWords(w.state())))
	status, text, err := w.watch(ctx, a, d, m.Seq)
	done()
	if err != nil {
		if f, ok := errors.AsType[*cli.Failure](err); ok {
			f.Because = append(f.Because, fmt.Sprintf("Message %d is stored: orchestrator bus status %d", m.Seq, m.Seq))
		}
		return err
	}
	err = cli.Query[mail.Status]{
		Quiet: func(*mail.Status) error { return a.Print("%d\n", m.Seq) },
		Text:  func(m *mail.Status) error { return a.Print("%s\n", statusLine(m)) },
	}.Show(a, text, nil)
	if err == nil && !w.reached(status) {
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("the recipient refused message %d", m.Seq),
			Hint: "See why: orchestrator logs",
		}
	}
	return err
}

// watch looks at a message until it has the state or is refused.
func (w *awaited) watch(ctx context.Context, a *cli.App, d *client.Client, seq int64) (*mail.Status, []byte, error) {
	again := time.NewTicker(between)
	defer again.Stop()
	for {
		text, err := d.Ask(ctx, "message-status", wire.MessageSeq{Seq: seq})
		if err != nil {
			return nil, nil, err
		}
		status, err := client.Decode[mail.Status](text)
		if err != nil || w.reached(&status) || status.Has(mail.StateRefused) {
			return &status, text, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, nil, a.Ended(ctx)
		}
	}
}

// reached reports whether a message has the state, or one after it.
func (w *awaited) reached(m *mail.Status) bool {
	return slices.ContainsFunc(order[slices.Index(order, w.state()):], m.Has)
}

// statusLine returns the states of a message in one line, such as
// "41 stored · delivered 0.0s · read by the model 2.9s".
func statusLine(m *mail.Status) string {
	words := []string{fmt.Sprintf("%d %s", m.Seq, stateWords(mail.StateKept))}
	for _, s := range m.States[min(1, len(m.States)):] {
		words = append(words, strings.TrimSpace(stateWords(s.State)+" "+sinceStored(m, s.At)))
	}
	return strings.Join(words, " · ")
}
