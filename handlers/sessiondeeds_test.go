package handlers

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Messages that the members of a session send.

// draft is a message to be sent.
type draft struct {
	session, id, from, to, kind string
	chain, reply                string
	payload                     string
	fromType, toType            string
}

// spell encodes a message. Sometimes it omits a member that is optional in practice.
func (w *world) spell(d *draft) string {
	s := w.minutes.sitting(d.session)
	if d.id == "" {
		d.id = w.messageID()
	}
	if d.fromType == "" {
		d.fromType = s.typeOf(d.from)
	}
	if d.toType == "" {
		d.toType = s.typeOf(d.to)
	}
	w.sessions.number++
	text := fmt.Sprintf(`{"message_id":%q,"timestamp":%q`, d.id, object.Timestamp(w.at))
	switch n := w.chance.IntN(20); {
	case n == 0:
		text += fmt.Sprintf(`,"sequence_number":%d`, w.sessions.number/2)
	case n > 1:
		text += fmt.Sprintf(`,"sequence_number":%d`, w.sessions.number)
	}
	text += fmt.Sprintf(`,"from_agent":{"agent_id":%q,"agent_type":%q},"to_agent":{"agent_type":%q,"agent_id":%q},"message_type":%q`,
		d.from, d.fromType, d.toType, d.to, d.kind)
	if d.chain != "" {
		text += fmt.Sprintf(`,"correlation_id":%q`, d.chain)
	}
	if d.reply != "" {
		text += fmt.Sprintf(`,"reply_to":%q`, d.reply)
	}
	if w.chance.IntN(12) > 0 {
		text += fmt.Sprintf(`,"session_id":%q`, d.session)
	}
	return text + `,"payload":` + d.payload + `,"other":[1.0,"é"]}`
}

func (w *world) messageID() string {
	if w.chance.IntN(30) == 0 {
		w.ids++
		return fmt.Sprintf("msg-%d-abc", w.ids)
	}
	var b [16]byte
	for i := range b {
		b[i] = byte(w.chance.Uint32())
	}
	return asUUID(b)
}

