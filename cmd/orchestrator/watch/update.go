package watch

import (
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"orchestrator/wire"
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	if !m.pen.color {
		return m.feed.listen(m.done)
	}
	return tea.Batch(m.feed.listen(m.done), tea.RequestBackgroundColor)
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.followTail()
		return m, nil
	case tea.ModeReportMsg: // use the same widths as the program
		if msg.Mode == ansi.ModeUnicodeCore && !msg.Value.IsNotRecognized() && !msg.Value.IsPermanentlyReset() {
			m.pen.width = ansi.GraphemeWidth
		}
		return m, nil
	case tea.BackgroundColorMsg:
		m.pen.theme = newTheme(msg.IsDark())
		return m, nil
	case tea.MouseClickMsg:
		if msg.Button == tea.MouseLeft {
			m.clicked(msg.X, msg.Y)
			m.followTail()
		}
		return m, nil
	case tea.MouseWheelMsg:
		m.wheel(msg.Button, msg.X, msg.Y)
		m.followTail()
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
		if m.ring {
			m.ring = false
			return m, tea.Batch(m.feed.listen(m.done), tea.Raw("\a"))
		}
		return m, m.feed.listen(m.done)
	}
	return m, nil
}

// hear handles news of the feed. It reports whether msg is news.
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
		m.ring = m.bell && slices.ContainsFunc(news.questions, func(q wire.Question) bool {
			return !slices.ContainsFunc(m.questions.all, func(old wire.Question) bool { return old.ID == q.ID })
		})
		m.questions.set(news.questions, m.filter[tabInbox])
		m.choiceGone()
	case reviewsNews:
		m.reviews.set(news.tasks, m.filter[tabReviews])
	case topicsNews:
		m.bus.known = news.topics
		maps.Copy(m.bus.names, news.names)
		m.bus.count(m.filter[tabBus])
	case logNews:
		m.hearLog(news)
	case mailNews:
		m.bus.hear(news, m.filter[tabBus])
	case noteNews:
		if news.unanswered != "" && news.unanswered == m.answered {
			m.answered = ""
		}
		m.say(news)
	case outputMsg:
		m.onOutput(news)
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
