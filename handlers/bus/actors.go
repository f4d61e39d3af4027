package bus

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// An Actor has mail. Most actors have an Owner. An actor without an Owner is a program on another
// machine.
type Actor[Owner any] struct {
	Stored
	Agent *Owner // nil: none here
}

// Stored is the part of an Actor that a snapshot copies.
type Stored struct {
	ID     string    `json:"actor"`
	Number int64     `json:"number"`          // from 1, in the order of their introduction
	Since  int64     `json:"since,omitzero"`  // number of the record that introduced it
	OfRun  bool      `json:"of_run,omitzero"` // it exists only for one run of its agent
	Cursor int64     `json:"cursor,omitzero"` // the last message that it acked
	Latest int64     `json:"latest,omitzero"` // the last that was sent only to it
	Seen   time.Time `json:"seen,omitzero"`   // its last sign of life
	Beat   time.Time `json:"beat,omitzero"`   // its heartbeat, or when it was first expected
	Beats  bool      `json:"beats,omitzero"`  // there was one
	Due    bool      `json:"due,omitzero"`    // the next one is expected
	Stale  bool      `json:"stale,omitzero"`  // its heartbeat is overdue, and GO was notified
}

// Date implements queue.Timed. It returns the time of the last heartbeat.
func (a *Actor[Owner]) Date() (time.Time, int64) { return a.Beat, a.Number }

// A Directory holds the actors that have mail.
type Directory[Owner any] struct {
	Keys Keys // of their messages

	byID  map[string]*Actor[Owner]
	order []*Actor[Owner] // in the order of their introduction
	met   int64           // so far
	due   queue.Timeline[*Actor[Owner]]
}

// NewDirectory returns a Directory with only GO in it.
func NewDirectory[Owner any]() Directory[Owner] {
	d := Directory[Owner]{byID: make(map[string]*Actor[Owner]), Keys: NewKeys(0)}
	d.Enter(mail.Global, 0)
	return d
}

// Actor returns the actor with an id, or nil.
func (d *Directory[Owner]) Actor(id string) *Actor[Owner] { return d.byID[id] }

// All returns all actors, in the order of their introduction.
func (d *Directory[Owner]) All() []*Actor[Owner] { return d.order }

// Met returns the number of actors so far.
func (d *Directory[Owner]) Met() int64 { return d.met }

// Expected returns the actors with an expected heartbeat, the oldest heartbeat first.
func (d *Directory[Owner]) Expected() queue.Timeline[*Actor[Owner]] { return d.due }

// Enter returns the actor with an id, and adds it if it is new.
func (d *Directory[Owner]) Enter(id string, seq int64) *Actor[Owner] {
	a := d.byID[id]
	if a == nil {
		d.met++
		a = &Actor[Owner]{Stored: Stored{ID: id, Number: d.met, Since: seq}}
		d.byID[id] = a
		d.order = append(d.order, a)
	}
	return a
}

// Restore replaces all actors. It reports false if they cannot be the actors of a Directory.
func (d *Directory[Owner]) Restore(all []*Actor[Owner], met int64) bool {
	d.byID, d.order, d.met, d.due = make(map[string]*Actor[Owner], len(all)), all, met, nil
	for _, a := range all {
		if d.byID[a.ID] != nil || a.Number > met {
			return false
		}
		d.byID[a.ID] = a
		if a.Due {
			d.due.Add(a)
		}
	}
	return d.byID[mail.Global] != nil
}

// Leave removes an actor.
func (d *Directory[Owner]) Leave(a *Actor[Owner]) {
	d.Unwatch(a)
	delete(d.byID, a.ID)
	d.order = slices.DeleteFunc(d.order, func(o *Actor[Owner]) bool { return o == a })
}

// Watch expects a heartbeat of an actor. The last heartbeat was at the given time. No heartbeat of
// a stale actor is expected until one arrives.
func (d *Directory[Owner]) Watch(a *Actor[Owner], at time.Time) {
	d.Unwatch(a)
	a.Beat, a.Due = at, true
	d.due.Add(a)
}

// Unwatch expects it no more.
func (d *Directory[Owner]) Unwatch(a *Actor[Owner]) {
	if a.Due {
		d.due.Drop(a)
		a.Due = false
	}
}

// Beat records a heartbeat. If the actor does not run, the heartbeat is late and no further one
// is expected.
func (d *Directory[Owner]) Beat(a *Actor[Owner], at time.Time, runs bool) {
	d.Unwatch(a)
	a.Seen, a.Beat, a.Beats = at, at, true
	if runs {
		d.Watch(a, at)
	}
}

