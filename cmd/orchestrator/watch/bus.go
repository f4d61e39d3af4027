package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire/mail"
)

// busView holds the messages and their topics.
type busView struct {
	mail   ring[mail.Message]
	names  mail.Names
	known  []mail.TopicView
	topics []topic
	pick   list // selected topic; 0 is all, without housekeeping
	most   int  // messages without housekeeping
	seen   []*mail.Message
	rows   list
	follow bool
	end    func() // nil until messages are followed
	denied string // why this person may not read them
}

type topic struct {
	name string
	n    int
}

func (b *busView) hear(news mailNews, filter string) {
	b.denied = news.denied
	b.mail.add(news.mail, news.fresh)
	for i := range news.mail {
		b.names.Learn(&news.mail[i])
	}
	b.count(filter)
}

// count counts the messages on each topic, and selects the visible ones.
func (b *busView) count(filter string) {
	on := make(map[string]int, len(b.known))
	for _, t := range b.known {
		on[t.Topic] = 0
	}
	b.most = 0
	for i := range b.mail.all {
		on[b.mail.all[i].Topic]++
		if !b.mail.all[i].Housekeeping() {
			b.most++
		}
	}
	before := b.chosen()
	b.topics = b.topics[:0]
	for name, n := range on {
		b.topics = append(b.topics, topic{name: name, n: n})
	}
	slices.SortFunc(b.topics, func(x, y topic) int { return cmp.Or(y.n-x.n, strings.Compare(x.name, y.name)) })
	b.pick.resize(len(b.topics) + 1)
	if at := slices.IndexFunc(b.topics, func(t topic) bool { return t.name == before }); at >= 0 {
		b.pick.at = at + 1
	}
	b.choose(filter)
}

// chosen returns the selected topic, or "" for all.
func (b *busView) chosen() string {
	if b.pick.at == 0 || b.pick.at > len(b.topics) {
		return ""
	}
	return b.topics[b.pick.at-1].name
}

func (b *busView) choose(filter string) {
	var before int64
	if b.rows.at < len(b.seen) {
		before = b.seen[b.rows.at].Seq
	}
	on := b.chosen()
	filter = strings.ToLower(filter)
	b.seen = b.seen[:0:0]
	at := -1
	for i := range b.mail.all {
		m := &b.mail.all[i]
		if on != "" && m.Topic != on || on == "" && m.Housekeeping() {
			continue
		}
		if filter != "" && !strings.Contains(strings.ToLower(m.From+" "+m.To+" "+b.parties(m)+" "+m.Topic+" "+string(m.Payload)), filter) {
			continue
		}
		if m.Seq <= before {
			at = len(b.seen)
		}
		b.seen = append(b.seen, m)
	}
	if b.follow {
		at = len(b.seen) - 1
	}
	b.rows.at = max(0, at)
	b.rows.resize(len(b.seen))
}

func (m *model) askTopics() {
	m.feed.do(func(ctx context.Context) tea.Msg {
		list, err := answer[mail.TopicList](ctx, m.of, "list-topics", struct{}{})
		if err != nil {
			return noteNews{text: firstLine(err), bad: true}
		}
		actors, err := answer[mail.ActorList](ctx, m.of, "list-actors", struct{}{})
		if err != nil {
			return noteNews{text: firstLine(err), bad: true}
		}
		return topicsNews{topics: list.Topics, names: mail.NamesOf(actors.Actors)}
	})
}

func (m *model) busKey(name string) {
	b := &m.bus
	if m.focus[tabBus] == 1 {
		if b.pick.move(name) {
			b.choose(m.filter[tabBus])
		}
		return
	}
	switch {
	case name == "f":
		b.follow = !b.follow
		b.choose(m.filter[tabBus])
	case name == "enter" && b.rows.at < len(b.seen):
		one := b.seen[b.rows.at]
		head := fmt.Sprintf("%d  %s\nfrom   %s\nto     %s\ntopic  %s\n", one.Seq, one.CreatedAt, one.From, one.To, one.Topic)
		if one.ReplyTo != nil {
			head += fmt.Sprintf("answers %d\n", *one.ReplyTo)
		}
		m.unroll(fmt.Sprintf("Message %d", one.Seq), head+"\n"+string(one.Payload))
	default:
		if b.rows.move(name) {
			b.follow = b.rows.at == len(b.seen)-1
		}
	}
}

func (m *model) drawBus(width, height int) []string {
	b := &m.bus
	switch {
	case m.single() && m.focus[tabBus] == 1:
		return b.topicsPane(m.pen, true, width, height)
	case m.single():
		return b.mailPane(m.pen, m.now, m.focus[tabBus] == 0, width, height)
	}
	left := min(36, width*3/10)
	m.place(0, 0, left, height, 1, &b.pick)
	m.place(left+gutter, 0, rightOf(left, width), height, 0, &b.rows)
	return beside(b.topicsPane(m.pen, m.focus[tabBus] == 1, left, height), b.mailPane(m.pen, m.now, m.focus[tabBus] == 0, rightOf(left, width), height))
}

func (b *busView) topicsPane(p pen, focused bool, width, height int) []string {
	from, to := b.pick.window(height - 2)
	var rows []string
	for i := from; i < to; i++ {
		name, n := "all", b.most
		if i > 0 {
			name, n = b.topics[i-1].name, b.topics[i-1].n
		}
		rows = append(rows, p.row(i == b.pick.at, width-2,
			cell{text: oneLine(name), size: width - 2 - 1 - 1 - 5}, cell{text: fmt.Sprint(n), size: 5, right: true}))
	}
	return p.draw(pane{title: "Topics", focused: focused}, width, height, rows)
}

func (b *busView) mailPane(p pen, now time.Time, focused bool, width, height int) []string {
	from, to := b.rows.window(height - 2)
	whom, topic := 16, 12
	for _, one := range b.seen[from:to] {
		whom = max(whom, min(width/3, p.width.StringWidth(b.parties(one))))
		topic = max(topic, min(18, p.width.StringWidth(oneLine(one.Topic))))
	}
	var rows []string
	for i, one := range b.seen[from:to] {
		var ink term.Ink
		switch one.Topic {
		case mail.TopicAlertFired:
			ink = term.InkWarn
		case mail.TopicAlertResolved:
			ink = term.InkGood
		}
		rows = append(rows, p.row(from+i == b.rows.at, width-2,
			cell{text: oneLine(term.Clock(one.CreatedAt, now, time.TimeOnly)), size: 8, ink: term.InkDim},
			cell{text: b.parties(one), size: whom},
			cell{text: oneLine(one.Topic), size: topic, ink: ink},
			cell{text: oneLine(one.Text()), size: width},
		))
	}
	if len(rows) == 0 {
		rows = []string{" " + oneLine(cmp.Or(b.denied, "No messages."))}
	}
	title := "Messages"
	if !b.follow {
		title += ", frozen"
	}
	return p.draw(pane{title: title, focused: focused}, width, height, rows)
}

func (b *busView) parties(m *mail.Message) string {
	return oneLine(b.names.Of(m.From)) + " -> " + oneLine(b.names.Of(m.To))
}
