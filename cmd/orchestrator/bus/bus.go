// Package bus holds the commands that send and read messages between actors.
package bus

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// Command returns the bus command.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "bus",
		Short: "Send and read messages on the bus",
		Long: `Agents and people send each other messages on the bus. A message has a sender, an
addressee, a topic and a JSON object. Messages are stored, so an actor that is away
reads them later. You are the actor GO. See orchestrator help bus.`,
		Example: `  orchestrator bus send --to PO:shop "hello"
  orchestrator bus tail -f
  orchestrator bus presence`,
	},
		busSendCommand(a), busPollCommand(a), busAckCommand(a), busForwardCommand(a), busTailCommand(a), busStatusCommand(a),
		busPresenceCommand(a), busTopicsCommand(a),
	)
}

// A mailNumber is a flag or an argument for the number of a message.
type mailNumber struct {
	value int64
	least int64
	given bool
}

// largestNumber is the largest integer that every JSON reader can represent.
const largestNumber = 1<<53 - 1

func (n *mailNumber) Type() string { return "SEQ" }

func (n *mailNumber) String() string {
	if !n.given {
		return ""
	}
	return strconv.FormatInt(n.value, 10)
}

func (n *mailNumber) Set(text string) error {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < n.least || value > largestNumber {
		return errors.New("it must be the number of a message, for example 42")
	}
	n.value, n.given = value, true
	return nil
}

// pointer returns the number, or nil if none was given.
func (n *mailNumber) pointer() *int64 {
	if !n.given {
		return nil
	}
	return &n.value
}

// ActorGiven returns an error for a word that is not a valid actor, with the likely actor.
func ActorGiven(a *cli.App, flag, word string, check func(string) string) error {
	if word == "" || check(word) == "" {
		return nil
	}
	return cli.UsageError("--"+flag+" "+check(word), likelyActor(a, flag, word))
}

// likelyActor returns a hint with the actor that was probably meant. The name of an agent
// differs from its actor on the bus.
func likelyActor(a *cli.App, flag, word string) string {
	const who = "List the actors: orchestrator bus presence"
	var ids []string
	for _, actor := range actorsForShell(a) {
		if actor.Agent == word {
			return fmt.Sprintf("The agent %q is %s: --%s %s", word, term.OneLine(actor.Actor), flag, term.OneLine(actor.Actor))
		}
		ids = append(ids, actor.Actor)
	}
	for _, id := range ids { // "po:shop" and "shop"
		if _, name, _ := strings.Cut(id, ":"); strings.EqualFold(id, word) || strings.EqualFold(name, word) {
			return "Did you mean " + term.OneLine(id) + "?  " + who
		}
	}
	if likely := cli.Nearest(word, ids); likely != "" {
		return "Did you mean " + term.OneLine(likely) + "?  " + who
	}
	return who
}

func actorsForShell(a *cli.App) []mail.ActorView {
	return cli.CompletionList[mail.ActorList](a, "list-actors", struct{}{}).Actors
}

// CompleteActors completes the actors of the bus, and offers the completions in more.
func CompleteActors(a *cli.App, more ...cobra.Completion) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var offered []cobra.Completion
		for _, actor := range actorsForShell(a) {
			is := term.OneLine(actor.Status)
			if actor.Agent != "" {
				is = term.OneLine(actor.Agent) + ", " + is
			}
			offered = append(offered, cobra.CompletionWithDesc(actor.Actor, is))
		}
		return append(offered, more...), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTopics completes registered topics.
