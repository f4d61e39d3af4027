package handlers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// setClock sets the clock of the machine forward. Back, it would revive keys that have expired.
func (w *world) setClock(by time.Duration) {
	w.at = w.at.Add(by)
	w.do(Actor{}, wire.ClockSet{By: by})
}

// step makes one thing happen.
func (w *world) step() {
	w.steps++
	w.at = w.at.Add(time.Duration(w.chance.IntN(1500)) * time.Millisecond)
	if w.chance.IntN(500) == 0 {
		w.setClock(time.Duration(w.chance.IntN(3600)) * time.Second)
	}
	if due, some := w.state.Due(); some && !due.After(w.at) {
		w.do(Actor{}, wire.Tick{Late: w.chance.IntN(20) == 0, Blocked: w.chance.IntN(20) == 0})
		due, some = w.state.Due()
		w.must(!some || due.After(w.at), "what was due at %v is due still", due)
	}
	w.lookAtMissed()
	m := w.members[w.chance.IntN(len(w.members))]
	if w.chance.IntN(4) == 0 {
		w.post(m)
	}
	if w.chance.IntN(3) == 0 {
		w.confer()
	}
	w.carry()
	switch n := w.chance.IntN(1000); {
	case n < 120:
		w.submit(m)
	case n < 500:
		w.work()
	case n < 620:
		w.deliver()
	case n < 660:
		w.read(m)
	case n < 670:
		w.request(w.anyCaller(m), "retry-task", fmt.Sprintf(`{"taskId":%q,"keep":%t,"dependents":%t}`, w.someTask(), w.chance.IntN(2) == 0, w.chance.IntN(4) > 0))
	case n < 690:
		w.request(w.anyCaller(m), "cancel-task", fmt.Sprintf(`{"taskId":%q}`, w.someTask()))
	case n < 710:
		w.request(w.anyCaller(m), "start-task", fmt.Sprintf(`{"taskId":%q}`, w.someTask()))
	case n < 760:
		w.repeat()
	case n < 790:
		w.question(m)
	case n < 810:
		w.answer()
	case n < 920:
		w.deed(m)
	case n < 950:
		w.administer(m)
	case n < 982:
		w.accident(m)
	case n < 988:
		w.check()
	case n < 998:
		w.reconfigure(m)
	case w.chance.IntN(8) == 0:
		w.catastrophe()
	}
}

// check reports automatic work for a task of an agent.
func (w *world) check() {
	held := func(k *state.Task) bool { return k.View.AssignedTo != "" && !k.View.State.Final() }
	from := w.chance.IntN(len(w.state.Tasks.List) + 1)
	at := slices.IndexFunc(w.state.Tasks.List[from:], held)
	verifying := slices.IndexFunc(w.state.Tasks.List, func(k *state.Task) bool { return k.View.State == wire.TaskVerifying })
	switch {
	case verifying >= 0 && w.chance.IntN(2) == 0:
		from, at = 0, verifying
	case at < 0:
		return
	}
	k := w.state.Tasks.List[from+at]
	kinds := []string{
		events.TaskWorkspace, events.TaskVerifying, events.TaskVerifying, events.TaskVerified, events.TaskUnverified, events.TaskMerged, events.TaskUnmerged, events.TaskUnchanged,
	}
	switch {
	case k.View.State == wire.TaskVerifying:
		kinds = kinds[3:5]
	case k.View.State == wire.TaskRunning && w.chance.IntN(2) == 0:
		kinds = kinds[1:3]
	}
	w.do(Actor{}, &wire.TaskChecked{
		Kind: kinds[w.chance.IntN(len(kinds))], Agent: k.View.AssignedTo, Task: k.View.ID, Text: "is checked", Workspace: &wire.Workspace{Path: "/w", Branch: "b"},
	})
}