// Arrived records that an actor has new mail.
func (d *Directory[Owner]) Arrived(r *wire.Record) {
	if to := d.byID[r.To]; to != nil && r.IsMail() {
		to.Latest = r.Seq
	}
}

// Remote reports whether an actor is known and has no owner here.
func (d *Directory[Owner]) Remote(id string) bool {
	a := d.byID[id]
	return a != nil && a.Agent == nil
}

// Drop handles the loss of the last token of an external actor. Its heartbeat is no longer
// expected. A short-lived actor is removed.
func (d *Directory[Owner]) Drop(id string) {
	a := d.byID[id]
	d.Unwatch(a)
	if mail.Passing(id) && !a.Stale {
		d.Leave(a)
	}
}

// Check returns an error if an actor is not in its place. It is for tests.
func (d *Directory[Owner]) Check() error {
	due, number := 0, int64(0)
	for _, a := range d.order {
		switch {
		case d.byID[a.ID] != a:
			return fmt.Errorf("%s is there twice", a.ID)
		case a.Number <= number || a.Number > d.met:
			return fmt.Errorf("%s became known before the one in front of it", a.ID)
		case a.Stale && a.Due:
			return fmt.Errorf("%s is missed and expected", a.ID)
		case a.Due && !slices.Contains(d.due, a):
			return fmt.Errorf("%s is expected, and not in the list", a.ID)
		}
		if number = a.Number; a.Due {
			due++
		}
	}
	if len(d.byID) != len(d.order) || due != len(d.due) || d.byID[mail.Global] == nil {
		return fmt.Errorf("%d actors have an id, %d an order, %d a heartbeat", len(d.byID), len(d.order), len(d.due))
	}
	if !slices.IsSortedFunc(d.due, queue.CompareTimes[*Actor[Owner]]) {
		return errors.New("the heartbeats are not in order")
	}
	return d.Keys.Check()
}

// The senders and recipients of a topic, where they are limited.
const (
	anyActor   = "any"
	busActors  = "Bus, Governor"
	globalOnly = mail.Global
)

// topics are the topics that always exist. The last one is for the warning about an
// unknown topic, which would otherwise cause another such warning.
var topics = []mail.TopicView{
	{Topic: mail.TopicTaskAssigned, From: globalOnly, To: anyActor, Summary: "A task is assigned to an actor"},
	{Topic: mail.TopicTaskCompleted, From: anyActor, To: globalOnly, Summary: "A task is done"},
	{Topic: mail.TopicTaskFailed, From: anyActor, To: globalOnly, Summary: "A task failed, or a message could not be processed"},
	{Topic: mail.TopicTaskProgress, From: anyActor, To: globalOnly, Summary: "A task reports progress"},
	{Topic: mail.TopicAgentSpawned, From: globalOnly, To: globalOnly, Summary: "An agent has started"},
	{Topic: mail.TopicAgentTerminated, From: anyActor, To: globalOnly, Summary: "An agent has ended normally"},
	{Topic: mail.TopicAlertFired, From: busActors, To: globalOnly, Summary: "An alert starts"},
	{Topic: mail.TopicAlertResolved, From: busActors, To: globalOnly, Summary: "An alert ends"},
	{Topic: mail.TopicHeartbeat, From: anyActor, To: mail.Bus, Summary: "The sender is present"},
	{Topic: mail.TopicDirect, From: anyActor, To: anyActor, Summary: "A message from one actor to another"},
	{Topic: mail.TopicBroadcast, From: globalOnly, To: mail.Broadcast, Summary: "An urgent message to all actors"},
	{Topic: mail.TopicUnknown, From: mail.Bus, To: globalOnly, Summary: "An actor has used an unregistered topic"},
}

// Topics returns the topics that always exist.
func Topics() []mail.TopicView { return slices.Clone(topics) }

// Topic returns a standard topic, or nil.
func Topic(topic string) *mail.TopicView {
	i := slices.IndexFunc(topics, func(v mail.TopicView) bool { return v.Topic == topic })
	if i < 0 {
		return nil
	}
	return &topics[i]
}

// Misdirected returns a warning if the sender or the recipient does not fit the topic, or "".
// The message is still accepted.
func Misdirected(from string, m *wire.SendMessage) string {
	v := Topic(m.Topic)
	if v == nil {
		return ""
	}
	fits := func(id, who string) bool {
		return who == anyActor || who == id || who == busActors && (id == mail.Bus || id == mail.Governor)
	}
	switch {
	case !fits(from, v.From):
		return fmt.Sprintf("%s is for %s to send, and this is from %s", m.Topic, v.From, from)
	case !fits(m.To, v.To) && m.To != mail.Broadcast:
		return fmt.Sprintf("%s is for %s, and this is to %s", m.Topic, v.To, m.To)
	}
	return ""
}
