package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) sessionSendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "send NAME FILE|-",
		Short: "Send a message in a session",
		Long: `Says a message of a session: one JSON object, in a file or on stdin. Here at the
socket you may speak for every member; inside of an agent it is that agent's own. A
message with the message_id of one that was said before, and the same words, is said
once.`,
		Example: `  orchestrator session send checkout assignment.json
  id=$(orchestrator session send checkout - -q <assignment.json)`,
		Args: argCount(2, 2),
		ValidArgsFunction: func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(already) == 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.completeOneSession(verb, already, begun)
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.say(args[0], args[1]) },
	}
}

func (a *app) say(session, file string) error {
	source := "@" + file
	if file == "-" {
		source = file
	}
	text, err := a.readArg("FILE", source)
	if err != nil {
		return err
	}
	message := wire.Raw(text)
	if !message.IsValid() || message.Kind() != '{' {
		return usageError(fmt.Sprintf("%s is no JSON object: %s", file, plain.Clip(plain.OneLine(text), 60)), "What a message looks like: orchestrator help session")
	}
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, "send-session-message", wire.SaySession{SessionID: session, Session: wire.Session{Document: message}})
		if err != nil {
			return problems(a.noSession(ctx, d, session, err))
		}
		if a.flags.json {
			return a.answer(text)
		}
		said, err := decode[wire.SessionSaid](text)
		if err != nil {
			return err
		}
		return a.showSaid(&said)
	})
}

func (a *app) showSaid(said *wire.SessionSaid) error {
	id := plain.OneLine(said.MessageID)
	if a.flags.quiet {
		return a.print("%s\n", id)
	}
	verb := "Said "
	if said.Duplicate {
		verb = "Already said "
	}
	more := ""
	if said.SequenceNumber > 0 {
		more += fmt.Sprintf("  sequence %d", said.SequenceNumber)
	}
	if said.CorrelationID != "" {
		more += "  chain " + plain.OneLine(said.CorrelationID)
	}
	if err := a.print("%s%s in %s%s\n", verb, a.paint(a.stdout).strong(id), plain.OneLine(said.SessionID), more); err != nil {
		return err
	}
	if said.Held {
		a.note("It waits: it is delivered when the tasks are done that it depends on")
	}
	for _, note := range said.Notes {
		a.note("%s %s", a.paint(a.stderr).warn("Note:"), plain.OneLine(note))
	}
	return nil
}

// problems adds to a refusal everything that is wrong, each with its place in what
// was written.
func problems(err error) error { return problemsBelow(err, inMessage) }

// problemsBelow is problems for what was sent below a place: seen says where that is
// for its author.
func problemsBelow(err error, seen func(pointer string) string) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	listed, _ := f.details["errors"].([]any)
	for _, one := range listed {
		problem, _ := one.(map[string]any)
		pointer, _ := problem["pointer"].(string)
		message, _ := problem["message"].(string)
		if message != "" {
			f.because = append(f.because, wire.Problem{Pointer: seen(pointer), Message: message}.String())
		}
	}
	if pointer, _ := f.details["pointer"].(string); len(listed) == 0 && pointer != "" {
		f.because = append(f.because, "At "+seen(pointer))
	}
	return err
}
