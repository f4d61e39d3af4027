package handlers

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

// showCounts writes the counts of everything.
func (p *player) showCounts(string) {
	counts, err := object.Encode(p.state.Counts())
	require.NoError(p.t, err)
	some := regexp.MustCompile(`"(\w+)":([1-9]\d*)`)
	for _, found := range some.FindAllStringSubmatch(string(counts), -1) {
		fmt.Fprintf(&p.out, "%s %s, ", found[2], found[1])
	}
	fmt.Fprintf(&p.out, "%d open, %d questions\n", p.state.Open(), p.state.Questions())
}

// showHolds writes the tasks that an agent holds.
func (p *player) showHolds(who string) {
	holds, err := object.Encode(p.state.TasksOf(who))
	require.NoError(p.t, err)
	p.out.Write(append(holds, '\n'))
}

// showEvents writes all records as people see them.
func (p *player) showEvents(string) {
	for _, r := range p.records {
		e := Tell(r)
		about := e.Agent
		if e.Run != "" {
			about += " " + e.Run
		}
		if e.Task != "" {
			about += " " + e.Task
		}
		p.out.WriteString(strings.TrimRight(fmt.Sprintf("%d %s [%s] %s", e.Seq, e.Kind, strings.TrimSpace(about), e.Text), " ") + "\n")
	}
}

// withIDs replaces the names of tasks by their ids.
func (p *player) withIDs(text string) string {
	return regexp.MustCompile(`\$[\w-]+`).ReplaceAllStringFunc(text, func(name string) string {
		switch name {
		case "$schema": // a key of documents
			return name
		case "$TOKEN": // the latest registration token
			return p.token
		}
		if k := p.task(name[1:]); k != nil {
			return k.view.ID
		}
		return "no-" + name[1:]
	})
}

var (
	timeForm = regexp.MustCompile(`2026-11-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ`)
	markForm = regexp.MustCompile(`("request":\{"id":"[^"]*","run":"[^"]*"),"timestamp":"[^"]*","sum":\d+\}`)
)

// plain makes the outcome of a line readable: names of tasks instead of their ids, times since
// the beginning, and requests without sums.
func (p *player) plain(text string) string {
	for _, k := range p.state.tasks.list {
		if k.delegation() != nil {
			continue // its source gives it a readable id
		}
		text = strings.ReplaceAll(text, k.view.ID, "$"+k.view.Name)
		text = strings.ReplaceAll(text, short(k.view.ID), "$"+k.view.Name)
	}
	text = markForm.ReplaceAllString(text, "$1}")
	return timeForm.ReplaceAllStringFunc(text, func(when string) string {
		at, _ := object.ParseTime(when)
		return "+" + at.Sub(beginning).Truncate(time.Millisecond).String()
	})
}
