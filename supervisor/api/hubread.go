package api

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"orchestrator/wire"
)

// asked is a request to the hub, as its reader sees it.
type asked struct {
	task, dependency string // of the path
	query            url.Values
	text             []byte // the body, as it came
	body             wire.Object
	said             any // what was made of it, for the operation

	wrong *wire.Error // with the query
}

// open takes the body apart.
func (a *asked) open(depth int) error {
	if len(bytes.TrimSpace(a.text)) == 0 {
		a.text = []byte("{}")
	}
	if why := a.body.ReadObject(a.text, depth, ""); why != nil {
		return unreadable(a.text, depth, why)
	}
	return nil
}

// depth is how deep a body may nest.
func (d *Door) depth() int { return cmp.Or(d.Depth, 64) }

// refusal is the first thing that is wrong, nil if nothing is.
func (a *asked) refusal() *wire.Error {
	if a.wrong != nil {
		return a.wrong
	}
	return a.body.Err()
}

// parameter is a value of the query, for those who read about it.
type parameter struct {
	name, words string
	of          []string // the words that it may be; none: any text
	repeats     bool
}

// word is a parameter of which there is one at most, "" when there is none.
func (a *asked) word(p parameter) string {
	values := a.query[p.name]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return ""
	case len(values) > 1:
		a.refuse(p, "stands twice")
	case p.of != nil && !slices.Contains(p.of, values[0]):
		a.refuse(p, fmt.Sprintf("must be one of %s, not %.40q", strings.Join(p.of, ", "), values[0]))
	}
	return values[0]
}

func (a *asked) refuse(p parameter, why string) {
	if a.wrong == nil {
		a.wrong = &wire.Error{Code: wire.CodeInvalid, Message: p.name + " " + why, Details: map[string]any{"parameter": p.name}}
	}
}

// reading is how a request is read, and the schema of what it carries.
type reading struct {
	schema string
	need   bool // without a body there is something missing
	read   func(*asked) any
}

// body reads a request for its operation.
func (g *reading) body(a *asked) any {
	a.said = g.read(a)
	return a.said
}

// bodyOf is a reading of a body that is about a task.
func bodyOf[Body any](schema string, need bool, read func(o *wire.Object, task string) *Body) *reading {
	return &reading{schema: schema, need: need, read: func(a *asked) any { return read(&a.body, a.task) }}
}

// What the hub is told.
var (
	readTask       = bodyOf("hub.new-task", true, func(o *wire.Object, _ string) *wire.SubmitTask { return wire.ReadHubTask(o) })
	readChanges    = bodyOf("hub.changes", true, wire.ReadHubUpdate)
	readCompletion = bodyOf("hub.completion", true, wire.ReadHubComplete)
	readFailure    = bodyOf("hub.failure", false, wire.ReadHubFail)
	readDismissal  = bodyOf("hub.cancellation", false, wire.ReadHubCancel)
	readHelp       = bodyOf("hub.call-for-help", true, wire.ReadHubHelp)
	readNote       = bodyOf("hub.new-note", true, wire.ReadHubNote)
	readPlan       = bodyOf("hub.plan", true, wire.ReadHubPlan)
	readFeedback   = bodyOf("hub.feedback", true, wire.ReadHubRevise)
	readAssignee   = bodyOf("hub.assignee", true, wire.ReadHubAssign)
	readLink       = bodyOf("hub.new-dependency", true, wire.ReadHubDependency)
	readNewcomer   = bodyOf("hub.registration", true, func(o *wire.Object, _ string) *wire.Register { return wire.ReadRegister(o) })
	readHeartbeat  = &reading{schema: "hub.heartbeat", read: func(a *asked) any { return wire.ReadHubHeartbeat(&a.body, a.text) }}
)

// What the hub is told by a path or a query alone. What a body says besides is
// passed over.
var (
	readTaskID  = &reading{read: func(a *asked) any { return &wire.TaskID{TaskID: a.task} }}
	readNothing = &reading{read: func(*asked) any { return new(wire.Nothing) }}
	readSession = &reading{read: func(a *asked) any { return &wire.CheckTasks{SessionID: a.word(bySession)} }}
	readLinkID  = &reading{read: func(a *asked) any {
		return &wire.RemoveDependency{TaskID: a.task, DependencyID: a.dependency}
	}}
	readFilter = &reading{read: func(a *asked) any {
		return &wire.QueryTasks{State: a.word(byState), ProjectID: a.word(byProject), Limit: mostListed}
	}}
)

// mostListed is how many tasks are listed.
const mostListed = 1000

// The parameters of queries.
var (
	bySession = parameter{name: "session_id", words: "A session: the name of an agent, its server id or the id of its run; the caller itself when it is missing."}
	byProject = parameter{name: "project_id", words: "Only tasks of this project."}
	byState   = parameter{name: "status", words: "Only tasks that stand there.", of: hubStates()}
)

// hubStates are the states of a task for which the hub has a word.
func hubStates() (words []string) {
	for _, state := range wire.TaskStates {
		if word := state.Hub(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