// anyCaller returns an agent, a caller with its key, or a person.
func (w *world) anyCaller(m *inhabitant) Actor {
	switch w.chance.IntN(12) {
	case 0:
		return Actor{Kind: Operator}
	case 1:
		w.ids++
		return Actor{Kind: Agent, Name: m.ID, Run: fmt.Sprintf("door:%d", w.ids)}
	}
	if !m.up && !m.dying {
		return Actor{Kind: Operator}
	}
	a := m.actor()
	a.ActsForOthers = w.chance.IntN(4) == 0
	return a
}

// request makes a request under a new id.
func (w *world) request(from Actor, operation, payload string) Outcome {
	w.ids++
	id := fmt.Sprintf("r%d", w.ids)
	for _, m := range w.members {
		if m.says(from) && m.counts {
			m.ids++
			id = fmt.Sprintf("%d", m.ids)
		}
	}
	r := &wire.Request{ID: id, Operation: operation, Timestamp: object.Timestamp(w.at), Payload: []byte(payload)}
	err := prepare(r)
	w.must(err == nil, "%s cannot be read: %v", payload, err)
	return w.do(from, r)
}

func (w *world) submit(m *inhabitant) {
	if w.state.Open() > 120 {
		w.tidy()
	}
	task := fmt.Sprintf(`{"type":"t","name":"n%d","payload":{"step":%d}`, w.steps, w.steps)
	if w.chance.IntN(2) == 0 {
		task += fmt.Sprintf(`,"requiredRole":%q`, wire.Roles[w.chance.IntN(3)])
	}
	if w.chance.IntN(3) > 0 {
		task += fmt.Sprintf(`,"requiredCapabilities":[%q]`, skills[w.chance.IntN(4)])
	}
	if w.chance.IntN(3) == 0 {
		task += fmt.Sprintf(`,"priority":%d`, w.chance.IntN(6))
	}
	var needs []string
	for range w.chance.IntN(4) * w.chance.IntN(2) {
		needs = append(needs, w.dependency())
	}
	task += w.documents() + `,"dependencies":[` + strings.Join(needs, ",") + `]}`
	if w.chance.IntN(3) > 0 {
		w.request(w.anyCaller(m), "submit-task", task)
		return
	}
	task = strings.ReplaceAll(task, `"name":`, `"spec":"s","title":`)
	w.request(Actor{Kind: Operator}, "hub:submit-task", task)
}

// tidy has a person cancel the task that has been open longest.
func (w *world) tidy() {
	oldest := slices.IndexFunc(w.state.Tasks.List, func(k *state.Task) bool { return !k.View.State.Final() })
	w.request(Actor{Kind: Operator}, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, w.state.Tasks.List[oldest].View.ID))
}

// someTask returns one of the latest tasks, or an unknown id.
func (w *world) someTask() string {
	if len(w.recent) == 0 || w.chance.IntN(50) == 0 {
		return "no-such-task"
	}
	if len(w.gone) > 0 && w.chance.IntN(60) == 0 {
		return w.gone[w.chance.IntN(len(w.gone))]
	}
	return w.recent[w.chance.IntN(len(w.recent))]
}

// work has an agent report on a task that it holds.
func (w *world) work() {
	m := w.members[w.chance.IntN(len(w.members))]
	holds := w.state.TasksOf(m.ID)
	if len(holds) == 0 || !m.up && !m.dying {
		return
	}
	held := holds[w.chance.IntN(len(holds))]
	id := held.ID
	if w.task(id).Work() != nil && w.chance.IntN(12) > 0 {
		return // reported in its session instead
	}
	if w.chance.IntN(4) > 0 && w.goOn(m, id, held.State) {
		return
	}
	switch n := w.chance.IntN(20); {
	case n < 11:
		w.request(m.actor(), "complete-task", fmt.Sprintf(`{"taskId":%q,"result":%s}`, id, w.result()))
	case n < 12:
		w.request(m.actor(), "fail-task", fmt.Sprintf(`{"taskId":%q,"error":"no idea"}`, id))
	case n < 13:
		w.request(Actor{Kind: Operator}, "complete-task", fmt.Sprintf(`{"taskId":%q}`, id))
	case n < 14:
		w.request(w.anyCaller(w.members[w.chance.IntN(len(w.members))]), "complete-task", fmt.Sprintf(`{"taskId":%q}`, id))
	case n < 17:
		w.do(m.actor(), &wire.AgentEvent{Name: "progress", Body: &activity.Progress{TaskID: id, Progress: w.chance.Float64(), Output: wire.Raw(`{"pages":1}`)}})
	case n < 18:
		w.report(m, id)
	default:
		w.do(m.actor(), &wire.AgentEvent{Name: "error", Body: &activity.Trouble{TaskID: id, Error: "oh", Recoverable: n == 18}})
	}
}

