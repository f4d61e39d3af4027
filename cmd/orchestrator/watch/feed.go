package watch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// feed hears of an orchestrator and tells the model. What is asked is asked again
// when the stream of events says that it is another, and now and then besides; what
// takes the orchestrator long is asked for less often.
type feed struct {
	of    Orchestrator
	news  chan tea.Msg
	group sync.WaitGroup // all goroutines of the feed

	begun   func(work func(ctx context.Context)) // starts one of them
	changed atomic.Uint32                        // what events were about: bits, as below
	wake    chan struct{}
}

const (
	aboutAgents uint32 = 1 << iota
	aboutTasks
	aboutQuestions
	aboutAll = aboutAgents | aboutTasks | aboutQuestions
)

func newFeed(o Orchestrator) *feed {
	return &feed{of: o, news: make(chan tea.Msg), wake: make(chan struct{}, 1)}
}

// begin starts to ask and to listen, until ctx is over. The goroutines that are
// started here and later end with ctx, and are in the group.
func (f *feed) begin(ctx context.Context) {
	f.begun = func(work func(ctx context.Context)) { f.group.Go(func() { work(ctx) }) }
	f.begun(func(ctx context.Context) { f.ask(ctx) })
	f.begun(f.tick)
}

// tell tells the model, unless everything is over.
func (f *feed) tell(ctx context.Context, news tea.Msg) {
	select {
	case f.news <- news:
	case <-ctx.Done():
	}
}

// listen waits for the next news, as a command of the program.
func (f *feed) listen(done <-chan struct{}) tea.Cmd {
	return func() tea.Msg {
		select {
		case news := <-f.news:
			return news
		case <-done:
			return nil
		}
	}
}

func (f *feed) tick(ctx context.Context) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		select {
		case now := <-each.C:
			f.tell(ctx, tickNews{now: now})
		case <-ctx.Done():
			return
		}
	}
}

const (
	// soonest is how soon something is asked again after events were about it.
	soonest = 300 * time.Millisecond
	// share is how much of the time may be spent on one question: one part of so
	// many. One long answer, as of an orchestrator that stood still for a while, is
	// no reason to look away for minutes.
	share, longest = 10, 15 * time.Second
	// patience is how long an answer may take before the orchestrator counts as one
	// that does not answer.
	patience = 10 * time.Second
	// latest is how long the next attempt to reach one that is lost may be away.
	latest = 2 * time.Second
)

// inquiry is something that is asked again and again.
type inquiry struct {
	about uint32
	every time.Duration // also when nothing is heard of it
	ask   func(ctx context.Context) error
	asked time.Time
	took  time.Duration
	stale bool
}

// due is when it is to be asked next.
func (q *inquiry) due() time.Time {
	wait := q.every
	if q.stale {
		wait = soonest
	}
	return q.asked.Add(max(wait, min(longest, share*q.took)))
}

// conversation is what is asked of one orchestrator, from when it was reached until
// it is lost.
type conversation struct {
	*feed
	status    wire.Status
	inquiries []*inquiry
	listening bool
	over      chan struct{} // the stream of events has ended
}

// ask asks whatever is due, until ctx is over. One that is lost is tried again, at
// first soon and then every few seconds.
func (f *feed) ask(ctx context.Context) {
	pause := soonest
	for ctx.Err() == nil {
		heard, err := f.converse(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			pause = soonest
		}
		f.tell(ctx, lostNews{why: err})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(latest, 2*pause)
	}
}

// converse asks until something goes wrong with that; heard reports whether it was
// reached at all.
func (f *feed) converse(ctx context.Context) (heard bool, err error) {
	c := &conversation{feed: f, over: make(chan struct{}, 1)}
	within, end := context.WithCancel(ctx)
	defer end()
	c.inquiries = []*inquiry{
		{about: aboutAgents | aboutTasks, every: time.Second, ask: c.askStatus},
		{about: aboutTasks, every: 15 * time.Second, ask: c.askTasks},
		{about: aboutQuestions, every: 5 * time.Second, ask: c.askQuestions},
	}
	for {
		for _, q := range c.inquiries {
			if q.asked.IsZero() || !time.Now().Before(q.due()) {
				began := time.Now()
				q.stale = false
				if err := q.ask(within); err != nil {
					return heard, err
				}
				heard = true
				q.asked, q.took = time.Now(), time.Since(began)
			}
		}
		if err := c.rest(ctx); err != nil {
			return heard, err
		}
	}
}

