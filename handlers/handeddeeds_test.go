package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// Actions of agents and people with delegated tasks.

// handOn makes one thing happen to delegated tasks.
func (w *world) handOn() {
	w.handovers.carry()
	switch n := w.chance.IntN(100); {
	case n < 8:
		w.entrust()
	case n < 30:
		w.respond()
	case n < 37:
		w.prod()
	case n < 39:
		w.question(w.members[w.chance.IntN(len(w.members))]) // runs end more often than they ask
	}
	w.handovers.carry()
}

// someHandover returns an open handover, sometimes an ended one, or nil.
func (w *world) someHandover() *handover {
	all := w.handovers.open
	if len(all) == 0 || w.chance.IntN(20) == 0 {
		all = w.handovers.order[max(0, len(w.handovers.order)-30):]
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.chance.IntN(len(all))]
}

// entrust delegates a task.
func (w *world) entrust() {
	if len(w.handovers.open) > 40 {
		w.request(Actor{Kind: Operator}, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, w.handovers.open[0].id))
	}
	m := w.members[w.chance.IntN(len(w.members))]
	line := w.handoverLine(m)
	switch n := w.chance.IntN(10); {
	case n < 2 || !m.up && !m.dying:
		w.ask(Actor{Kind: Operator}, line)
	case n < 4 || m.far || m.Deaf:
		w.ask(m.actor(), line)
	default:
		w.utter(m, m.actor(), line)
	}
}

// handoverLine returns a request for work, mostly as a part of a task that its source has.
// Sometimes it repeats an earlier request, or the id of one.
func (w *world) handoverLine(m *inhabitant) string {
	w.ids++
	id := fmt.Sprintf("e%d", w.ids)
	if e := w.someHandover(); e != nil && w.chance.IntN(12) == 0 {
		if id = e.id; w.chance.IntN(2) == 0 && w.handovers.asked[id] != nil {
			return string(w.handovers.asked[id].Document)
		}
	}
	line := fmt.Sprintf(`{"id":%q,"type":%q,"payload":{"step":%d,"x":1.0},"other":1e2`, id, w.one(skills...), w.steps)
	context := fmt.Sprintf(`"priority":%q`, w.one("low", "normal", "high", "urgent"))
	if holds := w.state.TasksOf(m.ID); len(holds) > 0 && w.chance.IntN(2) == 0 {
		context += fmt.Sprintf(`,"parentTaskId":%q`, holds[w.chance.IntN(len(holds))].ID)
	} else if w.chance.IntN(8) == 0 {
		context += fmt.Sprintf(`,"parentTaskId":%q`, w.someTask())
	}
	line += `,"context":{` + context + `}`
	routing := `"x":1`
	if w.chance.IntN(2) == 0 {
		routing += fmt.Sprintf(`,"target":%q`, w.members[w.chance.IntN(len(w.members))].ID)
	}
	if w.chance.IntN(12) == 0 {
		routing += fmt.Sprintf(`,"delegationChain":[%q,"stranger"]`, w.members[w.chance.IntN(len(w.members))].ID)
	}
	if w.chance.IntN(30) == 0 {
		routing += fmt.Sprintf(`,"source":%q`, w.one(m.ID, "a1", "anyRecipient"))
	}
	line += `,"routing":{` + routing + `}`
	switch w.chance.IntN(5) {
	case 0:
		line += fmt.Sprintf(`,"observability":{"traceId":"trace%d","baggage":{"step":%d}}`, w.chance.IntN(3), w.steps)
	case 1:
		line += fmt.Sprintf(`,"observability":{"spanId":"span%d"}`, w.steps)
	}
	return line + "}"
}

// ask delegates a task with a native request.
func (w *world) ask(from Actor, line string) {
	w.ids++
	r := &wire.Request{ID: fmt.Sprintf("r%d", w.ids), Operation: "submit-task-request", Timestamp: object.Timestamp(w.at), Payload: []byte(line)}
	err := prepare(r)
	w.must(err == nil, "%s cannot be read: %v", line, err)
	w.lookAtAnswer(r, w.do(from, r))
}

// utter has an agent print a line of delegated work. The run may be over.
func (w *world) utter(m *inhabitant, from Actor, line string) {
	reader := stdio.Reader{
		Agent: m.ID, Depth: 64, Capability: w.state.Does, Given: func(id string) bool { return w.state.Given(m.ID, id) },
	}
	switch said := reader.Parse([]byte(line)).(type) {
	case *wire.Request:
		w.lookAtAnswer(said, w.do(from, said))
	case *wire.AgentEvent:
		w.hearSaying(m, said, w.do(from, said))
	default:
		w.saw["handed on: nobody's words"]++
	}
}