// report has a coding agent report its activity.
func (w *world) report(m *inhabitant, id string) {
	switch w.chance.IntN(8) {
	case 0:
		w.do(m.actor(), &wire.AgentEvent{Name: "limited", Body: &activity.Limited{Until: object.Timestamp(w.at.Add(time.Duration(w.chance.IntN(60)) * time.Second))}})
	case 1:
		w.do(m.actor(), &wire.AgentEvent{Name: "receipt", Body: &activity.Receipt{Seq: 1, State: activity.InContext}})
	case 2:
		w.do(m.actor(), &wire.AgentEvent{Name: "session", Body: &activity.Conversation{ID: fmt.Sprint("c", w.chance.IntN(3))}})
	case 3:
		w.request(m.actor(), "return-task", fmt.Sprintf(`{"taskId":%q,"reason":"tired","after":%q}`, id, object.Timestamp(w.at.Add(time.Duration(w.chance.IntN(60)-30)*time.Second))))
	case 4:
		w.request(m.actor(), "report-progress", fmt.Sprintf(`{"taskId":%q,"message":"m"}`, id))
	case 5:
		w.request(m.actor(), "withdraw-question", fmt.Sprintf(`{"questionId":"q%d"}`, w.state.Questions.Numbered))
	case 6:
		w.request(m.actor(), "ask-permission", fmt.Sprintf(`{"taskId":%q,"tool":"Bash","title":"t","input":{"command":"c%d"},`+
			`"choices":[{"id":"yes","kind":"allow_session"},{"id":"no","kind":"deny"}],"wait":%d}`, id, w.chance.IntN(3), 1+w.chance.IntN(20_000)))
	default:
		w.do(m.actor(), &wire.AgentEvent{Name: "usage", Body: &activity.Usage{TaskID: id, Input: 10, Output: 2, Cost: 0.5}})
	}
}

// deliver delivers or loses one notice.
func (w *world) deliver() {
	if len(w.mail) == 0 {
		return
	}
	i := w.chance.IntN(len(w.mail))
	l := w.mail[i]
	w.mail = append(w.mail[:i:i], w.mail[i+1:]...)
	lost := w.chance.IntN(30) == 0
	for _, m := range w.members {
		if m.ID == l.To.Name && (m.run != l.To.Run || !m.up) {
			lost = true
		}
	}
	w.do(Actor{}, &wire.Delivered{Agent: l.To.Name, Run: l.To.Run, Task: l.Task, Lost: lost})
}

func (w *world) read(m *inhabitant) {
	from := w.anyCaller(m)
	var out Outcome
	switch w.chance.IntN(10) {
	case 8:
		out = w.request(from, w.one("list-sessions", "list-reviews"), `{}`)
	case 9:
		out = w.request(from, "get-session", fmt.Sprintf(`{"session_id":"s%d"}`, w.chance.IntN(4)))
	case 0:
		out = w.request(from, "query-agents", `{"status":"idle"}`)
	case 3:
		out = w.request(from, "query-servers", `{}`)
	case 4:
		out = w.request(from, "match-agents", fmt.Sprintf(`{"taskId":%q}`, w.someTask()))
	case 5:
		out = w.request(from, "list-notes", fmt.Sprintf(`{"taskId":%q}`, w.someTask()))
	case 6:
		out = w.request(Actor{Kind: Operator}, "check-tasks", fmt.Sprintf(`{"sessionId":%q}`, m.ID))
	case 1:
		out = w.request(from, "query-tasks", `{"limit":5}`)
	case 2:
		out = w.request(from, "get-task", fmt.Sprintf(`{"taskId":%q}`, w.someTask()))
	default:
		out = w.request(Actor{Kind: Operator}, "list-questions", `{}`)
	}
	require.True(w.t, len(out.Records) == 0 || m.far, "reading changes nothing, but that a server is heard of")
	if !m.far {
		w.readLater(from)
	}
}

