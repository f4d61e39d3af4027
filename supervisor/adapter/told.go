package adapter

import (
	"maps"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// Told takes a line of the orchestrator.
func (m *Machine) Told(at time.Time, line []byte) []Effect {
	m.now = at
	var o order
	if err := object.Decode(line, &o); err != nil {
		m.log("a line of the orchestrator cannot be read: %v", err)
		return m.take(nil)
	}
	kind, name, _ := strings.Cut(o.Type, ":")
	switch {
	case kind == "response":
		m.answered(&o)
	case kind == "notify":
		m.notified(name, &o)
	case object.MemberOf(line, "message_type") != nil:
		m.said(line)
	default: // delegated work
		m.log("a message was dropped: a coding agent accepts only tasks, mail and session messages: %s", tools.Clip(string(line), 200))
	}
	return m.take(nil)
}

func (m *Machine) notified(name string, o *order) {
	if name == "message" {
		m.received(o.Payload)
		return
	}
	var n wire.TaskNotice
	if object.Decode(o.Payload, &n) != nil {
		return
	}
	switch name {
	case "task-assigned":
		if m.find(n.TaskID) == nil {
			m.ask(wire.TaskID{TaskID: n.TaskID}, pending{kind: "get-task", task: &task{id: n.TaskID}})
		}
	case "task-cancelled":
		m.cancelled(&n)
	case "task-updated":
		t := m.find(n.TaskID)
		switch {
		case t == nil: // its plan was judged, and an earlier run has made it
			m.ask(wire.TaskID{TaskID: n.TaskID}, pending{kind: "get-task", task: &task{id: n.TaskID}, news: orElse(n.Message, name)})
		case t.work != nil:
			m.prompts = append(m.prompts, text{words: (&taskView{ID: n.TaskID}).update(n.Message)})
		default:
			m.ask(wire.TaskID{TaskID: n.TaskID}, pending{kind: "get-task", task: t, news: n.Message})
		}
	case "interrupt":
		m.interrupted(&n)
	case "shutdown":
		m.closing = true
		if m.busy {
			m.handle(m.client.Interrupt())
		}
	}
}

// interrupted ends the turn for a person. The next one goes on with the task.
func (m *Machine) interrupted(n *wire.TaskNotice) {
	switch {
	case m.busy:
		m.prompts = append(m.prompts, text{words: interruption(m.openTask(), n.Message)})
		m.interrupt()
	case n.Message != "":
		m.prompts = append(m.prompts, text{words: interruption(m.openTask(), n.Message)})
	default:
		m.log("a person interrupted while no turn was running")
	}
}

// interrupt ends the running turn. Prompts wait for the next turn, since a text that is added to an ending turn may be
// lost.
func (m *Machine) interrupt() {
	effects := m.client.Interrupt()
	m.halted = effects != nil
	m.cut = m.cut || m.halted
	m.handle(effects)
}

// find returns the task with this id that the agent has, or nil.
func (m *Machine) find(id string) *task {
	if m.task != nil && m.task.id == id && !m.task.ended {
		return m.task
	}
	for _, t := range m.next {
		if t.id == id {
			return t
		}
	}
	for _, p := range m.waiting {
		if p.kind == "get-task" && p.task.id == id {
			return p.task
		}
	}
	return nil
}

// cancelled drops a task. If the client works on it, its turn is interrupted.
func (m *Machine) cancelled(n *wire.TaskNotice) {
	if k := m.task; k != nil && k.id == n.TaskID {
		k.ended = true
		m.prompts = slices.DeleteFunc(m.prompts, func(t text) bool { return len(t.mail) == 0 })
		if m.busy {
			m.cut = true
			m.handle(m.client.Interrupt())
		} else {
			m.task = nil
		}
		return
	}
	for i, k := range m.next {
		if k.id == n.TaskID {
			m.next = append(m.next[:i:i], m.next[i+1:]...)
			return
		}
	}
	for id, p := range m.waiting {
		if p.kind == "get-task" && p.task.id == n.TaskID {
			delete(m.waiting, id)
		}
	}
}

// received passes a message on to the client. An urgent one interrupts its turn.
func (m *Machine) received(payload wire.Raw) {
	var in mail.Message
	if object.Decode(payload, &in) != nil || in.Seq == 0 {
		return
	}
	for _, l := range m.letters {
		if l.seq == in.Seq {
			return // it was pushed again
		}
	}
	m.letters = append(m.letters, letter{seq: in.Seq})
	m.prompts = append(m.prompts, text{words: tools.Letter(&in, m.taskID()), mail: []int64{in.Seq}})
	if m.busy && urgent(&in) {
		m.interrupt()
	}
}

func urgent(l *mail.Message) bool {
	urgent := object.MemberOf(l.Payload, "urgent")
	return l.Topic == "urgent" || string(urgent) == "true"
}

// answered handles the answer to a request of this Machine.
func (m *Machine) answered(o *order) {
	p, ok := m.waiting[o.CorrelationID]
	if !ok {
		return
	}
	delete(m.waiting, o.CorrelationID)
	failed := o.Error != nil
	switch {
	case p.ended != nil:
		m.looked(&p, o)
	case p.perm != "":
		m.decided(p.perm, o)
	case p.call != "":
		m.returned(&p, o)
	case p.kind == "get-task":
		m.given(&p, o)
	case p.kind == "submit-plan":
		m.plans.submitted(p.task, o.Error)
	case failed && p.kind == "start-task":
		// An earlier run has started the task, or it is no longer ours, which its end shows.
	case failed && p.task != nil && p.task.ended:
		m.refused(&p, o.Error)
	}
}

// given takes a task that was asked for.
func (m *Machine) given(p *pending, o *order) {
	var reply struct {
		Task taskView `json:"task"`
	}
	if o.Error != nil {
		m.askAgain(p, o.Error)
		return
	}
	if object.Decode(o.Payload, &reply) != nil || p.task.ended {
		return
	}
	t := p.task
	known := t.view.ID != ""
	t.view = reply.Task
	switch {
	case known && t.plan != unplanned:
		m.plans.judged(t, p.news)
	case known:
		m.prompts = append(m.prompts, text{words: t.view.update(p.news)})
	case t.view.State == wire.TaskPlanning:
		t.plan = planWanted
		m.next = append(m.next, t)
	case p.news == "":
		m.next = append(m.next, t)
	case t.view.State == wire.TaskRunning: // the task began when the plan was approved
		t.started = true
		m.next = append(m.next, t)
	}
}

// maxTries is how often a task is asked for.
const maxTries = 5

// askAgain asks for a task again, unless it is gone or has left this agent.
func (m *Machine) askAgain(p *pending, err *orderError) {
	switch {
	case err.gone():
	case p.tries < maxTries:
		again := *p
		again.tries++
		m.ask(wire.TaskID{TaskID: p.task.id}, again)
	default:
		m.out = append(m.out, Stuck{Why: "task " + p.task.id + " cannot be read: " + err.Message})
	}
}

// asked answers a request for permission: at once if it is always allowed, or else when a person
// has decided.
func (m *Machine) asked(p *Permission) {
	m.withdrawn(p.ID) // an answer to an earlier request with this id would answer this one
	if m.plans.asked(p) {
		return
	}
	if allowed(m.o.Allow, p) {
		m.handle(m.client.Decide(p, Decision{Allow: true}))
		return
	}
	m.granting[p.ID] = *p
	choices := []activity.PermissionChoice{
		{ID: "allow", Kind: activity.AllowOnce, Label: "Allow"},
		{ID: "session", Kind: activity.AllowSession, Label: "Allow for this session"},
		{ID: "always", Kind: activity.AllowAlways, Label: "Always allow"},
		{ID: "deny", Kind: activity.Deny, Label: "Deny"},
	}
	if p.Once {
		choices = []activity.PermissionChoice{choices[0], choices[3]}
	}
	m.turn(activity.Waiting, p.Title)
	m.ask(wire.AskPermission{
		TaskID: m.openTask(), Tool: p.Tool, Title: p.Title, Input: p.Input, Paths: p.Paths, Choices: choices, Reason: p.Reason,
	}, pending{kind: "ask-permission", perm: p.ID})
}

func (m *Machine) openTask() string {
	if m.task == nil || m.task.ended {
		return ""
	}
	return m.taskID()
}

// decided passes the decision of a person on.
func (m *Machine) decided(id string, o *order) {
	p, ok := m.granting[id]
	if !ok {
		return // the client no longer waits
	}
	var answer wire.UserAnswer
	d := Decision{Message: "there was no answer"}
	if o.Error != nil {
		d.Message = o.Error.Message
	} else if object.Decode(o.Payload, &answer) == nil {
		d.Allow = answer.Choice == "allow" || answer.Choice == "session" || answer.Choice == "always"
		d.Message = orElse(answer.Message, "a person has denied it")
	}
	words := ""
	if answer.Message != "" && !d.Allow {
		words = "A person has denied " + tools.Clip(p.Title, 200) + ": " + tools.Clip(answer.Message, 2000)
	}
	m.decide(&p, d, words)
}

// decide answers a permission. The Agent Client Protocol has no words for a denial. They are added to
// the turn before the answer; a client that then ends its turn gets them in the next one. If a
// client takes no words in its turn, the turn is ended for them: it would go on without.
func (m *Machine) decide(p *Permission, d Decision, words string) {
	delete(m.granting, p.ID)
	m.last = m.now
	if words != "" && m.o.Protocol == "acp" {
		m.prompts = append(m.prompts, text{words: words})
		if m.busy && !m.halted {
			m.steer()
			if len(m.prompts) > 0 {
				m.interrupt()
				return
			}
		}
	}
	m.handle(m.client.Decide(p, d))
	if p.Plan != "" {
		m.resumed("")
		return
	}
	m.resumed(p.Title)
}

// withdrawn closes a question that the client no longer waits for.
func (m *Machine) withdrawn(id string) {
	if id == "" { // also of requests without a question
		return
	}
	for _, request := range slices.Sorted(maps.Keys(m.waiting)) {
		p := m.waiting[request]
		call, _ := SplitCallID(p.call)
		if p.perm != id && (call != id || p.kind != "ask-user") {
			continue
		}
		delete(m.waiting, request)
		delete(m.granting, p.perm)
		delete(m.calls, p.call)
		m.ask(wire.WithdrawQuestion{RequestID: request}, pending{kind: "withdraw-question"})
		m.resumed("")
	}
	if t := m.task; t != nil && t.presented == id {
		delete(m.granting, id) // its plan stays in review
		m.resumed("")
	}
}

// withdrawAll closes the questions to people that belong to the turn that has ended.
func (m *Machine) withdrawAll() {
	for _, id := range slices.Sorted(maps.Keys(m.waiting)) {
		if p := m.waiting[id]; p.perm != "" || p.kind == "ask-user" {
			delete(m.waiting, id)
			m.ask(wire.WithdrawQuestion{RequestID: id}, pending{kind: "withdraw-question"})
		}
	}
	clear(m.granting)
	clear(m.calls)
}

// resumed reports that the client works again, or that it is idle, if it does not wait for another
// answer.
func (m *Machine) resumed(what string) {
	if len(m.granting) == 0 {
		m.turn(activity.Busy, what)
	}
}

// allowed reports whether a permission is in a list of patterns such as Bash(go test:*), Bash or
// Edit. A pattern in parentheses is the beginning of the command, or all of it.
func allowed(patterns []string, p *Permission) bool {
	if p.Beyond {
		return false
	}
	command, _ := object.TextOf(p.Input, "command")
	for _, pattern := range patterns {
		tool, rest, has := strings.Cut(strings.TrimSuffix(pattern, ")"), "(")
		if !strings.EqualFold(tool, p.Tool) {
			continue
		}
		if !has {
			return true
		}
		if beginning, ok := strings.CutSuffix(rest, ":*"); ok {
			if (command == beginning || strings.HasPrefix(command, beginning+" ")) && plainCommand(command) && !reaches(command) {
				return true
			}
		} else if command == rest {
			return true
		}
	}
	return false
}

// plainCommand reports whether a command is a single one: a pattern for its beginning does not cover the commands after
// a shell operator.
func plainCommand(command string) bool { return !strings.ContainsAny(command, ";&|<>`$\n\\(){}") }

// A reach lists options of a reading program that make it write a file, run a program, or read a file that no argument
// names.
type reach struct {
	letters string   // of short options, which may be joined
	words   []string // long options, and the words of find
}

var reachOf = map[string]reach{
	"git":  {letters: "O", words: []string{"--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--no-index", "--exec", "--upload-pack", "--receive-pack"}},
	"grep": {letters: "f", words: []string{"--file", "--exclude-from"}},
	"rg":   {letters: "f", words: []string{"--pre", "--file", "--ignore-file"}},
	"sort": {letters: "oT", words: []string{"--output", "--compress-program", "--files0-from", "--temporary-directory"}},
	"find": {words: []string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"}},
}

// reaches reports whether a command has an option that makes its program do more than read. A person who allows a
// beginning such as "git diff" hardly means these options, so a person is asked again.
func reaches(command string) bool {
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(command))
	if len(words) == 0 {
		return false
	}
	program := reachOf[words[0]]
	return slices.ContainsFunc(words[1:], func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		if slices.Contains(program.words, name) {
			return true
		}
		if !strings.HasPrefix(name, "--") {
			return strings.HasPrefix(name, "-") && program.letters != "" && strings.ContainsAny(name, program.letters)
		}
		const shortest = len("--o") // programs take the beginning of a long option
		return len(name) > shortest && name != "--text" && slices.ContainsFunc(program.words, func(w string) bool { return strings.HasPrefix(w, name) })
	})
}
