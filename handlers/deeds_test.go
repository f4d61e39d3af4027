package handlers

import (
	"fmt"
	"strconv"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

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
		text += fmt.Sprintf(`,"description":%q`, strings.Repeat("x", heavy))
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
func (w *world) goOn(m *inhabitant, id string, state wire.TaskState) bool {
	person := Actor{Kind: Operator}
	task := fmt.Sprintf(`"taskId":%q`, id)
	switch state {
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
		if w.chance.IntN(3) == 0 {
			w.request(m.actor(), "start-task", "{"+task+"}")
		} else {
			w.request(person, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"do"}`, w.state.tasks.byID[id].more.question))
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
	k := w.state.tasks.byID[id]
	if k == nil {
		return
	}
	for e := range w.state.tasks.graph.Needs(k.node) {
		l := w.state.tasks.shownLink(e)
		w.request(from, "remove-dependency", fmt.Sprintf(`{"taskId":%q,"dependencyId":%q}`, id, w.one(l.ID, l.On)))
		return
	}
}
