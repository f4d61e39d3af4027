package bus

import (
	"fmt"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// tailFlags are the flags of bus tail.
type tailFlags struct {
	follow bool
	last   string
	topic  string
	actor  string
	since  mailNumber
}

func busTailCommand(a *cli.App) *cobra.Command {
	var f tailFlags
	verb := &cobra.Command{
		Use:   "tail",
		Short: "Follow the messages of all actors",
		Long: `Shows the messages of all actors, oldest first: the last 10, or with --since all after
a number. It moves no cursor and does not change what agents receive. Long payloads are
cut; -v and --json show them whole.`,
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
	_ = verb.RegisterFlagCompletionFunc("topic", cli.Completion(a, completeTopics))
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
	if err := ActorGiven(a, "actor", f.actor, mail.CheckAddressee); err != nil {
		return err
	}
	if f.last == "0" { // no stored messages: only those after the last one
		query.Set("n", "1")
		query.Del("follow")
		err := a.EachLine("messages", query, false, func(raw []byte) error {
			last, err := client.Decode[wire.Mail](raw)
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
	return a.Stream("messages", query, f.follow, show.line)
}

// query returns the query for the API. Without n the API returns all messages.
func (f *tailFlags) query() (url.Values, error) {
	if _, err := path.Match(f.topic, ""); err != nil {
		return nil, cli.UsageError(fmt.Sprintf("--topic cannot be %q: it is no pattern", f.topic), "Write it as: --topic 'task.*'")
	}
	query := url.Values{}
	switch n, err := strconv.Atoi(f.last); {
	case f.last == "" && !f.since.given:
		query.Set("n", "10")
	case f.last == "" || f.last == "all":
	case err != nil || n < 0:
		return nil, cli.UsageError(fmt.Sprintf("-n cannot be %q", f.last), "It is a number of messages, or all")
	default:
		query.Set("n", strconv.Itoa(n))
	}
	if f.since.given {
		query.Set("since", f.since.String())
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