// repeat sends one of the latest requests again: from the same run or, if that has ended, from
// the next.
func (w *world) repeat() {
	if len(w.sent) == 0 {
		return
	}
	i := w.chance.IntN(len(w.sent))
	s := w.sent[i]
	from := s.from
	for _, m := range w.members {
		if m.ID == from.Name && m.runs > 0 && from.Run != m.run && len(from.Run) > 0 && from.Run[0] == 'a' {
			from = m.actor()
		}
	}
	a := w.state.Agents.ByID[from.Name]
	if a == nil {
		w.do(from, s.request)
		return
	}
	kept := a.Memories.Find(s.request.ID)
	remembered := kept != nil && kept.Run == s.from.Run && kept.Sum == s.request.Sum && kept.Timestamp == s.request.Timestamp
	answered := remembered && (kept.Answer != nil || kept.Err != nil)
	if !remembered { // decided anew; the new answer counts from now on
		w.sent = slices.Delete(w.sent, i, i+1)
	}
	out := w.do(from, s.request)
	switch {
	case answered && s.answer != "":
		w.saw["repeat"]++
		require.Empty(w.t, out.Records, "a repeat has no second effect")
		require.Len(w.t, out.Letters, 1)
		require.Equal(w.t, s.answer, w.text(&out.Letters[0]), "and the same answer")
	case answered:
		w.saw["repeat of a question"]++
		require.Empty(w.t, out.Records)
	case remembered && from.Run == s.from.Run:
		w.saw["repeat while it waits"]++
		require.True(w.t, out.Waits)
		require.Empty(w.t, out.Records)
	}
}

func (w *world) question(m *inhabitant) {
	if len(w.state.Questions.Open) > 30 {
		w.answer()
		return
	}
	from := w.anyCaller(m)
	switch {
	case from.Kind != Agent || m.far && m.says(from):
	case w.chance.IntN(4) == 0:
		w.do(from, &wire.AgentEvent{Name: "question", Body: &activity.OpenQuestion{Question: "really?"}})
	default:
		w.request(from, "ask-user", fmt.Sprintf(`{"question":"q%d","options":[{"value":"yes"},{"value":"no"}],"timeout":60000,"wait":%d}`,
			w.chance.IntN(2), 20_000*(1+2*w.chance.IntN(2))))
	}
}

