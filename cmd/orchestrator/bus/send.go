package bus

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// sendFlags are the flags of bus send.
type sendFlags struct {
	to, topic string
	payload   string
	replyTo   mailNumber
	key       string
	from      string
	once      bool
}

func busSendCommand(a *cli.App) *cobra.Command {
	f := sendFlags{replyTo: mailNumber{least: 1}}
	verb := &cobra.Command{
		Use:   "send --to ACTOR --topic TOPIC",
		Short: "Send a message to an actor",
		Long: `Sends a message. The message is stored, and an addressee that is away reads it later. A
running agent is notified at once. "broadcast" addresses all actors.

--payload takes a JSON object, @FILE for the contents of a file, or - for stdin. If no
orchestrator answers, the message is sent again after 2, 10 and 60 seconds, unless
--no-retry is given. All attempts have the same key, so the message is stored once. To
repeat a message yourself, give the same --key.`,
		Example: `  orchestrator bus send --to PO:shop --topic message.direct --payload '{"text": "hello"}'
  orchestrator bus send --to PO:shop --topic message.direct --reply-to 41 --payload @answer.json
  orchestrator bus send --to broadcast --topic broadcast.all --payload '{"text": "the disk is full"}'
  seq=$(orchestrator bus send --to GO --topic build.finished --key build-812 -q)`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := cli.NotEmpty(verb, "to", "topic", "payload", "key", "from"); err != nil {
				return err
			}
			return send(a, &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.to, "to", "", "addressee `ACTOR`: GO, HO:host, PO:project, IO:person, W:id, S:kind:id or broadcast")
	set.StringVar(&f.topic, "topic", "", "`TOPIC` of the message: words separated by dots")
	set.StringVar(&f.payload, "payload", "{}", "payload, a `JSON` object, @FILE or -")
	set.Var(&f.replyTo, "reply-to", "number of the message that this one answers: `SEQ`")
	set.StringVar(&f.key, "key", "", "idempotency `KEY`: a repeated message is sent once")
	set.StringVar(&f.from, "from", "", "sender `ACTOR` (default GO; inside an agent its own actor)")
	set.BoolVar(&f.once, "no-retry", false, "make one attempt")
	_ = verb.RegisterFlagCompletionFunc("to", CompleteActors(a, cobra.CompletionWithDesc(mail.Broadcast, "all actors")))
	_ = verb.RegisterFlagCompletionFunc("from", CompleteActors(a))
	_ = verb.RegisterFlagCompletionFunc("topic", cli.Completion(a, completeTopics))
	_ = verb.RegisterFlagCompletionFunc("reply-to", completeMail(a, "from"))
	_ = verb.RegisterFlagCompletionFunc("key", cobra.NoFileCompletions)
	return verb
}

func send(a *cli.App, f *sendFlags) error {
	m, err := f.message(a)
	if err != nil {
		return err
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := askAgain(ctx, a, d, f.once, "send-message", m)
		return cli.Query[mail.Sent]{
			Quiet: func(sent *mail.Sent) error { return a.Print("%d\n", sent.Seq) },
			Text:  func(sent *mail.Sent) error { return showSent(ctx, a, d, sent) },
		}.Show(a, text, err)
	})
}

// message returns the request for the flags.
func (f *sendFlags) message(a *cli.App) (*wire.SendMessage, error) {
	switch {
	case f.to == "":
		return nil, cli.UsageError("the addressee is missing", "Say it: --to ACTOR     Who there is: orchestrator bus presence")
	case f.topic == "":
		return nil, cli.UsageError("what the message is about is missing", "Say it: --topic message.direct     Others: orchestrator bus topics")
	}
	if err := ActorGiven(a, "to", f.to, mail.CheckAddressee); err != nil {
		return nil, err
	}
	if err := ActorGiven(a, "from", f.from, mail.CheckActor); err != nil {
		return nil, err
	}
	if why := mail.CheckTopic(f.topic); why != "" {
		return nil, cli.UsageError("--topic "+why, "See which there are: orchestrator bus topics")
	}
	payload, err := cli.GivenDocument(a, "payload", f.payload)
	if f.key == "" && !f.once {
		f.key = uuid.NewString()
	}
	return &wire.SendMessage{
		From: f.from, To: f.to, Topic: f.topic, Payload: payload, ReplyTo: f.replyTo.value, Key: f.key,
	}, err
}

func showSent(ctx context.Context, a *cli.App, d *client.Client, sent *mail.Sent) error {
	number := strconv.FormatInt(sent.Seq, 10)
	said := "Sent "
	if sent.Duplicate {
		said = "Already sent as "
	}
	if err := a.Print("%s%s to %s  %s\n", said, a.Paint(a.Stdout).Strong(number), term.OneLine(sent.To), term.OneLine(sent.Topic)); err != nil {
		return err
	}
	for _, warning := range sent.Warnings {
		a.Note("%s %s", a.Paint(a.Stderr).Warn("Warning:"), term.OneLine(warning))
	}
	if !sent.Duplicate && nobodyYet(ctx, a, d, sent.To) {
		a.Note("No actor here is called %s yet: the message waits. Who there is: orchestrator bus presence", term.OneLine(sent.To))
	}
	return nil
}

// nobodyYet reports whether an actor is unknown. A message to it is valid, but the name may
// be a typing error.
func nobodyYet(ctx context.Context, a *cli.App, d *client.Client, actor string) bool {
	if slices.Contains([]string{mail.Broadcast, mail.Bus, mail.Governor}, actor) || a.JSON() {
		return false
	}
	text, err := d.Ask(ctx, "list-actors", struct{}{})
	if err != nil {
		return false // the message is sent; the check is optional
	}
	list, err := client.Decode[mail.ActorList](text)
	return err == nil && !slices.ContainsFunc(list.Actors, func(v mail.ActorView) bool { return v.Actor == actor })
}

// retryPauses are the pauses between attempts to reach the bus.
var retryPauses = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// askAgain is Ask for the bus. It retries while no orchestrator answers or the answer is an
// internal error, unless once is set.
func askAgain(ctx context.Context, a *cli.App, d *client.Client, once bool, operation string, request any) ([]byte, error) {
	for _, pause := range retryPauses {
		text, err := a.Ask(ctx, d, operation, request)
		if f, ok := errors.AsType[*cli.Failure](err); once || ctx.Err() != nil || !ok || f.Exit != cli.ExitNotRunning && f.Code != wire.CodeInternal {
			return text, err
		}
		a.Note("%v: trying again in %s", err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, a.Ended(ctx)
		}
	}
	return a.Ask(ctx, d, operation, request)
}