// memberOf returns a member of a type in a session, or "".
func (w *world) memberOf(s *sitting, kind string) string {
	var names []string
	for _, m := range s.spec.Members {
		if m.AgentType == kind || kind == "" {
			names = append(names, m.AgentID)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return w.one(names...)
}

// confer has a member of a session send a message that fits its state, sometimes one that does
// not.
func (w *world) confer() {
	s := w.minutes.order[w.chance.IntN(len(w.minutes.order))]
	name := w.memberOf(s, "")
	if name == "" || !s.open && w.chance.IntN(10) > 0 {
		return
	}
	var d *draft
	switch n := w.chance.IntN(40); {
	case n == 0:
		w.sayAgain()
		return
	case n == 1:
		d = w.smallTalk(s, name)
	case s.typeOf(name) == session.AgentArchitect:
		d = w.plan(s, name)
	case s.typeOf(name) == session.AgentDeveloper:
		d = w.develop(s, name)
	default:
		d = w.judge(s, name)
	}
	if d == nil || d.to == "" {
		return
	}
	d.session, d.from = s.spec.ID, name
	if w.chance.IntN(25) == 0 {
		w.spoil(s, d)
	}
	out := w.say(name, w.spell(d))
	for i := range out.Records {
		if f, _ := state.Decode(&out.Records[i], new([]object.Member)); out.Records[i].Kind == events.SessionClosed {
			w.part(f.(*state.SessionClosed).Stop)
			return
		}
	}
}

// sayAgain sends an earlier message again, or another one with the same id.
func (w *world) sayAgain() {
	if len(w.sessions.spoken) == 0 {
		return
	}
	s := w.sessions.spoken[w.chance.IntN(len(w.sessions.spoken))]
	if w.chance.IntN(3) == 0 {
		s.line = strings.Replace(s.line, `"payload":{"`, fmt.Sprintf(`"payload":{"step %d":1,"`, w.steps), 1)
	}
	w.say(s.from, s.line)
}

// spoil makes a message invalid.
func (w *world) spoil(s *sitting, d *draft) {
	switch w.chance.IntN(7) {
	case 0:
		d.from = w.memberOf(s, "")
	case 1:
		d.to = w.memberOf(s, "")
	case 2:
		d.to, d.toType = "a12", session.AgentDeveloper
	case 3:
		d.fromType = w.one(session.AgentTypes...)
	case 4:
		d.kind = w.one(session.Types...)
	case 5:
		d.payload = strings.Replace(d.payload, `"task_id":"`, `"task_id":"no-`, 1)
	default:
		d.payload = w.one(`{}`, `[]`, `{"task_id":7}`, `{"scope":"task","target_id":"none","reason":"r","cleanup_required":true}`)
	}
}

// smallTalk returns a message that any member may send to any other.
func (w *world) smallTalk(s *sitting, _ string) *draft {
	d := &draft{to: w.memberOf(s, "")}
	about := ""
	if len(s.live) > 0 {
		about = s.live[w.chance.IntN(len(s.live))].id
	}
	switch w.chance.IntN(3) {
	case 0:
		d.kind, d.payload = session.TypeFeedback, fmt.Sprintf(`{"feedback_type":"guidance","subject":"s","content":"<é>","action_required":false,"related_task_id":%q}`, about+"x")
	case 1:
		d.kind, d.payload = session.TypeStatusQuery, `{}`
		if about != "" {
			d.payload = fmt.Sprintf(`{"task_id":%q}`, about)
		}
	default:
		d.kind, d.payload, d.reply = session.TypeStatusResponse, `{"fine":1e2}`, "msg-1"
	}
	return d
}

// someJob returns a random open task of a session, or nil.
func (w *world) someJob(s *sitting, of func(j *job) bool) *job {
	var fit []*job
	for _, j := range s.live {
		if of(j) {
			fit = append(fit, j)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.chance.IntN(len(fit))]
}

// plan returns a message of an architect.
func (w *world) plan(s *sitting, _ string) *draft {
	switch n := w.chance.IntN(300); {
	case n == 0 && w.chance.IntN(6) == 0:
		return &draft{kind: session.TypeAbort, to: w.memberOf(s, ""), payload: abort(session.AbortSession, s.spec.ID)}
	case n < 12:
		return w.smallTalk(s, "")
	}
	j := w.someJob(s, func(j *job) bool { return j.revision == nil })
	if j == nil || len(s.live) < 8 && w.chance.IntN(4) == 0 {
		return w.assign(s)
	}
	d := &draft{chain: j.chain}
	switch {
	case w.chance.IntN(12) == 0:
		d.kind, d.to, d.payload = session.TypeAbort, w.one(j.developer, w.memberOf(s, "")), abort(session.AbortTask, j.id)
	case j.phase == session.PhaseRevise && w.chance.IntN(3) > 0:
		d.kind, d.to, d.payload = session.TypeTaskAssignment, w.one(j.developer, w.memberOf(s, session.AgentDeveloper)), w.assignment(j.id, "")
	case j.phase == session.PhaseRevise, j.phase == session.PhaseRedesign && w.chance.IntN(3) == 0:
		d = w.assign(s)
		d.chain = j.chain
	case j.phase == session.PhaseCompleted, j.phase == session.PhaseWorking && w.chance.IntN(5) == 0, w.chance.IntN(30) == 0:
		d.kind, d.to, d.payload = session.TypeReviewRequest, w.memberOf(s, session.AgentReviewer), w.reviewRequest(j)
	default:
		return nil
	}
	return d
}

func abort(scope, target string) string {
	return fmt.Sprintf(`{"scope":%q,"target_id":%q,"reason":"enough","cleanup_required":true}`, scope, target)
}

// assign returns the assignment of a new task.
func (w *world) assign(s *sitting) *draft {
	w.ids++
	id := fmt.Sprintf("t%d", w.ids)
	if w.chance.IntN(30) == 0 {
		id = w.someTask()
	}
	var needs []string
	for range w.chance.IntN(3) * w.chance.IntN(2) {
		needs = append(needs, fmt.Sprintf(`{"depends_on":[%q],"dependency_type":%q}`, w.someTask(), w.one("hard", "soft")))
	}
	return &draft{
		kind: session.TypeTaskAssignment, to: w.memberOf(s, session.AgentDeveloper),
		payload: w.assignment(id, `,"dependencies":[`+strings.Join(needs, ",")+`]`),
	}
}

func (w *world) assignment(id, more string) string {
	if w.chance.IntN(4) == 0 {
		more += fmt.Sprintf(`,"max_iterations":%d`, 1+w.chance.IntN(3))
	}
	if w.chance.IntN(4) == 0 {
		more += fmt.Sprintf(`,"deadline":%q`, object.Timestamp(w.at.Add(time.Duration(w.chance.IntN(180)-30)*time.Second)))
	}
	breaks := `,"must_not_break":[]`
	if w.chance.IntN(30) == 0 {
		breaks = "" // which is accepted
	}
	return fmt.Sprintf(`{"task":{"task_id":%q,"task_description":"step %d","context":{"specs":[],"reference_files":[]},
		"constraints":{"scope":["src/**","*.md"],"testing_required":true%s},"acceptance_criteria":["it works"]},"priority":%q%s}`,
		id, w.steps, breaks, w.one("high", "medium", "low"), more)
}

// Messages that developers and reviewers send about their work.

// develop returns a message of a developer.
func (w *world) develop(s *sitting, name string) *draft {
	j := w.someJob(s, func(j *job) bool {
		return j.developer == name && (j.phase == session.PhaseAssigned || j.phase == session.PhaseWorking || j.phase == session.PhaseReviewing && !j.done)
	})
	if w.chance.IntN(30) == 0 {
		j = w.someJob(s, func(*job) bool { return true }) // any task, of any developer
	}
	if j == nil {
		return nil
	}
	d := &draft{to: w.one(j.architect, j.architect, w.memberOf(s, session.AgentArchitect)), chain: w.one(j.chain, j.chain, "")}
	switch n := w.chance.IntN(10); {
	case j.phase == session.PhaseAssigned && n < 6:
		d.kind, d.payload, d.reply = session.TypeAcknowledgment, `{}`, w.one(j.message, j.message, "")
	case n < 8:
		d.kind, d.payload = session.TypeTaskProgress, w.progress(j)
	default:
		d.kind, d.payload = session.TypeTaskCompletion, w.completion(j)
	}
	return d
}

func (w *world) progress(j *job) string {
	return fmt.Sprintf(`{"task_id":%q,"progress_percent":%d,"current_step":"step %d","files_modified_so_far":[%q]}`,
		j.id, w.chance.IntN(101), w.steps, w.one("src/a.go", "src/b.go", "secret"))
}

// completion returns the outcome of a task, with files inside or outside its scope.
func (w *world) completion(j *job) string {
	status, more, file := session.OutcomeCompleted, "", "src/a.go"
	switch n := w.chance.IntN(20); {
	case n < 3:
		file = w.one("secret", "../src/a.go", "/src/a.go")
	case n < 4:
		status, more = session.OutcomePartial, `,"blockers":["no time"]`
	case n < 6:
		status, more = session.OutcomeFailed, `,"blockers":["no idea"]`
	case n < 10:
		status = w.one(session.OutcomeFailed, session.OutcomeFailed, session.OutcomeFailed, session.OutcomeCompleted)
		kind := w.one(session.ExecutionException, session.ExecutionException, session.ExecutionTimeout, session.ExecutionScopeViolation, session.ExecutionResourceLimit, "odd")
		more = fmt.Sprintf(`,"error":{"error_type":%q,"error_message":"oh"}`, kind)
	}
	return fmt.Sprintf(`{"task_id":%q,"status":%q,"changes":{"files_created":[],"files_modified":[{"path":%q,"change_type":"modified"}],"files_deleted":[]},
		"summary":"step %d","self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}%s}`, j.id, status, file, w.steps, more)
}

func (w *world) reviewRequest(j *job) string {
	w.ids++
	id := fmt.Sprintf("r%d", w.ids)
	if w.chance.IntN(40) == 0 && len(j.sitting.asked) > 0 {
		id = j.sitting.asked[0].id
	}
	named := j.id
	if j.revises != nil && w.chance.IntN(3) == 0 {
		named = j.revises.id // stands for its latest revision
	}
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"scope":{"files":["src/a.go"],"focus_areas":["logic"]},
		"criteria":{"must_pass_tests":true,"must_pass_type_check":true,"custom_checks":[{"name":"n","command":"rm -rf /","expected_exit_code":0}]},
		"context":{"task_description":"d","acceptance_criteria":[]}}`, id, named)
}

// judge returns a message of a reviewer.
func (w *world) judge(s *sitting, name string) *draft {
	if len(s.asked) == 0 {
		return nil
	}
	v := s.asked[w.chance.IntN(len(s.asked))]
	for _, o := range s.asked {
		if o.reviewer == name && w.chance.IntN(20) > 0 {
			v = o
			break
		}
	}
	if v.reviewer != name && w.chance.IntN(8) > 0 {
		return nil
	}
	return &draft{to: w.one(v.job.architect, v.job.architect, w.memberOf(s, session.AgentArchitect)), kind: session.TypeReviewResult, chain: v.job.chain, payload: w.result1(v)}
}

func (w *world) result1(v *judged) string {
	verdict := w.one(session.VerdictApproved, session.VerdictApproved, session.VerdictChangesRequested, session.VerdictChangesRequested, session.VerdictChangesRequested, session.VerdictRejected)
	var findings []string
	for i := range w.chance.IntN(4) {
		severity := w.one(session.SeverityCritical, session.SeverityMajor, session.SeverityMinor, session.SeveritySuggestion)
		fixed := ""
		if verdict == session.VerdictApproved && w.chance.IntN(4) > 0 || w.chance.IntN(4) == 0 {
			fixed = `,"fixed_in_iteration":1`
		}
		findings = append(findings, fmt.Sprintf(`{"finding_id":"f%d","severity":%q,"category":"bug","location":{"file":"src/a.go"},"description":"step %d","rationale":"r"%s}`,
			i, severity, w.steps, fixed))
	}
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"verdict":%q,"findings":[%s],
		"verification":{"tests":{"passed":%t},"type_check":{"passed":true},"custom":{%s}},"summary":"s"}`,
		v.id, w.one(v.job.id, v.job.id, v.job.id, "other"), verdict, strings.Join(findings, ","), w.chance.IntN(10) > 0, w.one(`"n":{"passed":true}`, `"n":{"passed":true}`, `"n":{"passed":true}`, ""))
}
