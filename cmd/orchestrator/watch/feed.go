package watch

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

// A feed reads from an orchestrator and sends news to the model. It asks again when an
// event reports a change, and at intervals. Slow answers are requested less often.
type feed struct {
	of    Orchestrator
	news  chan tea.Msg
	group sync.WaitGroup // all goroutines of the feed

	begun   func(work func(ctx context.Context)) // starts a goroutine of the group
	changed atomic.Uint32                        // subjects of events since the last question: the bits below
	wake    chan struct{}
}

const (
	aboutAgents uint32 = 1 << iota
	aboutTasks
	aboutQuestions
	aboutReviews
	aboutAll = aboutAgents | aboutTasks | aboutQuestions | aboutReviews
)

func newFeed(o Orchestrator) *feed {
	return &feed{of: o, news: make(chan tea.Msg), wake: make(chan struct{}, 1)}
}

// begin starts the feed. All its goroutines are in the group and end with ctx.
func (f *feed) begin(ctx context.Context) {
	f.begun = func(work func(ctx context.Context)) { f.group.Go(func() { work(ctx) }) }
	f.begun(func(ctx context.Context) { f.ask(ctx) })
	f.begun(f.tick)
}

// tell sends news to the model, unless ctx is done.
func (f *feed) tell(ctx context.Context, news tea.Msg) {
	select {
	case f.news <- news:
	case <-ctx.Done():
	}
}

// listen returns a command that waits for the next news.
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
	// soonest is how long after an event its subject is asked for again.
	soonest = 300 * time.Millisecond
	// share limits the time spent on one inquiry to a tenth, and longest limits the pause
	// that follows from it. One slow answer must not stop the updates for minutes.
	share, longest = 10, 15 * time.Second
	// patience is how long an answer may take before the orchestrator counts as lost.
	patience = 10 * time.Second
	// latest is the longest pause between attempts to reach a lost orchestrator.
	latest = 2 * time.Second
)

// An inquiry is a request that is repeated.
type inquiry struct {
	about uint32
	every time.Duration // interval without events about it
	ask   func(ctx context.Context) error
	asked time.Time
	took  time.Duration
	stale bool
}

// due returns when to ask next.
func (i *inquiry) due() time.Time {
	wait := i.every
	if i.stale {
		wait = soonest
	}
	return i.asked.Add(max(wait, min(longest, share*i.took)))
}

// A conversation is a connection to one orchestrator, until that is lost.
type conversation struct {
	*feed
	status    control.Status
	inquiries []*inquiry
	listening bool
	over      chan struct{} // receives when the stream of events has ended
}

// ask makes the inquiries that are due until ctx is done. It reconnects to a lost
// orchestrator, first soon and then every few seconds.
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

