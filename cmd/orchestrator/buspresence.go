package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) busPresenceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "presence",
		Short: "List actors and their presence",
		Long: `Lists the actors: which agent each of them is, if it is one that runs here or has
registered, whether it is there, when it was last heard of, when its last
heartbeat came, up to which message it has read, and which is the last to it
alone. One that is stale has kept its heartbeat back for too long; one that is
quiet has never promised any.`,
		Example:           "  orchestrator bus presence\n  orchestrator bus presence -q         ids alone\n  orchestrator bus presence --json",
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.presence() },
	}
}

func (a *app) presence() error {
	return a.speak(func(ctx context.Context, d *client) error {
		raw, err := a.ask(ctx, d, "list-actors", struct{}{})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.answer(raw)
		}
		list, err := decode[wire.ActorList](raw)
		switch {
		case err != nil:
			return err
		case a.flags.quiet:
			return printNames(a, list.Actors, func(v *wire.ActorView) string { return v.Actor })
		}
		p, now := a.paint(a.stdout), time.Now()
		rows := [][]cell{{text("ACTOR"), text("AGENT"), text("STATUS"), text("SEEN"), text("HEARTBEAT"), figure("CURSOR"), figure("LATEST")}}
		for i := range list.Actors {
			rows = append(rows, actorRow(&list.Actors[i], p, now))
		}
		return a.print("%s", table(rows))
	})
}

func actorRow(v *wire.ActorView, p paint, now time.Time) []cell {
	latest := "-"
	if v.Latest != 0 {
		latest = strconv.FormatInt(v.Latest, 10)
	}
	unread := figure(latest)
	if v.Latest > v.Cursor {
		unread.ink = p.strong
	}
	ink := func(s string) string { return p.actor(v.Status, s) }
	return []cell{
		text(plain.OneLine(v.Actor)), text(cmp.Or(plain.OneLine(v.Agent), "-")), {text: plain.OneLine(v.Status), ink: ink},
		text(ago(v.LastSeen, now)), text(ago(v.LastBeat, now)), figure(strconv.FormatInt(v.Cursor, 10)), unread,
	}
}

// actor is the colour of what an actor is.
func (p paint) actor(status, text string) string {
	switch status {
	case wire.ActorActive:
		return p.good(text)
	case wire.ActorStale:
		return p.warn(text)
	case wire.ActorOffline:
		return p.dim(text)
	}
	return text
}

// ago is how long something is over.
func ago(stamp string, now time.Time) string {
	passed, ok := between(stamp, wire.Timestamp(now))
	if !ok {
		return "-"
	}
	return plain.Duration(max(0, passed)) + " ago"
}

func (a *app) busTopicsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "topics",
		Short: "List the topics of messages",
		Long: `Lists the topics: the known ones, with their senders and addressees, and
those of the configuration. A message on another topic is sent too, and GO is told
that it is unknown.`,
		Example:           "  orchestrator bus topics\n  orchestrator bus topics -q",
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.topics() },
	}
}

func (a *app) topics() error {
	return a.speak(func(ctx context.Context, d *client) error {
		raw, err := a.ask(ctx, d, "list-topics", struct{}{})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.answer(raw)
		}
		list, err := decode[wire.TopicList](raw)
		switch {
		case err != nil:
			return err
		case a.flags.quiet:
			return printNames(a, list.Topics, func(v *wire.TopicView) string { return v.Topic })
		}
		return a.print("%s", table(topicRows(list.Topics, a.paint(a.stdout))))
	})
}

func topicRows(topics []wire.TopicView, p paint) [][]cell {
	rows := [][]cell{{text("TOPIC"), text("FROM"), text("TO"), text("ABOUT")}}
	for i := range topics {
		v := &topics[i]
		rows = append(rows, []cell{
			{text: plain.OneLine(v.Topic), ink: p.strong}, text(cmp.Or(plain.OneLine(v.From), "any")), text(cmp.Or(plain.OneLine(v.To), "any")), text(topicWords(v)),
		})
	}
	return rows
}

// topicWords say what a topic is about.
func topicWords(v *wire.TopicView) string {
	if !v.Standard {
		return cmp.Or(plain.OneLine(v.Summary), "of the configuration")
	}
	return plain.OneLine(v.Summary)
}