func completeTopics(a *cli.App, _ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, t := range cli.CompletionList[mail.TopicList](a, "list-topics", struct{}{}).Topics {
		offered = append(offered, cobra.CompletionWithDesc(t.Topic, topicWords(&t)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// completeMail completes the numbers of messages that an actor has not acknowledged. The
// flag holds the actor.
func completeMail(a *cli.App, flag string) cobra.CompletionFunc {
	return cli.OneArg(func(verb *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		actor, _ := verb.Flags().GetString(flag)
		var offered []cobra.Completion
		for _, m := range cli.CompletionList[mail.List](a, "poll-messages", wire.PollMessages{Actor: actor, Limit: offeredMail}).Messages {
			offered = append(offered, cobra.CompletionWithDesc(strconv.FormatInt(m.Seq, 10), term.OneLine(m.From)+"  "+term.OneLine(m.Topic)))
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	})
}

// offeredMail is the maximum number of messages offered for completion.
const offeredMail = 30

func busPresenceCommand(a *cli.App) *cobra.Command {
	return cli.Query[mail.ActorList]{
		Operation: "list-actors",
		Quiet: func(list *mail.ActorList) error {
			return cli.PrintNames(a, list.Actors, func(v *mail.ActorView) string { return v.Actor })
		},
		Text: func(list *mail.ActorList) error {
			return a.Print("%s", term.Table(actorRows(list.Actors, a.Paint(a.Stdout), time.Now())))
		},
	}.Command(a, &cobra.Command{
		Use:   "presence",
		Short: "List actors and their presence",
		Long: `Lists the actors: agent, status, last sign of life, last heartbeat, cursor and the
latest direct message. A stale actor has missed its heartbeat. A quiet actor has never
announced heartbeats.`,
		Example: "  orchestrator bus presence\n  orchestrator bus presence -q         only the ids\n  orchestrator bus presence --json",
	})
}

func actorRows(actors []mail.ActorView, p term.Paint, now time.Time) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("ACTOR"), term.Text("AGENT"), term.Text("STATUS"), term.Text("SEEN"), term.Text("HEARTBEAT"), term.Figure("CURSOR"), term.Figure("LATEST")}}
	for i := range actors {
		rows = append(rows, actorRow(&actors[i], p, now))
	}
	return rows
}

func actorRow(v *mail.ActorView, p term.Paint, now time.Time) []term.Cell {
	latest := "-"
	if v.Latest != 0 {
		latest = strconv.FormatInt(v.Latest, 10)
	}
	unread := term.Figure(latest)
	if v.Latest > v.Cursor {
		unread.Ink = p.Strong
	}
	ink := func(s string) string { return actor(p, v.Status, s) }
	return []term.Cell{
		term.Text(term.OneLine(v.Actor)), term.Text(cmp.Or(term.OneLine(v.Agent), "-")), {Text: term.OneLine(v.Status), Ink: ink},
		term.Text(term.Ago(v.LastSeen, now)), term.Text(term.Ago(v.LastBeat, now)), term.Figure(strconv.FormatInt(v.Cursor, 10)), unread,
	}
}

// actor paints a text in the color of an actor's status.
func actor(p term.Paint, status, text string) string {
	switch status {
	case mail.ActorActive:
		return p.Good(text)
	case mail.ActorStale:
		return p.Warn(text)
	case mail.ActorOffline:
		return p.Dim(text)
	}
	return text
}

func busTopicsCommand(a *cli.App) *cobra.Command {
	return cli.Query[mail.TopicList]{
		Operation: "list-topics",
		Quiet: func(list *mail.TopicList) error {
			return cli.PrintNames(a, list.Topics, func(v *mail.TopicView) string { return v.Topic })
		},
		Text: func(list *mail.TopicList) error {
			return a.Print("%s", term.Table(topicRows(list.Topics, a.Paint(a.Stdout))))
		},
	}.Command(a, &cobra.Command{
		Use:   "topics",
		Short: "List the topics of messages",
		Long: `Lists the topics: the known ones, with their senders and addressees, and those of the
configuration. A message on another topic is also delivered, and GO receives a warning.`,
		Example: "  orchestrator bus topics\n  orchestrator bus topics -q",
	})
}

func topicRows(topics []mail.TopicView, p term.Paint) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("TOPIC"), term.Text("FROM"), term.Text("TO"), term.Text("ABOUT")}}
	for i := range topics {
		v := &topics[i]
		rows = append(rows, []term.Cell{
			{Text: term.OneLine(v.Topic), Ink: p.Strong}, term.Text(cmp.Or(term.OneLine(v.From), "any")), term.Text(cmp.Or(term.OneLine(v.To), "any")), term.Text(topicWords(v)),
		})
	}
	return rows
}

// topicWords returns the summary of a topic.
func topicWords(v *mail.TopicView) string {
	if !v.Standard {
		return cmp.Or(term.OneLine(v.Summary), "of the configuration")
	}
	return term.OneLine(v.Summary)
}
