package watch

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"orchestrator/wire"
)

// The tabs.
const (
	tabOverview = iota
	tabTasks
	tabAgents
	tabGraph
	tabInbox
	tabBus
	tabLog
	tabCount
)

// model is all that is on the screen, and where the user is in it.
type model struct {
	of   Orchestrator
	feed *feed
	done <-chan struct{} // closed when the screen is gone
	pen  pen

	width, height int
	now           time.Time
	tab           int
	focus         [tabCount]int    // which pane has the keys
	filter        [tabCount]string // what has to be in a row

	status wire.Status
	lost   time.Time // since when there is no answer; zero: there is one
	why    string    // why not
	tried  time.Time // when it was heard of last

	agents    roster[wire.AgentView]
	paces     map[string]*pace
	tasks     roster[wire.Task]
	unlisted  int // tasks that were not asked for
	heard     bool
	questions roster[wire.Question]
	graph     graphView
	bus       busView
	log       logView
	tail      tailView

	note   noteNews
	noted  time.Time
	line   *line // what is being typed; nil: nothing
	choice *choice
	paper  *paper // what covers the screen; nil: nothing
	help   bool
	past   []string // commands
	run    int      // commands so far
	giveUp func()   // the last command
	busy   string   // what it is
}

func newModel(o Orchestrator, f *feed, done <-chan struct{}, color bool) *model {
	m := &model{of: o, feed: f, done: done, pen: pen{color: color}, now: time.Now(), paces: make(map[string]*pace)}
	m.log.follow = true
	m.bus.follow = true
	m.agents.id = func(v *wire.AgentView) string { return v.Name }
	m.agents.words = func(v *wire.AgentView) string {
		return strings.Join([]string{v.Name, string(v.State), v.Role, v.Reason, taskWords(v)}, " ")
	}
	m.tasks.id = func(t *wire.Task) string { return t.ID }
	m.tasks.words = func(t *wire.Task) string {
		return strings.Join([]string{t.ID, t.Name, string(t.State), t.AssignedTo}, " ")
	}
	m.questions.id = func(q *wire.Question) string { return q.ID }
	m.questions.words = func(q *wire.Question) string { return q.ID + " " + q.Agent + " " + q.Question }
	m.graph.rows.id = func(r *Row) string { return r.Task }
	m.graph.rows.words = func(r *Row) string { return r.Text }
	return m
}

// roster is rows of which some are seen: those that have the filter in their words.
// A picked one stays picked when the others change.
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

// picked is the row that is picked; nil when there is none.
func (r *roster[T]) picked() *T {
	if r.at < len(r.seen) {
		return r.seen[r.at]
	}
	return nil
}

// pick picks a row by its id.
func (r *roster[T]) pick(id string) bool {
	at := slices.IndexFunc(r.seen, func(one *T) bool { return r.id(one) == id })
	if at >= 0 {
		r.at = at
	}
	return at >= 0
}

// pace is how much an agent says.
type pace struct {
	lines int64
	at    time.Time
	past  []float64 // lines a second
}

// longestPast is how many figures are kept, one a second.
const longestPast = 60

func (p *pace) heard(lines int64, now time.Time) {
	if !p.at.IsZero() {
		took := now.Sub(p.at).Seconds()
		if took < 0.5 {
			return // it would be noise
		}
		p.past = append(p.past, max(0, float64(lines-p.lines)/took))
		p.past = p.past[max(0, len(p.past)-longestPast):]
	}
	p.lines, p.at = lines, now
}

// latest is the latest figure.
func (p *pace) latest() (figure float64, known bool) {
	if p == nil || len(p.past) == 0 {
		return 0, false
	}
	return p.past[len(p.past)-1], true
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.feed.listen(m.done) }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.followTail()
		return m, nil
	case tea.ModeReportMsg: // as the program does for itself
		if msg.Mode == ansi.ModeUnicodeCore && !msg.Value.IsNotRecognized() && !msg.Value.IsPermanentlyReset() {
			m.pen.width = ansi.GraphemeWidth
		}
		return m, nil
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		m.followTail()
		return m, cmd
	case tea.PasteMsg:
		if m.line != nil {
			m.line.insert(msg.Content)
			if m.line.typed != nil {
				m.line.typed(string(m.line.text))
			}
		}
		return m, nil
	}
	if m.hear(msg) {
		m.followTail()
		return m, m.feed.listen(m.done)
	}
	return m, nil
}

// hear takes news of the feed; false: they are none.
func (m *model) hear(msg tea.Msg) bool {
	switch news := msg.(type) {
	case tickNews:
		m.now = news.now
		if m.note.text != "" && m.now.Sub(m.noted) > noteLasts {
			m.note = noteNews{}
		}
	case statusNews:
		m.hearStatus(news)
	case lostNews:
		if m.lost.IsZero() {
			m.lost = m.tried
		}
		m.why = firstLine(news.why)
	case tasksNews:
		m.hearTasks(news)
	case questionsNews:
		m.questions.set(news.questions, m.filter[tabInbox])
		m.choiceGone()
	case topicsNews:
		m.bus.known = news.topics
		m.bus.count(m.filter[tabBus])
	case logNews:
		m.hearLog(news)
	case mailNews:
		m.bus.hear(news, m.filter[tabBus])
	case noteNews:
		m.say(news)
	case paperNews:
		m.hearPaper(news)
	default:
		return false
	}
	return true
}

func (m *model) hearStatus(news statusNews) {
	m.now = time.Now()
	if m.status.StartedAt != news.status.StartedAt {
		clear(m.paces)
	}
	m.status, m.lost, m.why, m.tried = news.status, time.Time{}, "", m.now
	known := make(map[string]*pace, len(news.status.Agents))
	for i := range news.status.Agents {
		v := &news.status.Agents[i]
		p := m.paces[v.Name]
		if p == nil {
			p = &pace{}
		}
		p.heard(v.Output.Lines, m.now)
		known[v.Name] = p
	}
	m.paces = known
	m.agents.set(news.status.Agents, m.filter[tabAgents])
}

func (m *model) hearTasks(news tasksNews) {
	m.heard, m.unlisted = true, news.left
	if m.tab == tabGraph {
		m.drawGraph(news.tasks)
	}
	slices.SortStableFunc(news.tasks, byUrgency)
	m.tasks.set(news.tasks, m.filter[tabTasks])
}

// byUrgency puts what waits for people first, then what moves, then what waits, and
// last what has ended, the latest first.
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
	case wire.TaskRunning, wire.TaskInReview, wire.TaskPlanning:
		return 1
	case wire.TaskAssigned, wire.TaskPending:
		return 2
	}
	return 3
}

// filtered is the filter of what has the keys. The overview has none of its own: its
// panes are filtered as their tabs are.
func (m *model) filtered() *string {
	tab := m.tab
	if tab == tabOverview {
		if tab = tabAgents; m.focus[tabOverview] == 1 {
			tab = tabTasks
		}
	}
	return &m.filter[tab]
}

// refilter chooses again after a filter has changed.
func (m *model) refilter() {
	m.agents.choose(m.filter[tabAgents])
	m.tasks.choose(m.filter[tabTasks])
	m.questions.choose(m.filter[tabInbox])
	m.graph.rows.choose(m.filter[tabGraph])
	m.bus.count(m.filter[tabBus])
	if m.tab == tabLog {
		m.followLog()
	}
}

// noteLasts is how long a note is seen.
const noteLasts = 10 * time.Second

func (m *model) say(note noteNews) { m.note, m.noted = note, time.Now() }

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return visible(text)
}
