package bus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
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

// forwardFlags are the flags of bus forward.
type forwardFlags struct {
	actor, to, token string
}

func busForwardCommand(a *cli.App) *cobra.Command {
	var f forwardFlags
	verb := &cobra.Command{
		Use:   "forward --to URL",
		Short: "Forward the messages of an actor to another team",
		Long: `Forwards the messages of an actor to the actor of the same name in another team, in order,
until Ctrl-C. A message is acknowledged here once it is stored there. Its key there comes
from its number, so it is stored once, even if this command or an orchestrator is killed.

The sender there is the actor of the token. The payload gets a member "forwarded" with the
sender here, the number and the time. A message that cannot be stored there, for example
because it was forwarded before, is reported to GO here as task.failed. While the other
team cannot be reached, messages wait here.

Run it as an agent whose actor stands for the other team: see orchestrator help bus.`,
		Example: `  orchestrator bus forward --to https://kitchen.example:7433 \
    --token kitchen.token --actor PO:kitchen`,
		Args: cli.ArgCount(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := cli.NotEmpty(verb, "to", "token", "actor"); err != nil {
				return err
			}
			return forward(a, &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.to, "to", "", "`URL` of the other orchestrator, or the path of its socket; several hubs with commas")
	set.StringVar(&f.token, "token", "", "`FILE` with a token of the other team for the sender")
	set.StringVar(&f.actor, "actor", "", "forward messages to `ACTOR` (inside an agent its own actor)")
	_ = verb.RegisterFlagCompletionFunc("to", cobra.NoFileCompletions)
	_ = verb.RegisterFlagCompletionFunc("actor", CompleteActors(a))
	return verb
}

// A forwarder reads messages here and sends them there.
type forwarder struct {
	app         *cli.App
	actor       string // the owner of the messages; "" is the agent that this command is
	here, there *client.Client
	waiting     bool // the last attempt failed, and that was said
}

func forward(a *cli.App, f *forwardFlags) error {
	ctx, stop := a.Context()
	defer stop()
	here, err := a.Connect()
	if err != nil {
		return err
	}
	if f.to == "" {
		return cli.UsageError("the address of the other team is missing", "Add it: --to https://kitchen.example:7433")
	}
	if f.actor == "" && !here.Target.Inside {
		return cli.UsageError("the actor whose messages are forwarded is missing", "Add it: --actor PO:kitchen")
	}
	if err := ActorGiven(a, "actor", f.actor, mail.CheckActor); err != nil {
		return err
	}
	target, err := a.HostTarget(f.to)
	if err != nil {
		return err
	}
	if target.Token = ""; f.token != "" { // a token of this team must not be sent to another one
		text, err := os.ReadFile(a.Path(f.token))
		if err != nil {
			return fmt.Errorf("reading the token: %w", err)
		}
		target.Token = strings.TrimSpace(string(text))
	}
	w := &forwarder{app: a, actor: f.actor, here: here, there: a.NewClient(target)}
	var mailed chan struct{}
	if here.Target.Inside {
		mailed = make(chan struct{}, 1)
		go readNotices(a, mailed)
	}
	return w.run(ctx, mailed)
}

// readNotices reads the stdin of an agent and reports its lines, until it ends. One of them may announce a
// message.
func readNotices(a *cli.App, mailed chan<- struct{}) {
	lines := bufio.NewReader(a.Stdin)
	for {
		if _, err := lines.ReadSlice('\n'); err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		select {
		case mailed <- struct{}{}:
		default:
		}
	}
}

// run forwards messages until the context ends. It looks for messages each second, and when one is announced.
func (w *forwarder) run(ctx context.Context, mailed <-chan struct{}) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		more, err := w.page(ctx)
		switch {
		case ctx.Err() != nil:
			return cli.UnlessLeft(w.app.Ended(ctx))
		case err != nil && !cli.Temporary(err) && !limited(err):
			return err
		case err != nil && !w.waiting:
			w.waiting = true
			w.app.Note("%v: messages wait", err)
		}
		if err == nil {
			if w.waiting = false; more {
				continue
			}
		}
		select {
		case <-again.C:
		case <-mailed:
		case <-ctx.Done():
			return cli.UnlessLeft(w.app.Ended(ctx))
		}
	}
}

