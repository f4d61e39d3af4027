package bus

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/agents/bus"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// sendFlags are the flags of bus send.
type sendFlags struct {
	to, topic string
	payload   string
	text      string // the argument
	urgent    bool
	wait      awaited
	replyTo   mailNumber
	key       string
	from      string
	once      bool
}

func busSendCommand(a *cli.App) *cobra.Command {
	f := sendFlags{replyTo: mailNumber{least: 1}, wait: newAwaited()}
	verb := &cobra.Command{
		Use:   "send --to ACTOR [TEXT]",
		Short: "Send a message to an actor or an agent",
		Long: `Sends a message. The message is stored, and an addressee that is away reads it later. A
running agent is notified at once. The name of an agent stands for the actor that it has
now. "broadcast" addresses all actors.

TEXT becomes the payload {"text": TEXT}, on the topic message.direct unless --topic is
given. --urgent ends the turn of a coding agent, and the next turn starts with the message.
To give an instruction, use orchestrator agent interrupt.

--wait waits until the message has a state, and prints its states: delivered to the agent,
read by its model, or acknowledged by the addressee. Only coding agents report "read". With
any other addressee, --wait read ends when the message is acknowledged. To see the states
later: orchestrator bus status SEQ.

--payload takes a JSON object, @FILE for the contents of a file, or - for stdin. If no
orchestrator answers, or the answer has an HTTP status of 500 or above, the message is
sent again after 2, 10 and 60 seconds, unless --no-retry is given. All attempts have the
same key, so the message is stored once. After the last attempt the message is kept in
bus-incidents.jsonl in the state directory, in the folder for temporary files inside an
agent, or else in the current folder. To repeat a message yourself, give the same --key.`,
		Example: `  orchestrator bus send --to coder "Keep the old page working" --wait read
  orchestrator bus send --to coder --urgent "Stop: main is broken"
  orchestrator bus send --to PO:shop --topic message.direct --reply-to 41 \
    --payload @answer.json
  orchestrator bus send --to broadcast --topic broadcast.all "the disk is full"
  seq=$(orchestrator bus send --to GO --topic build.finished --key build-812 -q)`,
		Args:              cli.ArgCount(0, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "to", "topic", "payload", "key", "from"); err != nil {
				return err
			}
			if err := f.say(verb, args); err != nil {
				return err
			}
			return send(a, &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.to, "to", "", "addressee `ACTOR`: the name of an agent, GO, HO:host, PO:project, IO:person, W:id, S:kind:id or broadcast")
	set.StringVar(&f.topic, "topic", "", "`TOPIC` of the message: words separated by dots (message.direct with TEXT)")
	set.StringVar(&f.payload, "payload", "{}", "payload, a `JSON` object, @FILE or -")
	set.BoolVar(&f.urgent, "urgent", false, "end the turn of a coding agent: the next one starts with the message")
	set.Var(&f.wait, "wait", "wait until the message is in `STATE`: delivered, read or acknowledged")
	set.Var(&f.replyTo, "reply-to", "answer the message with the number `SEQ`")
	set.StringVar(&f.key, "key", "", "idempotency `KEY`: a repeated message is sent once")
	set.StringVar(&f.from, "from", "", "sender `ACTOR` (default GO; inside an agent its own actor)")
	set.BoolVar(&f.once, "no-retry", false, "make one attempt")
	_ = verb.RegisterFlagCompletionFunc("to", completeAddressees(a))
	_ = verb.RegisterFlagCompletionFunc("wait", f.wait.Complete)
	_ = verb.RegisterFlagCompletionFunc("from", CompleteActors(a))
	_ = verb.RegisterFlagCompletionFunc("topic", a.Completion(completeTopics))
	_ = verb.RegisterFlagCompletionFunc("reply-to", completeMail(a, "from"))
	_ = verb.RegisterFlagCompletionFunc("key", cobra.NoFileCompletions)
	return verb
}

// say takes the argument, which is the text of the message.
func (f *sendFlags) say(verb *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if verb.Flags().Changed("payload") {
		return cli.UsageError("a text and --payload cannot be combined", "Leave out one of them")
	}
	if f.text = args[0]; strings.TrimSpace(f.text) == "" {
		return cli.UsageError("the text is empty", `Write it as: orchestrator bus send --to coder "hello"`)
	}
	f.topic = cmp.Or(f.topic, mail.TopicDirect)
	return nil
}

func send(a *cli.App, f *sendFlags) error {
	m, err := f.message(a)
	if err != nil {
		return err
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := askAgain(ctx, a, d, f.once, "send-message", m)
		if cli.Temporary(err) && !f.once {
			err = givenUp(d, m, err)
		}
		if err == nil && f.wait.Value != "" {
			return f.wait.until(ctx, a, d, text)
		}
		return cli.Query[mail.Sent]{
			Explain: func(err error) error { return f.explained(a, err) },
			Quiet:   func(sent *mail.Sent) error { return a.Print("%d\n", sent.Seq) },
			Text:    func(sent *mail.Sent) error { return showSent(ctx, a, d, sent) },
		}.Show(a, text, err)
	})
}

