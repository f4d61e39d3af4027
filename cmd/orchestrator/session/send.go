package session

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

func sessionSendCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "send NAME FILE|-",
		Short: "Send a message in a session",
		Long: `Sends a message in a session: one JSON object, in a file or on stdin. At the socket you
may send for every member; inside an agent only for that agent. A repeated message with
the same message_id and content is sent once.`,
		Example: `  orchestrator session send checkout assignment.json
  id=$(orchestrator session send checkout - -q <assignment.json)`,
		Args: cli.ArgCount(2, 2),
		ValidArgsFunction: func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(already) == 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return completeOneSession(a, verb, already, begun)
		},
		RunE: func(_ *cobra.Command, args []string) error { return say(a, args[0], args[1]) },
	}
}

func say(a *cli.App, sessionID, file string) error {
	source := "@" + file
	if file == "-" {
		source = file
	}
	text, err := cli.ReadArg(a, "FILE", source)
	if err != nil {
		return err
	}
	message := wire.Raw(text)
	if !message.IsValid() || message.Kind() != '{' {
		return cli.UsageError(fmt.Sprintf("%s is no JSON object: %s", file, term.Clip(term.OneLine(text), 60)), "What a message looks like: orchestrator help session")
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		return cli.Query[wire.SessionSaid]{
			Operation: "send-session-message", Request: wire.SaySession{SessionID: sessionID, Session: wire.Session{Document: message}},
			Explain: func(err error) error { return cli.Problems(noSession(ctx, a, d, sessionID, err)) },
			Quiet:   func(said *wire.SessionSaid) error { return a.Print("%s\n", term.OneLine(said.MessageID)) },
			Text:    func(said *wire.SessionSaid) error { return showSaid(a, said) },
		}.Send(ctx, a, d)
	})
}

func showSaid(a *cli.App, said *wire.SessionSaid) error {
	id := term.OneLine(said.MessageID)
	verb := "Said "
	if said.Duplicate {
		verb = "Already said "
	}
	more := ""
	if said.SequenceNumber > 0 {
		more += fmt.Sprintf("  sequence %d", said.SequenceNumber)
	}
	if said.CorrelationID != "" {
		more += "  chain " + term.OneLine(said.CorrelationID)
	}
	if err := a.Print("%s%s in %s%s\n", verb, a.Paint(a.Stdout).Strong(id), term.OneLine(said.SessionID), more); err != nil {
		return err
	}
	if said.Held {
		a.Note("It waits: it is delivered when the tasks are done that it depends on")
	}
	for _, note := range said.Notes {
		a.Note("%s %s", a.Paint(a.Stderr).Warn("Note:"), term.OneLine(note))
	}
	return nil
}
