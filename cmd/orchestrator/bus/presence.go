package bus

import (
	"cmp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

func busPresenceCommand(a *cli.App) *cobra.Command {
	return cli.Query[wire.ActorList]{
		Operation: "list-actors",
		Quiet: func(list *wire.ActorList) error {
			return cli.PrintNames(a, list.Actors, func(v *wire.ActorView) string { return v.Actor })
		},
		Text: func(list *wire.ActorList) error {
			return a.Print("%s", term.Table(actorRows(list.Actors, a.Paint(a.Stdout), time.Now())))
		},
	}.Command(a, &cobra.Command{
		Use:   "presence",
		Short: "List actors and their presence",
		Long: `Lists the actors: agent, status, last sign of life, last heartbeat, cursor and the
latest direct message. A stale actor has missed its heartbeat. A quiet actor has never
announced heartbeats.`,
		Example: "  orchestrator bus presence\n  orchestrator bus presence -q         ids alone\n  orchestrator bus presence --json",
	})
}

func actorRows(actors []wire.ActorView, p term.Paint, now time.Time) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("ACTOR"), term.Text("AGENT"), term.Text("STATUS"), term.Text("SEEN"), term.Text("HEARTBEAT"), term.Figure("CURSOR"), term.Figure("LATEST")}}
	for i := range actors {
		rows = append(rows, actorRow(&actors[i], p, now))
	}
	return rows
}

func actorRow(v *wire.ActorView, p term.Paint, now time.Time) []term.Cell {
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
	case wire.ActorActive:
		return p.Good(text)
	case wire.ActorStale:
		return p.Warn(text)
	case wire.ActorOffline:
		return p.Dim(text)
	}
	return text
}

func busTopicsCommand(a *cli.App) *cobra.Command {
	return cli.Query[wire.TopicList]{
		Operation: "list-topics",
		Quiet: func(list *wire.TopicList) error {
			return cli.PrintNames(a, list.Topics, func(v *wire.TopicView) string { return v.Topic })
		},
		Text: func(list *wire.TopicList) error {
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

func topicRows(topics []wire.TopicView, p term.Paint) [][]term.Cell {
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
func topicWords(v *wire.TopicView) string {
	if !v.Standard {
		return cmp.Or(term.OneLine(v.Summary), "of the configuration")
	}
	return term.OneLine(v.Summary)
}