// explained adds the likely actor to the refusal of a name that no agent has.
func (f *sendFlags) explained(a *cli.App, err error) error {
	if mail.CheckAddressee(f.to) == "" {
		return err
	}
	hint := likelyActor(a, "to", f.to)
	if likely := cli.Nearest(f.to, agentsForShell(a)); likely != "" {
		hint = "Did you mean " + likely + "?  List the actors: orchestrator bus presence"
	}
	return cli.WithHint(err, wire.CodeInvalid, hint)
}

// addressee is mail.CheckAddressee, and accepts the names of agents.
func addressee(word string) string {
	if mail.IsName(word) {
		return ""
	}
	return mail.CheckAddressee(word)
}

// agentsForShell returns the names of agents that have a mailbox.
func agentsForShell(a *cli.App) (names []string) {
	for _, actor := range actorsForShell(a) {
		if mail.IsName(actor.Agent) && mail.CheckAddressee(actor.Agent) != "" {
			names = append(names, actor.Agent)
		}
	}
	return names
}

// completeAddressees completes the names of agents and the actors of the bus.
func completeAddressees(a *cli.App) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		for _, name := range agentsForShell(a) {
			names = append(names, cobra.CompletionWithDesc(name, "agent"))
		}
		actors, directive := CompleteActors(a, cobra.CompletionWithDesc(mail.Broadcast, "all actors"))(verb, args, begun)
		return append(names, actors...), directive
	}
}

// message returns the request for the flags.
func (f *sendFlags) message(a *cli.App) (*wire.SendMessage, error) {
	switch {
	case f.to == "":
		return nil, cli.UsageError("the recipient is missing", "Add it: --to ACTOR     List the actors: orchestrator bus presence")
	case f.topic == "":
		return nil, cli.UsageError("the topic is missing", "Add it: --topic message.direct     List the topics: orchestrator bus topics")
	}
	if err := ActorGiven(a, "to", f.to, addressee); err != nil {
		return nil, err
	}
	if f.wait.Value != "" && f.to == mail.Broadcast {
		return nil, cli.UsageError("--wait requires one recipient, and broadcast has many", "See the recipients: orchestrator bus status SEQ")
	}
	if err := ActorGiven(a, "from", f.from, mail.CheckActor); err != nil {
		return nil, err
	}
	if why := mail.CheckTopic(f.topic); why != "" {
		return nil, cli.UsageError("--topic "+why, "List them: orchestrator bus topics")
	}
	payload, err := f.content(a)
	if f.key == "" && !f.once {
		f.key = uuid.NewString()
	}
	return &wire.SendMessage{
		From: f.from, To: f.to, Topic: f.topic, Payload: payload, ReplyTo: f.replyTo.value, Key: f.key,
	}, err
}

// content returns the payload: the text, or the document of --payload, with the mark of --urgent.
func (f *sendFlags) content(a *cli.App) (wire.Raw, error) {
	payload, err := a.GivenDocument("payload", f.payload)
	if f.text != "" {
		payload = object.Spell(map[string]string{"text": f.text})
	}
	if err != nil || !f.urgent {
		return payload, err
	}
	return object.Merge(payload, wire.Raw(`{"urgent":true}`)), nil
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
		a.Note("No actor %s exists yet, so the message waits. List the actors: orchestrator bus presence", term.OneLine(sent.To))
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

// givenUp appends a message that could not be sent to the incident file, and adds its place to the
// error.
func givenUp(d *client.Client, m *wire.SendMessage, err error) error {
	file := filepath.Join(incidentDir(&d.Target), "bus-incidents.jsonl")
	f := cli.FailureOf(err)
	if trouble := bus.NoteIncident(file, m, len(retryPauses)+1, err); trouble != nil {
		f.Because = append(f.Because, fmt.Sprintf("The message could not be saved in %s: %v", file, trouble))
		return f
	}
	f.Because = append(f.Because, "The message is saved in "+file)
	f.Hint = "Send it again later, with the same key: --key " + term.Word(m.Key)
	return f
}

// incidentDir returns the folder of the incident file: the state directory, if there is one on this
// machine. The folder of an agent has its work, so an agent uses the one for temporary files.
func incidentDir(t *client.Target) string {
	dir := filepath.Dir(t.Socket)
	switch {
	case t.Inside:
		return os.TempDir()
	case t.URL == "" && cli.IsStateDir(dir):
		return dir
	}
	return "."
}

// askAgain is Ask for the bus. It retries after temporary errors, unless once is set.
func askAgain(ctx context.Context, a *cli.App, d *client.Client, once bool, operation string, request any) ([]byte, error) {
	for _, pause := range retryPauses {
		text, err := a.Ask(ctx, d, operation, request)
		if once || ctx.Err() != nil || !cli.Temporary(err) {
			return text, err
		}
		a.Note("%v: retrying in %s", err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, a.Ended(ctx)
		}
	}
	return a.Ask(ctx, d, operation, request)
}
