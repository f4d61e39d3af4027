// Package notify notifies people of events of a team: by the terminal, by a command and by a webhook.
//
// A [Notifier] reads the events of the team. Each of its goroutines has a place in the events, so a slow receiver takes
// no memory. The place of the webhook is written to a file, and the next program goes on behind it. A message that
// cannot be delivered is kept in a file of dead letters.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Options configure a Notifier.
type Options struct {
	Team     string
	On       []string      // question, failed, done, budget
	From, To time.Duration // the quiet hours of a day, since midnight; equal: no quiet hours
	Dir      string        // for the files of a Notifier

	// Command notifies a person with a text. The document is the message for programs. Command is nil if none is
	// configured.
	Command func(ctx context.Context, text string, document []byte) error
	URL     string // of the webhook; "" without one. It may be secret
	Key     string // signs messages to the webhook; may be ""

	Latest int64 // the number of the last event: later ones cause messages
	Told   int64 // Notifier.Told of the Notifier before this one; 0: Latest
	// Events sends events after a number, and later ones until the context ends.
	Events func(ctx context.Context, since int64, send func(wire.Event) error) error
	Log    hclog.Logger
}

// A Message is the body of a request to the webhook.
type Message struct {
	FormatVersion string `json:"format_version"`
	ID            string `json:"id"` // the same with each attempt
	Team          string `json:"team"`
	On            string `json:"on"` // question, failed, done or budget
	Kind          string `json:"kind"`
	At            string `json:"at"`
	Seq           int64  `json:"seq"`
	Agent         string `json:"agent,omitzero"`
	Task          string `json:"task,omitzero"`
	Text          string `json:"text"` // for people
}

// A Notifier notifies people of events, until Close.
type Notifier struct {
	options Options
	told    atomic.Int64 // the last event that the command has got, or does not need
	waiting atomic.Int64 // messages that wait for the command
	stop    context.CancelFunc
	group   sync.WaitGroup
}

// Start starts a Notifier.
func Start(o Options) *Notifier {
	ctx, stop := context.WithCancel(context.Background())
	n := &Notifier{options: o, stop: stop}
	if o.Command != nil {
		n.told.Store(cmp.Or(o.Told, o.Latest))
		n.group.Go(func() { n.follow(ctx, n.told.Load(), n.command(ctx)) })
	}
	if o.URL != "" {
		n.group.Go(func() { n.follow(ctx, n.place(), n.hook(ctx)) })
	}
	return n
}

// Close ends a Notifier. It does not wait for the receiver of a webhook.
func (n *Notifier) Close() {
	n.stop()
	n.group.Wait()
}

// Told returns the number of the last event that the command has got, for Options.Told of the next Notifier. It is 0
// without a command.
func (n *Notifier) Told() int64 { return n.told.Load() }

func (n *Notifier) follow(ctx context.Context, since int64, tell func(wire.Event) error) {
	if err := n.options.Events(ctx, since, tell); err != nil && ctx.Err() == nil {
		n.options.Log.Error("notifications are no longer sent", "error", err)
	}
}

// errEnded ends a follower.
var errEnded = errors.New("the notifier ends")

// On returns the word of Options.On that covers an event, or "".
func On(e *wire.Event) string {
	switch e.Kind {
	case events.QuestionAsked, events.TaskHelpWanted, events.ReviewEscalated:
		return "question"
	case events.TaskFailed, events.TaskUnmerged, events.AgentGaveUp, events.SessionTrouble:
		return "failed"
	case events.TaskDone:
		return "done"
	case events.AgentLimited, events.AgentBudget:
		return "budget"
	}
	return ""
}

