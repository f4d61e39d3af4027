package bus

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire/mail"
)

// tailFlags are the flags of bus tail.
type tailFlags struct {
	follow bool
	last   string
	topic  string
	actor  string
	since  mailNumber
	all    bool
}

func busTailCommand(a *cli.App) *cobra.Command {
	var f tailFlags
	verb := &cobra.Command{
		Use:   "tail",
		Short: "Follow the messages of all actors",
		Long: `Shows the messages of all actors, oldest first: the last 10, or with --since all after
a number. It only reads: no cursor moves. Actors have the names of their agents, and
messages with a text are shown as text. Long payloads are cut; -v and --json show them in
full.

The orchestrator's own records are left out: starts and ends of agents, heartbeats and
unknown topics. --all and --json show them, and so does a matching --topic.`,
		Example: `  orchestrator bus tail -f
  orchestrator bus tail -f --topic 'task.*'
  orchestrator bus tail -n all --actor PO:shop      to it and from it
  orchestrator bus tail --since 412 --json`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := cli.NotEmpty(verb, "topic", "actor"); err != nil {
				return err
			}
			return tail(a, &f)
		},
	}
	set := verb.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "continue with new messages until Ctrl-C")
	set.StringVarP(&f.last, "lines", "n", "", "only the last `N` messages, or all (10 without --since)")
	set.StringVar(&f.topic, "topic", "", "only topics that match `GLOB`, such as 'task.*'")
	set.StringVar(&f.actor, "actor", "", "only messages from `ACTOR` or to it")
	set.Var(&f.since, "since", "messages after `SEQ`")
	set.BoolVar(&f.all, "all", false, "include the records of the orchestrator")
	_ = verb.RegisterFlagCompletionFunc("topic", a.Completion(completeTopics))
	_ = verb.RegisterFlagCompletionFunc("actor", CompleteActors(a))
	for _, name := range []string{"lines", "since"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return verb
}

// usualParties is a column width for sender and addressee that fits most messages.
const usualParties = 24

func tail(a *cli.App, f *tailFlags) error {
	query, err := f.query()
	if err != nil {
		return err
	}
	if f.hides(a) {
		query.Set("housekeeping", "false")
	}
	if err := ActorGiven(a, "actor", f.actor, mail.CheckAddressee); err != nil {
		return err
	}
	if f.last == "0" { // no stored messages: only those after the last one
		query.Set("n", "1")
		query.Del("follow")
		err := a.EachLine("messages", query, false, func(raw []byte) error {
			last, err := client.Decode[mail.Message](raw)
			query.Set("since", strconv.FormatInt(last.Seq, 10))
			return err
		})
		if err != nil || !f.follow {
			return err
		}
		query.Del("n")
		query.Set("follow", "true")
	}
	show := newMailPrinter(a, time.Now())
	show.parties, show.topic = usualParties, len(mail.TopicAgentTerminated) // later messages are not known yet
	err = a.Stream("messages", query, f.follow, show.line)
	if err == nil && !show.headed && f.hides(a) && !f.follow {
		a.Note("No messages. Include messages of the orchestrator: orchestrator bus tail --all")
	}
	return err
}

// hides reports whether people do not see the records of the orchestrator. Programs get all messages.
func (f *tailFlags) hides(a *cli.App) bool {
	return !f.all && f.topic == "" && !a.JSON() && !a.Flags.Quiet
}

// query returns the query for the API. Without n the API returns all messages.
func (f *tailFlags) query() (url.Values, error) {
	if _, err := path.Match(f.topic, ""); err != nil {
		return nil, cli.UsageError(fmt.Sprintf("--topic cannot be %q: it is not a pattern", f.topic), "Write it as: --topic 'task.*'")
	}
	query := url.Values{}
	usual := "10"
	if f.since.given {
		usual = "all"
		query.Set("since", f.since.String())
	}
	n, err := cli.ParseCount(cmp.Or(f.last, usual), "messages", 0, -1)
	if err != nil {
		return nil, err
	}
	if n >= 0 {
		query.Set("n", strconv.Itoa(n))
	}
	if f.topic != "" {
		query.Set("topic", f.topic)
	}
	if f.actor != "" {
		query.Set("actor", f.actor)
	}
	if f.follow {
		query.Set("follow", "true")
	}
	return query, nil
}

// A mailPrinter prints messages, one a line, in columns that only grow.
type mailPrinter struct {
	app     *cli.App
	paint   term.Paint
	names   *names
	now     time.Time
	headed  bool
	at      int // column widths so far
	parties int
	topic   int
}

func newMailPrinter(a *cli.App, now time.Time) *mailPrinter {
	return &mailPrinter{app: a, paint: a.Paint(a.Stdout), names: newNames(a), now: now, parties: len("FROM -> TO"), topic: len(mail.TopicDirect)}
}

// line prints a message as the API returned it.
func (p *mailPrinter) line(raw []byte) error {
	if p.app.Flags.JSON {
		return p.app.PrintJSON(raw)
	}
	m, err := client.Decode[mail.Message](raw)
	if err != nil {
		return err
	}
	if p.app.Flags.Quiet {
		return p.app.Print("%d\n", m.Seq)
	}
	return p.mail(&m)
}

// measure widens the columns for a message.
func (p *mailPrinter) measure(m *mail.Message) {
	p.at = max(p.at, len(term.Clock(m.CreatedAt, p.now, "15:04:05.000")))
	p.parties = max(p.parties, term.Width(p.names.parties(m.From, m.To)))
	p.topic = max(p.topic, term.Width(term.OneLine(m.Topic)))
}

func (p *mailPrinter) mail(m *mail.Message) error {
	p.measure(m)
	if !p.headed {
		p.headed = true
		if err := p.row("SEQ", "TIME", "FROM -> TO", term.Pad("TOPIC", p.topic), "TEXT"); err != nil {
			return err
		}
	}
	topic := term.Pad(term.OneLine(m.Topic), p.topic)
	switch m.Topic {
	case mail.TopicAlertFired:
		topic = p.paint.Warn(topic)
	case mail.TopicAlertResolved:
		topic = p.paint.Good(topic)
	}
	return p.row(strconv.FormatInt(m.Seq, 10), term.Clock(m.CreatedAt, p.now, "15:04:05.000"), p.names.parties(m.From, m.To), topic, p.said(m))
}

// said returns the text of a message and the number of the message it answers.
func (p *mailPrinter) said(m *mail.Message) string {
	var parts []string
	text := term.OneLine(m.Text())
	switch {
	case p.app.Flags.Verbose:
		text = term.OneLine(string(m.Payload))
	case text != "{}":
		text = term.Clip(text, term.ShownPayload)
	}
	if text != "{}" {
		parts = append(parts, text)
	}
	if m.ReplyTo != nil {
		parts = append(parts, p.paint.Dim(fmt.Sprintf("answers %d", *m.ReplyTo)))
	}
	return strings.Join(parts, "  ")
}

func (p *mailPrinter) row(seq, at, whom, topic, said string) error {
	line := fmt.Sprintf("%6s  %s  %s  %s  %s", seq, p.paint.Dim(term.Pad(at, p.at)), term.Pad(whom, p.parties), topic, said)
	return p.app.Print("%s\n", strings.TrimRight(line, " "))
}