// converse makes inquiries until one fails. It reports whether the orchestrator answered.
func (f *feed) converse(ctx context.Context) (heard bool, err error) {
	c := &conversation{feed: f, over: make(chan struct{}, 1)}
	within, end := context.WithCancel(ctx)
	defer end()
	c.inquiries = []*inquiry{
		{about: aboutAgents | aboutTasks, every: time.Second, ask: c.askStatus},
		{about: aboutTasks, every: 15 * time.Second, ask: c.askTasks},
		{about: aboutQuestions, every: 5 * time.Second, ask: c.askQuestions},
		{about: aboutReviews, every: 30 * time.Second, ask: c.askReviews},
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

// rest waits until an inquiry is due.
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
	case <-c.over: // ask for the status at once: the orchestrator may be lost
		c.listening, c.inquiries[0].stale, c.inquiries[0].took = false, true, 0
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (c *conversation) askStatus(ctx context.Context) error {
	began := time.Now()
	status, err := answer[control.Status](ctx, c.of, "status", struct{}{})
	if err != nil {
		return err
	}
	if c.status.StartedAt != status.StartedAt { // the orchestrator was restarted
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

// maxTasks is how many tasks are listed at once. If there are more, only tasks that have
// not ended are listed, a limited number for each state.
const maxTasks = 10_000

func (c *conversation) askTasks(ctx context.Context) error {
	counts := counted(c.status.Tasks)
	total := 0
	for _, count := range counts {
		total += count.n
	}
	if total <= maxTasks {
		list, err := answer[wire.TaskList](ctx, c.of, "query-tasks", wire.QueryTasks{Limit: maxTasks})
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
		list, err := answer[wire.TaskList](ctx, c.of, "query-tasks", wire.QueryTasks{Status: string(count.state), Limit: maxTasks / 10})
		if err != nil {
			return err
		}
		for _, t := range list.Tasks { // "running" also selects several states
			if t.State == count.state {
				tasks = append(tasks, t)
			}
		}
	}
	c.tell(ctx, tasksNews{tasks: tasks, left: max(0, total-len(tasks))})
	return nil
}

// events follows the events and notes their subjects.
func (c *conversation) events(ctx context.Context, since int64) {
	defer func() { c.over <- struct{}{} }() // never blocks: one goroutine follows events at a time
	query := url.Values{"follow": {"true"}, "since": {strconv.FormatInt(since, 10)}}
	for line, err := range c.of.Follow(ctx, "events", query) {
		if err != nil {
			return
		}
		event, err := client.Decode[struct {
			Kind string `json:"kind"`
		}](line)
		if err != nil {
			return
		}
		c.note(subjectOf(event.Kind))
	}
}

// note records a change and wakes the feed.
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

// subjectOf returns the subject of a kind of event.
func subjectOf(kind string) uint32 {
	family, _, _ := strings.Cut(kind, ".")
	switch family {
	case "task", "dependency":
		return aboutTasks
	case "session", "review":
		return aboutTasks | aboutReviews
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

// answer calls an operation and decodes its answer.
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
	return client.Decode[T](text)
}

// A count is the number of tasks in a state.
type count struct {
	state wire.TaskState
	n     int
}

func counted(n control.TaskCounts) []count {
	return []count{
		{wire.TaskNeedsHuman, n.NeedsHuman}, {wire.TaskPlanReview, n.PlanReview}, {wire.TaskRunning, n.Running},
		{wire.TaskInReview, n.InReview}, {wire.TaskVerifying, n.Verifying}, {wire.TaskPlanning, n.Planning}, {wire.TaskAssigned, n.Assigned},
		{wire.TaskPending, n.Pending}, {wire.TaskFailed, n.Failed}, {wire.TaskDone, n.Done}, {wire.TaskCancelled, n.Cancelled},
	}
}

// Messages from the feed to the model.

// statusNews is the status of the orchestrator, with the duration of the request.
type statusNews struct {
	status control.Status
	took   time.Duration
}

// lostNews reports that the orchestrator does not answer.
type lostNews struct{ why error }

// tasksNews is a list of tasks; left is how many it omits.
type tasksNews struct {
	tasks []wire.Task
	left  int
}

// questionsNews is the list of open questions.
type questionsNews struct{ questions []wire.Question }

// topicsNews is the list of registered topics, and the names of actors.
type topicsNews struct {
	topics []mail.TopicView
	names  mail.Names
}

// logNews is a batch of output of an agent, or of all agents for "". It is for the tail
// pane, or else for the log. A fresh batch replaces the earlier lines.
type logNews struct {
	agent string
	tail  bool
	lines []control.LogLine
	fresh bool
	// denied is the reason why this person may not read it.
	denied string
}

// mailNews is a batch of messages. A fresh batch replaces the earlier ones.
type mailNews struct {
	mail   []mail.Message
	fresh  bool
	denied string // the reason why this person may not read them
}

// outputMsg is the output of a command.
type outputMsg struct {
	number int // of the command
	words  []string
	text   string
	exit   int
}

// noteNews is a sentence about an action.
type noteNews struct {
	text string
	bad  bool

	unanswered string // id of the question with a refused answer
}

// tickNews comes once a second to update the times.
type tickNews struct{ now time.Time }

// An Orchestrator is the access of the screen to the watched orchestrator. Its methods may be
// called concurrently, and return when their context is done.
type Orchestrator interface {
	// Ask calls an operation. Its errors are text for people.
	Ask(ctx context.Context, operation string, request any) ([]byte, error)
	// Follow yields the lines of a list and then new ones.
	Follow(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error]
	// Answer answers a question and returns a sentence on the effect.
	Answer(ctx context.Context, answer wire.AnswerQuestion) (string, error)
	// Run runs a command line without the program's name. It returns the output for a
	// screen of that width, and the exit code.
	Run(ctx context.Context, words []string, columns int) (text string, exit int)
	// Tree returns the rows of the dependency tree: of tasks that have not ended and their
	// neighbors, or of all. It also returns how many tasks were omitted.
	Tree(tasks []wire.Task, all bool) (rows []Row, left int)
}

// A Row is a row of a tree of tasks.
type Row struct {
	Task  string // its id
	State wire.TaskState
	Text  string // escaped for a terminal
}