// Text returns a line about an event for people. It begins with a word of the orchestrator, not of an agent.
func Text(e *wire.Event) string {
	begin := map[string]string{"question": "Question", "failed": "Failed", "done": "Done", "budget": "Limit"}[On(e)]
	if e.Agent != "" {
		begin += ", " + e.Agent
	}
	const longest = 300
	text := []rune(wire.Visible(begin + ": " + strings.Join(strings.Fields(e.Text), " ")))
	if len(text) > longest {
		return string(text[:longest-1]) + "…"
	}
	return string(text)
}

// message returns the message about an event, or nil if Options.On leaves it out.
func (n *Notifier) message(e *wire.Event) *Message {
	on := On(e)
	if !slices.Contains(n.options.On, on) {
		return nil
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s %s %d", n.options.Team, e.At, e.Seq))
	return &Message{
		FormatVersion: wire.FormatVersion, ID: id.String(), Team: n.options.Team, On: on, Kind: e.Kind, At: e.At, Seq: e.Seq,
		Agent: e.Agent, Task: e.Task, Text: Text(e),
	}
}

// Quiet returns the end of the quiet hours that contain a time, or the zero time if none do.
func Quiet(now time.Time, from, to time.Duration) time.Time {
	if from == to {
		return time.Time{}
	}
	clock := func(day int, d time.Duration) time.Time { // not Add: a day may have 23 or 25 hours
		return time.Date(now.Year(), now.Month(), now.Day()+day, int(d/time.Hour), int(d%time.Hour/time.Minute), 0, 0, now.Location())
	}
	length := 0
	if to < from {
		length = 1
	}
	for day := -length; day <= 0; day++ {
		if begin, end := clock(day, from), clock(day+length, to); !now.Before(begin) && now.Before(end) {
			return end
		}
	}
	return time.Time{}
}

// await waits until the quiet hours are over.
func (n *Notifier) await(ctx context.Context) error {
	for {
		end := Quiet(time.Now(), n.options.From, n.options.To)
		if end.IsZero() {
			return nil
		}
		if err := pause(ctx, min(time.Until(end), time.Minute)); err != nil { // the clock may be set
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
		return nil
	case <-ctx.Done():
		return errEnded
	}
}

// command runs the command for events. Events of the quiet hours, or of the time while the command ran, become one
// message: a person reads one text, not a hundred.
func (n *Notifier) command(ctx context.Context) func(wire.Event) error {
	missed := make(chan *Message, 1000)
	n.group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-missed:
				if n.await(ctx) == nil {
					n.tell(ctx, m, missed)
				}
			}
		}
	})
	return func(e wire.Event) error {
		m := n.message(&e)
		if m == nil {
			if n.waiting.Load() == 0 {
				n.told.Store(max(n.told.Load(), e.Seq))
			}
			return nil
		}
		n.waiting.Add(1)
		select {
		case missed <- m:
		default:
			n.waiting.Add(-1)
			n.options.Log.Warn("a notification is dropped: too many are waiting for the command", "text", m.Text)
		}
		return nil
	}
}

// tell runs the command for a message and all waiting ones.
func (n *Notifier) tell(ctx context.Context, m *Message, missed <-chan *Message) {
	counts, last := map[string]int{m.On: 1}, m.Seq
	for {
		select {
		case next := <-missed:
			counts[next.On]++
			last = next.Seq
			continue
		default:
		}
		break
	}
	all := 0
	var words []string
	for _, on := range slices.Sorted(maps.Keys(counts)) {
		all += counts[on]
		words = append(words, fmt.Sprintf("%d %s", counts[on], on))
	}
	if all > 1 {
		m.Text = fmt.Sprintf("%s (and %d more: %s)", m.Text, all-1, strings.Join(words, ", "))
	}
	document, err := object.Encode(m)
	if err == nil {
		err = n.options.Command(ctx, m.Text, document)
	}
	if err != nil && ctx.Err() != nil {
		return // the next Notifier repeats it
	}
	if err != nil {
		n.options.Log.Warn("the command of notify has failed", "error", err)
	}
	n.told.Store(last)
	n.waiting.Add(int64(-all))
}