func (w *world) answer() {
	if len(w.state.Questions.Open) > 0 {
		q := w.state.Questions.Open[w.chance.IntN(len(w.state.Questions.Open))]
		answer := "yes"
		if len(q.View.Options) > 2 { // the decision about a task
			answer = q.View.Options[w.chance.IntN(3)].Value
		}
		w.request(Actor{Kind: Operator}, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":%q}`, q.View.ID, answer))
	}
}

// Operations on tasks other than submitting, holding and ending them.

var contracts = []string{"k1", "k2", "k3"}

func (w *world) one(of ...string) string { return of[w.chance.IntN(len(of))] }

// dependency returns a random dependency.
func (w *world) dependency() string {
	id := w.someTask()
	switch w.chance.IntN(6) {
	case 0:
		return fmt.Sprintf(`{"depends_on_task_id":%q,"dependency_type":"related"}`, id)
	case 1, 2:
		return fmt.Sprintf(`{"depends_on_task_id":%q,"dependency_type":"input","contract_key":%q}`, id, w.one(contracts...))
	case 3:
		return fmt.Sprintf(`{"depends_on_task_id":%q}`, id)
	}
	return strconv.Quote(id)
}

// documents returns the optional documents of a task.
func (w *world) documents() string {
	var text string
	if w.chance.IntN(3) == 0 {
		text += `,"requirements":` + w.requirements()
	}
	if w.chance.IntN(4) == 0 {
		text += `,"structured_spec":` + w.spec()
	}
	if w.chance.IntN(100) == 0 {
		text += fmt.Sprintf(`,"description":%q`, strings.Repeat("x", state.Heavy))
	}
	return text
}

func (w *world) requirements() string {
	texts := make([]string, 0, 5)
	if w.chance.IntN(2) == 0 {
		texts = append(texts, fmt.Sprintf(`"languages":[%q]`, w.one(skills...)))
	}
	if w.chance.IntN(4) == 0 {
		texts = append(texts, fmt.Sprintf(`"repo":%q`, w.one("api", "web")))
	}
	if w.chance.IntN(4) == 0 {
		texts = append(texts, fmt.Sprintf(`"environments":[%q,"mars"]`, w.one("linux", "macos")))
	}
	if w.chance.IntN(3) == 0 {
		texts = append(texts, fmt.Sprintf(`"tags":[%q]`, w.one("fast", "gpu")))
	}
	if w.chance.IntN(4) == 0 {
		texts = append(texts, fmt.Sprintf(`"prefer_server":"a%d"`, w.chance.IntN(len(w.members))))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func (w *world) spec() string {
	return fmt.Sprintf(`{"$schema":"orchestratia/task-spec/%s","requirements":[{"description":"d","priority":"must"}],
		"constraints":{"max_files_changed":1},
		"output_expectations":{"contracts":{%q:{"description":"d","required":true},"other":{"description":"d"}}}}`,
		w.one("v1", "v1", "v1", "v7"), w.one(contracts...))
}

// abilities returns capabilities with the given capacity.
func (w *world) abilities(capacity int) wire.Raw {
	return wire.Raw(fmt.Sprintf(`{"languages":[%q,%q],"environments":[%q],"tags":[%q],"repos":{%q:{"languages":[%q]}},"max_concurrent_tasks":%d}`,
		w.one(skills...), w.one(skills...), w.one("linux", "macos"), w.one("fast", "gpu"), w.one("api", "web"), w.one(skills...), capacity))
}

// result returns a random result: a text, any JSON, or a document with contracts, which is
// sometimes invalid.
func (w *world) result() string {
	switch w.chance.IntN(6) {
	case 0:
		return `"a text"`
	case 1:
		return fmt.Sprintf(`{"by":"me","contracts":{%q:{"status":"fulfilled"}}}`, w.one(contracts...))
	case 2:
		return `{"$schema":"orchestratia/task-result/v1","contracts":{"k1":{"status":"whatever"}}}`
	}
	var kept []string
	for _, key := range contracts {
		switch w.chance.IntN(4) {
		case 0:
			kept = append(kept, fmt.Sprintf(`%q:{"status":"partial","data":{"step":%d}}`, key, w.steps))
		case 1:
			kept = append(kept, fmt.Sprintf(`%q:{"status":"skipped","data":{"reason":"none"}}`, key))
		case 2:
			kept = append(kept, fmt.Sprintf(`%q:{"status":"fulfilled","data":[%d]}`, key, w.steps))
		}
	}
	return fmt.Sprintf(`{"$schema":"orchestratia/task-result/v1","summary":"s","changes":{"files_modified":["a","b"]},"contracts":{%s}}`, strings.Join(kept, ","))
}

// goOn has an agent take the next step of a task that it holds. It returns false if that step is
// to end the task.
func (w *world) goOn(m *inhabitant, id string, st wire.TaskState) bool {
	person := Actor{Kind: Operator}
	task := fmt.Sprintf(`"taskId":%q`, id)
	switch st {
	case wire.TaskAssigned:
		w.request(m.actor(), "start-task", "{"+task+"}")
	case wire.TaskPlanning:
		w.request(m.actor(), "submit-plan", fmt.Sprintf(`{%s,"plan":"plan %d"}`, task, w.steps))
	case wire.TaskPlanReview:
		if w.chance.IntN(3) == 0 {
			w.request(person, "revise-plan", fmt.Sprintf(`{%s,"feedback":"no"}`, task))
		} else {
			w.request(w.anyCaller(w.members[w.chance.IntN(len(w.members))]), "approve-plan", "{"+task+"}")
			w.request(person, "approve-plan", "{"+task+"}")
		}
	case wire.TaskNeedsHuman:
		q := w.state.BlockerOf(w.task(id)) // its agent only waits, and cannot start it again
		switch {
		case q != nil:
			w.request(person, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"do"}`, q.View.ID))
		case w.chance.IntN(3) == 0:
			w.request(m.actor(), "start-task", "{"+task+"}")
		default:
			w.request(person, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"do"}`, w.task(id).Extra.Question))
		}
	case wire.TaskRunning:
		if w.chance.IntN(6) > 0 {
			return false
		}
		w.request(m.actor(), "request-help", fmt.Sprintf(`{%s,"question":"how?"}`, task))
	}
	return true
}

// deed makes a random request about a random task.
func (w *world) deed(m *inhabitant) {
	from, id := w.anyCaller(m), w.someTask()
	task := fmt.Sprintf(`"taskId":%q`, id)
	switch n := w.chance.IntN(20); {
	case n < 3:
		agent := w.members[w.chance.IntN(len(w.members))].ID
		w.request(Actor{Kind: Operator}, "assign-task", fmt.Sprintf(`{%s,"agent":%q,"requirePlan":%t}`, task, agent, w.chance.IntN(2) == 0))
	case n < 5:
		out := w.request(w.anyCaller(m), "auto-assign", "{"+task+"}")
		if len(out.Letters) > 0 {
			if a, ok := out.Letters[len(out.Letters)-1].Payload.(*wire.Assignment); ok {
				w.saw[a.Status]++
			}
		}
	case n < 8:
		w.request(from, "update-task", fmt.Sprintf(`{%s,%s}`, task, w.one(
			fmt.Sprintf(`"priority":%d`, w.chance.IntN(6)), `"requirements":`+w.requirements(), `"requirements":null`,
			`"structured_spec":`+w.spec(), `"description":"anew"`, `"structured_spec":null`,
		)))
	case n < 12:
		w.link(from, id)
	case n < 14:
		w.unlink(from, id)
	case n < 16:
		w.request(from, "add-note", fmt.Sprintf(`{%s,"content":"c","urgent":%t}`, task, w.chance.IntN(2) == 0))
	case n < 19 && (m.up || m.dying):
		capabilities := w.abilities(w.chance.IntN(4))
		w.request(m.actor(), "update-capabilities", fmt.Sprintf(`{"capabilities":%s,"system":{"load":%d}}`, capabilities, w.chance.IntN(3)))
	case m.up || m.dying:
		w.request(m.actor(), "poll-tasks", "{}")
	}
}

func (w *world) link(from Actor, id string) {
	kind, contract := w.one(hub.DependsBlocks, hub.DependsInput, hub.DependsInput, hub.DependsRelated), ""
	if kind == hub.DependsInput {
		contract = fmt.Sprintf(`,"contractKey":%q`, w.one(contracts...))
	}
	out := w.request(from, "add-dependency", fmt.Sprintf(`{"taskId":%q,"dependsOnTaskId":%q,"dependencyType":%q%s}`, id, w.someTask(), kind, contract))
	if out.Refused != nil {
		if reason, ok := out.Refused.Details["reason"].(string); ok {
			w.saw["link refused: "+reason]++
		}
	}
}

// unlink removes one dependency of a task, named by its id or by the other task.
func (w *world) unlink(from Actor, id string) {
	k := w.task(id)
	if k == nil {
		return
	}
	for e := range w.state.Tasks.Graph.Needs(k.Node) {
		l := w.state.Tasks.ShownLink(e)
		w.request(from, "remove-dependency", fmt.Sprintf(`{"taskId":%q,"dependencyId":%q}`, id, w.one(l.ID, l.On)))
		return
	}
}