// limited reports whether an orchestrator refused a request because there were too many.
func limited(err error) bool {
	f, ok := errors.AsType[*cli.Failure](err)
	return ok && f.Code == wire.CodeLimited
}

// page forwards some messages. It reports whether there may be more.
func (w *forwarder) page(ctx context.Context) (more bool, err error) {
	text, err := w.here.Ask(ctx, "poll-messages", wire.PollMessages{Actor: w.actor, Limit: offeredMail})
	if err != nil {
		return false, err
	}
	list, err := client.Decode[mail.List](text)
	if err != nil {
		return false, err
	}
	for i := range list.Messages {
		if err := w.message(ctx, list.Actor, &list.Messages[i]); err != nil {
			return false, err
		}
	}
	return list.More, nil
}

// message forwards a message and acknowledges it.
func (w *forwarder) message(ctx context.Context, to string, m *mail.Message) error {
	there, err := w.send(ctx, to, m)
	switch f, refused := errors.AsType[*cli.Failure](err); {
	case refused && f.Code == wire.CodeInvalid || refused && f.Code == wire.CodeTooLarge:
		if err := w.failed(ctx, m, f.Message); err != nil {
			return err
		}
		w.app.Note("%d was not forwarded: %s", m.Seq, term.OneLine(f.Message))
	case err != nil:
		return err
	default:
		if err := w.app.Print("%d from %s  %s: is %d there\n", m.Seq, term.OneLine(m.From), term.OneLine(m.Topic), there); err != nil {
			return err
		}
	}
	_, err = w.here.Ask(ctx, "ack-messages", wire.AckMessages{Actor: w.actor, Seq: m.Seq})
	return err
}

// An origin is the source of a forwarded message.
type origin struct {
	From      string `json:"from_actor"`
	Seq       int64  `json:"seq"`
	ReplyTo   *int64 `json:"reply_to,omitempty"`
	CreatedAt string `json:"created_at"`
}

// send sends a message to the other team and returns its number there. A message that was forwarded
// before is refused, because two teams could send it to each other for ever.
func (w *forwarder) send(ctx context.Context, to string, m *mail.Message) (int64, error) {
	var payload struct {
		Forwarded wire.Raw `json:"forwarded"`
	}
	if err := object.DecodeOwn(m.Payload, &payload); err == nil && payload.Forwarded != nil {
		return 0, &cli.Failure{Code: wire.CodeInvalid, Message: "it was forwarded before"}
	}
	mark := object.Spell(map[string]origin{"forwarded": {From: m.From, Seq: m.Seq, ReplyTo: m.ReplyTo, CreatedAt: m.CreatedAt}})
	text, err := w.there.Ask(ctx, "send-message", &wire.SendMessage{
		To: to, Topic: m.Topic, Payload: object.Merge(m.Payload, mark), Key: key("forward", m),
	})
	if err != nil {
		return 0, err
	}
	sent, err := client.Decode[mail.Sent](text)
	return sent.Seq, err
}

// key returns an idempotency key for an action that is done once with a message. The time is part
// of it, because numbers begin again in a new record.
func key(what string, m *mail.Message) string {
	return what + " " + m.CreatedAt + " " + strconv.FormatInt(m.Seq, 10)
}

// failed reports a message to GO that the other team refuses.
func (w *forwarder) failed(ctx context.Context, m *mail.Message, why string) error {
	payload := object.Spell(map[string]string{"error": why, "error_code": "not_forwarded", "topic": m.Topic})
	_, err := w.here.Ask(ctx, "send-message", &wire.SendMessage{
		From: w.actor, To: mail.Global, Topic: mail.TopicTaskFailed, Payload: payload, ReplyTo: m.Seq, Key: key("refused", m),
	})
	return err
}