// rest waits until something is due.
func (c *conversation) rest(ctx context.Context) error {
	next := c.inquiries[0].due()
	for _, q := range c.inquiries {
		if q.due().Before(next) {
			next = q.due()
		}
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.wake:
		changed := c.changed.Swap(0)
		for _, q := range c.inquiries {
			q.stale = q.stale || q.about&changed != 0
		}
	case <-c.over: // whether it is still there is what status says, however long it took last
		c.listening, c.inquiries[0].stale, c.inquiries[0].took = false, true, 0
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (c *conversation) askStatus(ctx context.Context) error {
	began := time.Now()
	status, err := answer[wire.Status](ctx, c.of, "status", struct{}{})
	if err != nil {
		return err
	}
	if c.status.StartedAt != status.StartedAt { // it is another one by now
		c.note(aboutAll)
	}
	c.status = status
	if !c.listening {
		c.listening = true
		c.begun(func(context.Context) { c.events(ctx, status.Seq) })
	}
	c.tell(ctx, statusNews{status: status, took: time.Since(began)})
	return nil
}

func (c *conversation) askQuestions(ctx context.Context) error {
	list, err := answer[wire.QuestionList](ctx, c.of, "list-questions", struct{}{})
	if err == nil {
		c.tell(ctx, questionsNews{questions: list.Questions})
	}
	return err
}

// mostTasks is how many tasks are asked for as a whole. Of more than that those that
// have not ended are, so many of each state.
const mostTasks = 10_000

func (c *conversation) askTasks(ctx context.Context) error {
	counts := counted(c.status.Tasks)
	total := 0
	for _, count := range counts {
		total += count.n
	}
	if total <= mostTasks {
		list, err := answer[wire.TaskList](ctx, c.of, "query-tasks", wire.QueryTasks{Limit: mostTasks})
		if err == nil {
			c.tell(ctx, tasksNews{tasks: list.Tasks, left: max(0, total-len(list.Tasks))})
		}
		return err
	}
	var tasks []wire.Task
	for _, count := range counts {
		if count.n == 0 || count.state == wire.TaskDone || count.state == wire.TaskCancelled {
			continue
		}
		list, err := answer[wire.TaskList](ctx, c.of, "query-tasks", wire.QueryTasks{Status: string(count.state), Limit: mostTasks / 10})
		if err != nil {
			return err
		}
		for _, t := range list.Tasks { // "running" is also the name of several states
			if t.State == count.state {
				tasks = append(tasks, t)
			}
		}
	}
	c.tell(ctx, tasksNews{tasks: tasks, left: max(0, total-len(tasks))})
	return nil
}

// events listens to what happens, and notes what it is about.
func (c *conversation) events(ctx context.Context, since int64) {
	defer func() { c.over <- struct{}{} }() // there is room: one listens at a time
	query := url.Values{"follow": {"true"}, "since": {strconv.FormatInt(since, 10)}}
	for line, err := range c.of.Follow(ctx, "events", query) {
		if err != nil {
			return
		}
		event, err := decode[struct {
			Kind string `json:"kind"`
		}](line)
		if err != nil {
			return
		}
		c.note(subjectOf(event.Kind))
	}
}

// note says that something has changed.
func (f *feed) note(about uint32) {
	if about == 0 {
		return
	}
	f.changed.Or(about)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// subjectOf is what an event is about.
func subjectOf(kind string) uint32 {
	family, _, _ := strings.Cut(kind, ".")
	switch family {
	case "task", "dependency", "session", "review":
		return aboutTasks
	case "question":
		return aboutQuestions | aboutTasks
	case "agent":
		return aboutAgents
	case "message", "actor":
		return 0
	}
	return aboutAll
}

var errSilent = errors.New("it does not answer")

// answer asks an operation and reads what it answers.
func answer[T any](ctx context.Context, o Orchestrator, operation string, request any) (T, error) {
	within, end := context.WithTimeoutCause(ctx, patience, errSilent)
	defer end()
	text, err := o.Ask(within, operation, request)
	if err != nil {
		var none T
		if ctx.Err() == nil && within.Err() != nil {
			err = errSilent
		}
		return none, err
	}
	return decode[T](text)
}

func decode[T any](text []byte) (T, error) {
	var document T
	if err := object.DecodeOwn(text, &document); err != nil {
		return document, fmt.Errorf("reading what the orchestrator says: %w", err)
	}
	return document, nil
}

// count is how many tasks are in a state.
type count struct {
	state wire.TaskState
	n     int
}

func counted(n wire.TaskCounts) []count {
	return []count{
		{wire.TaskNeedsHuman, n.NeedsHuman}, {wire.TaskPlanReview, n.PlanReview}, {wire.TaskRunning, n.Running},
		{wire.TaskInReview, n.InReview}, {wire.TaskPlanning, n.Planning}, {wire.TaskAssigned, n.Assigned},
		{wire.TaskPending, n.Pending}, {wire.TaskFailed, n.Failed}, {wire.TaskDone, n.Done}, {wire.TaskCancelled, n.Cancelled},
	}
}