// lookAtAnswer checks that a refused request makes no task, and that a repeated one has no
// second effect.
func (w *world) lookAtAnswer(r *wire.Request, out Outcome) {
	q, ok := r.Body.(*delegation.Request)
	if !ok {
		return
	}
	records := 0
	for i := range out.Records {
		if out.Records[i].Correlation == q.ID {
			records++
		}
	}
	created := len(w.handovers.turn.created)
	w.must(created == 0 || out.Refused == nil && created == 1 && w.handovers.turn.created[0].id == q.ID, "%s makes %d tasks", r.Operation, created)
	switch {
	case out.Refused != nil:
		w.must(records == 0, "%s is refused, and %d records tell of it", q.Document, records)
		w.saw["handed on: refused: "+reasonOf(out.Refused)]++
	case created == 0:
		w.must(records == 0 && w.handovers.byID[q.ID] != nil, "%s was there before, and %d records tell of it", q.Document, records)
		w.saw["handed on: the same again"]++
	}
}

// hearSaying checks that a refused message has no effect on its task.
func (w *world) hearSaying(m *inhabitant, said *wire.AgentEvent, out Outcome) {
	if out.Refused != nil {
		w.saw["handed on: words refused: "+reasonOf(out.Refused)]++
		for i := range out.Records {
			w.must(out.Records[i].Correlation != said.ID, "what %s says of %s is refused, and counts", m.ID, said.ID)
		}
	}
}

// respond has an agent report on a task that it holds.
func (w *world) respond() {
	m := w.members[w.chance.IntN(len(w.members))]
	var mine []*handover
	for _, e := range w.handovers.open {
		if e.holder == m.ID && (e.out == m.run && e.brought || w.chance.IntN(30) == 0) {
			mine = append(mine, e)
		}
	}
	from := m.actor()
	switch {
	case !m.up && !m.dying || m.far || m.Deaf:
		return
	case w.chance.IntN(40) == 0: // a task of another agent
		if e := w.someHandover(); e != nil {
			mine = append(mine[:0], e)
		}
	case w.chance.IntN(40) == 0 && m.runs > 1: // from a run that is over
		from.Run = fmt.Sprintf("%s.%d", m.ID, m.runs-1)
	}
	if len(mine) == 0 {
		return
	}
	e := mine[w.chance.IntN(len(mine))]
	before := e.latest
	line := w.responseLine(e.id)
	w.utter(m, from, line)
	w.must(from.Run == m.run || e.latest == before, "a run that is over has said %s", line)
}

// responseLine returns a response of an agent to a task.
func (w *world) responseLine(id string) string {
	line := fmt.Sprintf(`{"id":%q,"x":1.50,"status":`, id)
	switch n := w.chance.IntN(20); {
	case n < 2:
		return line + `"pending"}`
	case n < 6:
		return line + `"in_progress"}`
	case n < 8:
		return line + `"input_required","message":"which?","input":{"options":["yes","no"]}}`
	case n < 9:
		return line + `"input_required"}`
	case n < 12:
		return line + fmt.Sprintf(`"failed","error":{"code":"TIMEOUT","message":"step %d","recoverable":true}}`, w.steps)
	case n < 13:
		return line + `"failed"}`
	case n < 14:
		return line + `"cancelled","error":{"code":"X","message":"no"}}`
	case n < 15:
		return line + `"completed","result":"é","metadata":{"agent":"anyRecipient"}}`
	}
	return line + fmt.Sprintf(`"completed","result":%s}`, w.result())
}

// prod has the source of a handover, or a person, act on it.
func (w *world) prod() {
	e := w.someHandover()
	if e == nil {
		return
	}
	for _, m := range w.members {
		if m.ID != state.AgentOf(e.source) || !m.up || m.far || m.Deaf || w.chance.IntN(4) == 0 {
			continue
		}
		w.utter(m, m.actor(), fmt.Sprintf(`{"id":%q,"type":%s}`, e.id, w.one(
			`"task.status","payload":{}`, `"task.status","payload":{}`, `"task.update","payload":{"input":{"x":1.0}}`,
			`"task.update","payload":{"input":null}`, `"task.cancel","payload":{"reason":"no"}`,
		)))
		return
	}
	from := w.anyCaller(w.members[w.chance.IntN(len(w.members))])
	var out Outcome
	switch w.chance.IntN(3) {
	case 0:
		out = w.request(from, "update-task-request", fmt.Sprintf(`{"taskId":%q,"input":%d}`, e.id, w.steps))
	case 1:
		w.answerAbout(e)
		return
	default:
		out = w.request(from, "get-task-response", fmt.Sprintf(`{"taskId":%q}`, e.id))
		w.must(len(out.Records) == 0 || w.servers[from.Name], "a look changes something")
	}
	w.lookAtStanding(e, out)
}

