package watch

import (
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

const (
	tabOverview = iota
	tabTasks
	tabAgents
	tabGraph
	tabInbox
	tabBus
	tabLog
	tabReviews
	tabTimeline
	tabCount
)

// model is the state of the screen.
type model struct {
	of   Orchestrator
	feed *feed
	done <-chan struct{} // closed when the screen has ended
	pen  pen

	width, height int
	now           time.Time
	tab           int
	focus         [tabCount]int    // index of the focused pane
	filter        [tabCount]string // text that visible rows contain

	status control.Status
	lost   time.Time // since when the orchestrator has not answered; zero if it does
	why    string    // why it does not answer
	tried  time.Time // time of the last answer

	agents    roster[control.AgentView]
	paces     map[string]*pace
	tasks     roster[wire.Task]
	unlisted  int // number of tasks not listed
	heard     bool
	questions roster[wire.Question]
	graph     graphView
	reviews   roster[reviewed]
	timeline  list
	bus       busView
	log       logView
	tail      tailView

	areas    []area // the parts of the screen that react to the mouse
	free     bool   // the mouse is left to the terminal
	bell     bool   // ring when a question comes
	ring     bool   // a question has come
	note     noteNews
	noted    time.Time
	line     *line // the line being typed, or nil
	choice   *choice
	answered string // id of the question that was answered last
	paper    *paper // the text that covers the screen, or nil
	help     bool
	past     []string // commands
	run      int      // commands so far
	giveUp   func()   // cancels the last command
	busy     string   // the running command
}

func newModel(o Orchestrator, f *feed, done <-chan struct{}, color bool) *model {
	m := &model{of: o, feed: f, done: done, pen: pen{color: term.Paint(color), theme: newTheme(true)}, now: time.Now(), paces: make(map[string]*pace)}
	m.log.follow = true
	m.bus.follow, m.bus.names = true, make(mail.Names)
	m.agents.id = func(v *control.AgentView) string { return v.Name }
	m.agents.words = func(v *control.AgentView) string {
		return strings.Join([]string{v.Name, string(v.State), v.Role, v.Reason, taskWords(v)}, " ")
	}
	m.tasks.id = func(t *wire.Task) string { return t.ID }
	m.tasks.words = func(t *wire.Task) string {
		return strings.Join([]string{t.ID, t.Name, string(t.State), t.AssignedTo}, " ")
	}
	m.questions.id = func(q *wire.Question) string { return q.ID }
	m.questions.words = func(q *wire.Question) string { return q.ID + " " + q.Agent + " " + q.Question }
	m.reviews.id = func(r *reviewed) string { return r.session + " " + r.task.TaskID }
	m.reviews.words = func(r *reviewed) string {
		return strings.Join([]string{r.session, r.task.TaskID, r.task.Name, r.task.Phase, r.task.Developer}, " ")
	}
	m.graph.rows.id = func(r *Row) string { return r.Task }
	m.graph.rows.words = func(r *Row) string { return r.Text }
	return m
}

// A roster is a list of rows. The rows that match the filter are visible. The selected row stays
// selected when the rows change.
type roster[T any] struct {
	list
	id    func(*T) string
	words func(*T) string
	all   []T
	seen  []*T
}

// set replaces the rows.
func (r *roster[T]) set(all []T, filter string) {
	r.all = all
	r.choose(filter)
}

func (r *roster[T]) choose(filter string) {
	before := r.picked()
	r.seen = r.seen[:0:0]
	filter = strings.ToLower(filter)
	at := -1
	for i := range r.all {
		if filter == "" || strings.Contains(strings.ToLower(r.words(&r.all[i])), filter) {
			if before != nil && r.id(before) == r.id(&r.all[i]) && (at < 0 || len(r.seen) == r.at) {
				at = len(r.seen)
			}
			r.seen = append(r.seen, &r.all[i])
		}
	}
	if at >= 0 {
		r.at = at
	}
	r.resize(len(r.seen))
}

// picked returns the selected row, or nil.
func (r *roster[T]) picked() *T {
	if r.at < len(r.seen) {
		return r.seen[r.at]
	}
	return nil
}

// pick selects a row by its id, and reports whether the row is visible.
func (r *roster[T]) pick(id string) bool {
	at := slices.IndexFunc(r.seen, func(one *T) bool { return r.id(one) == id })
	if at >= 0 {
		r.at = at
	}
	return at >= 0
}

// A pace is the output rate of an agent.
type pace struct {
	lines int64
	at    time.Time
	past  []float64 // lines a second
}

// maxPast is how many rates are kept, one a second.
const maxPast = 60

func (p *pace) heard(lines int64, now time.Time) {
	if !p.at.IsZero() {
		took := now.Sub(p.at).Seconds()
		if took < 0.5 {
			return // too short for a rate
		}
		p.past = append(p.past, max(0, float64(lines-p.lines)/took))
		p.past = p.past[max(0, len(p.past)-maxPast):]
	}
	p.lines, p.at = lines, now
}

// latest returns the latest rate, if one is known.
func (p *pace) latest() (figure float64, known bool) {
	if p == nil || len(p.past) == 0 {
		return 0, false
	}
	return p.past[len(p.past)-1], true
}

// byUrgency orders tasks: first tasks that wait for people, then active ones, then waiting ones,
// and last ended ones, the latest first.
func byUrgency(a, b wire.Task) int {
	if c := urgency(a.State) - urgency(b.State); c != 0 {
		return c
	}
	if a.State.Final() {
		return strings.Compare(b.EndedAt, a.EndedAt)
	}
	return 0
}

func urgency(s wire.TaskState) int {
	switch s {
	case wire.TaskNeedsHuman, wire.TaskPlanReview:
		return 0
	case wire.TaskRunning, wire.TaskInReview, wire.TaskVerifying, wire.TaskPlanning:
		return 1
	case wire.TaskAssigned, wire.TaskPending:
		return 2
	}
	return 3
}

// filtered returns the filter of the focused pane. The panes of the overview share the
// filters of their tabs.
func (m *model) filtered() *string {
	tab := m.tab
	if tab == tabOverview {
		if tab = tabAgents; m.focus[tabOverview] == 1 {
			tab = tabTasks
		}
	}
	if tab == tabTimeline {
		tab = tabTasks // it shows the same rows
	}
	return &m.filter[tab]
}

// refilter selects the visible rows after a change of a filter.
func (m *model) refilter() {
	m.agents.choose(m.filter[tabAgents])
	m.tasks.choose(m.filter[tabTasks])
	m.questions.choose(m.filter[tabInbox])
	m.graph.rows.choose(m.filter[tabGraph])
	m.reviews.choose(m.filter[tabReviews])
	m.bus.count(m.filter[tabBus])
	if m.tab == tabLog {
		m.followLog()
	}
}

// noteLasts is how long a note is shown.
const noteLasts = 10 * time.Second

func (m *model) say(note noteNews) { m.note, m.noted = note, time.Now() }

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return visible(text)
}

const (
	// smallestWidth and smallestHeight are the smallest screen that shows anything.
	smallestWidth, smallestHeight = 30, 8
	// A screen below narrow columns or low rows shows only one pane.
	narrow, low = 60, 16
)

// single reports whether there is room for only one pane, the focused one.
func (m *model) single() bool { return m.width < narrow || m.height < low }