// lookAtStanding checks that an answer about a handover has its status.
func (w *world) lookAtStanding(e *handover, out Outcome) {
	for i := range out.Letters {
		l := &out.Letters[i]
		if _, ok := l.Payload.(*wire.TaskAnswer); !ok {
			continue
		}
		whole, err := state.Complete(l.Payload, l.Pages, w.handovers)
		w.must(err == nil, "%v", err)
		a, bad := wire.ReadTaskResponse(whole.(*wire.TaskAnswer).Document, history.Deepest)
		w.must(bad == nil && a.ID == e.id && a.Status == e.state.Response(), "%+v is %s: %v", e, whole.(*wire.TaskAnswer).Document, bad)
	}
}

func (w *world) answerAbout(e *handover) {
	k := w.task(e.id)
	if e.state == wire.TaskNeedsHuman {
		w.request(Actor{Kind: Operator}, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"yes"}`, k.Extra.Question))
	}
}

// settle brings a world to rest: all agents run and read, tasks that are not delegated are
// cancelled, and time passes. Then all handovers end, and every source that can be reached knows.
func (w *world) settle() {
	if w.state.Stopping {
		w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	}
	for _, m := range w.members {
		w.revive(m)
	}
	person := Actor{Kind: Operator}
	for _, k := range slices.Clone(w.state.Tasks.List) {
		if !k.View.State.Final() && w.handovers.byID[k.View.ID] == nil {
			w.request(person, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, k.View.ID))
		}
	}
	for _, e := range slices.Clone(w.handovers.open) {
		if e.state == wire.TaskVerifying { // nobody may end it until its commands have ended
			w.do(Actor{}, &wire.TaskChecked{Kind: events.TaskVerified, Agent: e.holder, Task: e.id, Text: "is checked"})
		}
		for w.state.Tasks.Graph.Open(w.task(e.id).Node) > 0 {
			w.cutLoose(e)
		}
	}
	for range 200 {
		w.at = w.at.Add(time.Second)
		if due, some := w.state.Due(); some && !due.After(w.at) {
			w.do(Actor{}, wire.Tick{})
		}
		for len(w.handovers.lines) > 0 {
			w.handovers.write(0, !w.runsNow(w.handovers.lines[0].To))
		}
		if len(w.handovers.open) == 0 {
			break
		}
		for _, e := range slices.Clone(w.handovers.open) {
			w.finish(e)
		}
	}
	for _, e := range w.handovers.order {
		w.must(e.state.Final() && e.final != 0, "%+v has not ended: %+v", e, w.state.Agents.ByID[e.holder])
		w.must(!e.owed || !e.given.IsZero() || !w.reads(state.AgentOf(e.source)), "the source of %+v does not know", e)
	}
}

func (w *world) runsNow(to Actor) bool {
	return slices.ContainsFunc(w.members, func(m *inhabitant) bool { return m.up && !m.far && m.says(to) })
}

func (w *world) reads(name string) bool {
	return slices.ContainsFunc(w.members, func(m *inhabitant) bool { return m.ID == name && m.up && !m.far && !m.Deaf })
}

// revive makes an agent run and read.
func (w *world) revive(m *inhabitant) {
	if m.far || !m.listed {
		return
	}
	if m.dying {
		m.dying = false
		w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run})
		w.yield(m)
	}
	if !m.up {
		w.launch(m)
	}
	delete(w.sessions.full, m.ID)
	w.do(Actor{}, &wire.Event{Kind: events.AgentRecovered, Agent: m.ID, Run: m.run})
	w.request(m.actor(), "update-capabilities", fmt.Sprintf(`{"capabilities":%s}`, w.abilities(2))) // it may have advertised no capabilities
}

// cutLoose removes a dependency of a handover.
func (w *world) cutLoose(e *handover) {
	k := w.task(e.id)
	for edge := range w.state.Tasks.Graph.Needs(k.Node) {
		if v := w.state.Tasks.Graph.Edge(edge); !v.Resolved && state.Gates(v.Kind) {
			l := w.state.Tasks.ShownLink(edge)
			out := w.request(Actor{Kind: Operator}, "remove-dependency", fmt.Sprintf(`{"taskId":%q,"dependencyId":%q}`, e.id, l.ID))
			w.must(out.Refused == nil, "%v", out.Refused)
			return
		}
	}
}

// finish has the agent of a handover report that it is done. For a server a person does so.
func (w *world) finish(e *handover) {
	for _, m := range w.members {
		switch {
		case m.ID != e.holder || e.state.Final():
		case m.far || !m.up:
			out := w.request(Actor{Kind: Operator}, "complete-task", fmt.Sprintf(`{"taskId":%q}`, e.id))
			w.must(out.Refused == nil, "%+v cannot be completed: %v", e, out.Refused)
		case e.brought && e.out == m.run:
			w.utter(m, m.actor(), fmt.Sprintf(`{"id":%q,"status":"completed"}`, e.id))
		}
	}
}
