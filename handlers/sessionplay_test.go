package handlers

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// convene adds a session to the next configuration:
//
//	session NAME architect=A developer=B,C reviewer=D strict max=2 on-max=abort review timeout=60s
//	session NAME -
//
// The second form removes it.
func (p *player) convene(rest string) {
	words := strings.Fields(rest)
	p.convened = slices.DeleteFunc(slices.Clone(p.convened), func(s session.Spec) bool { return s.ID == words[0] })
	if words[1] == "-" {
		return
	}
	spec := session.Spec{
		ID: words[0], Validation: session.ValidationStandard, MaxIterations: session.DefaultIterations, OnMax: session.EscalateHumanReview,
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "strict":
			spec.Validation = session.ValidationStrict
		case "review":
			spec.RequireReview = true
		case "max":
			spec.MaxIterations, _ = strconv.ParseInt(value, 10, 64)
		case "on-max":
			spec.OnMax = value
		case "timeout":
			spec.TaskTimeout = p.duration(value).Milliseconds()
		default:
			for name := range strings.SplitSeq(value, ",") {
				spec.Members = append(spec.Members, session.Member{AgentID: name, AgentType: key})
			}
		}
	}
	p.convened = append(p.convened, spec)
}

// say sends a session message:
//
//	say FROM TO ID TYPE KEY=VALUE…
//
// Its payload is the usual one of its type, changed by the keys. A key is a path in the payload.
// The last part of a path may stand for the whole if no other path ends so. The value is JSON or
// a text. The keys corr, reply, seq, from_type and to_type are outside the payload; the value
// "-" removes a member.
//
// FROM may also be operator:NAME, which sends it for NAME; asks:NAME, which requests it; or
// NAME@RUN, an earlier run. AGENT:NAME and asks:AGENT:NAME are an agent that sends it in the
// name of another.
func (p *player) say(rest string) {
	words := strings.Fields(rest)
	who, from, another := strings.Cut(words[0], ":")
	speaker := from
	switch {
	case !another:
		who, from = words[0], p.actor(words[0]).Name
	case who == "asks":
		speaker = strings.Split(from, ":")[0]
		from = from[strings.Index(from, ":")+1:]
	}
	before := p.lines[words[2]]
	line := p.spelledMessage(from, words[1], words[2], words[3], words[4:])
	p.lines[words[2]] = line
	switch who {
	case "asks":
		p.speak(speaker + " " + words[2] + ` send-session-message {"message":` + line + `}`)
	case "operator":
		p.speak(who + " " + words[2] + ` send-session-message {"message":` + line + `}`)
	default:
		p.print(who, line)
	}
	if p.last.Refused != nil && before != "" {
		p.lines[words[2]] = before // the earlier line still counts
	}
}

// again prints an earlier line again, by its id.
func (p *player) again(rest string) {
	from, id, _ := strings.Cut(rest, " ")
	p.print(from, p.lines[id])
}

// print has an agent print a line that is a session message, or delegated work.
func (p *player) print(who, line string) {
	a := p.actor(who)
	reader := stdio.Reader{
		Agent: a.Name, Depth: 64, Capability: p.state.Does, Given: func(id string) bool { return p.state.Given(a.Name, id) },
	}
	switch m := reader.Parse([]byte(line)).(type) {
	case wire.Log:
		fmt.Fprintf(&p.out, "(log: %s)\n", m.Why)
	case *wire.Session:
		p.do(a, &wire.Request{
			ID: m.ID, Operation: "send-session-message", Form: dialect.Session, Body: &wire.SaySession{Session: *m},
		})
	case *wire.Refused: // the reader of the line answers
		p.showLetter(&Letter{To: a, Request: unquoted(m.ID), Form: m.Form, Refusal: m.Err})
	case *wire.Request, *wire.AgentEvent:
		p.do(a, m)
	default:
		require.Fail(p.t, "there is no decision for it", "%s", line)
	}
}

// has reports a message as delivered to its agent or, with lost, as not written.
func (p *player) has(rest string, lost bool) {
	who, id, _ := strings.Cut(rest, " ")
	a := p.actor(who)
	p.do(Actor{}, &wire.Delivered{Agent: a.Name, Run: a.Run, Said: p.saidAs(id), Lost: lost})
}

// takes reports everything on its way to an agent as written.
func (p *player) takes(who string) {
	a := p.actor(who)
	var said []int64
	for _, m := range p.state.Sessions.Seats[a.Name] {
		for _, one := range m.Outbox {
			if one.Unread() {
				said = append(said, one.Seq)
			}
		}
	}
	for _, seq := range said {
		p.do(Actor{}, &wire.Delivered{Agent: a.Name, Run: a.Run, Said: seq})
	}
}

// saidAs returns the number of the record of a message.
func (p *player) saidAs(id string) int64 {
	for _, r := range p.records {
		if r.Kind == events.SessionMessage && r.Key == id {
			return r.Seq
		}
	}
	require.Fail(p.t, "no such message", id)
	return 0
}

// typeOf returns the type of an agent in the sessions of the configuration.
func (p *player) typeOf(name string) string {
	for _, spec := range p.convened {
		for _, m := range spec.Members {
			if m.AgentID == name {
				return m.AgentType
			}
		}
	}
	return session.AgentDeveloper
}

// usual maps each type of message to its usual payload.
var usual = map[string]string{
	session.TypeTaskAssignment: `{"task":{"task_id":"t1","task_description":"Do it","context":{"specs":[],"reference_files":[]},
		"constraints":{"scope":["src/**"],"testing_required":true,"must_not_break":[]},"acceptance_criteria":["it works"]},"priority":"high"}`,
	session.TypeTaskProgress: `{"task_id":"t1","progress_percent":50,"current_step":"half","files_modified_so_far":[]}`,
	session.TypeTaskCompletion: `{"task_id":"t1","status":"completed","changes":{"files_created":[],"files_modified":[],"files_deleted":[]},
		"summary":"Done","self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}}`,
	session.TypeReviewRequest: `{"review_id":"r1","task_id":"t1","scope":{"files":[],"focus_areas":["logic"]},
		"criteria":{"must_pass_tests":true,"must_pass_type_check":true},"context":{"task_description":"Do it","acceptance_criteria":[]}}`,
	session.TypeReviewResult: `{"review_id":"r1","task_id":"t1","verdict":"approved","findings":[],
		"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}},"summary":"Fine"}`,
	session.TypeFeedback:       `{"feedback_type":"guidance","subject":"s","content":"c","action_required":false}`,
	session.TypeStatusQuery:    `{}`,
	session.TypeStatusResponse: `{}`,
	session.TypeAbort:          `{"scope":"task","target_id":"t1","reason":"nobody wants it","cleanup_required":true}`,
	session.TypeAcknowledgment: `{}`,
}

// shortPaths maps short names to the paths that are changed often.
var shortPaths = map[string]string{
	"scope": "task.constraints.scope", "id": "task.task_id", "says": "task.task_description", "files": "changes.files_deleted",
	"lint": "verification.lint", "tests": "verification.tests",
}

func (p *player) spelledMessage(from, to, id, kind string, words []string) string {
	var payload map[string]any
	if usual[kind] == "" {
		payload = map[string]any{}
	} else {
		require.NoError(p.t, json.Unmarshal([]byte(usual[kind]), &payload))
	}
	fromAgent, toAgent := map[string]any{"agent_id": from, "agent_type": p.typeOf(from)}, map[string]any{"agent_id": to, "agent_type": p.typeOf(to)}
	m := map[string]any{
		"message_id": id, "timestamp": object.Timestamp(p.at), "from_agent": fromAgent, "to_agent": toAgent, "message_type": kind, "payload": payload,
	}
	m["sequence_number"] = len(p.lines) + 1
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if value == "-" && m[key] != nil {
			delete(m, key)
			continue
		}
		switch key {
		case "corr":
			m["correlation_id"] = value
		case "reply":
			m["reply_to"] = value
		case "session":
			m["session_id"] = value
		case "seq":
			m["sequence_number"] = json.Number(value)
		case "message_id", "timestamp", "message_type", "payload":
			change(m, []string{key}, value)
		case "from_type":
			fromAgent["agent_type"] = value
		case "to_type":
			toAgent["agent_type"] = value
		default:
			if long := shortPaths[key]; long != "" && (key != "scope" || kind == session.TypeTaskAssignment) {
				key = long
			}
			change(payload, strings.Split(key, "."), value)
		}
	}
	line, err := json.Marshal(m)
	require.NoError(p.t, err)
	return string(line)
}

// innermost returns the object that holds the last part of a path. It makes missing objects.
func innermost(in map[string]any, path []string) (object map[string]any, last string) {
	for _, key := range path[:len(path)-1] {
		below, ok := in[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			in[key] = below
		}
		in = below
	}
	return in, path[len(path)-1]
}

// change changes the value at a path.
func change(in map[string]any, path []string, value string) {
	in, last := innermost(in, path)
	if value == "-" {
		delete(in, last)
		return
	}
	var v any
	if json.Unmarshal([]byte(value), &v) != nil {
		v = strings.ReplaceAll(value, "_", " ")
		if !strings.Contains(last, "content") && !strings.Contains(last, "summary") {
			v = value
		}
	}
	in[last] = v
}

// session returns a session with its messages.
func (p *player) session(id string) *wire.SessionView {
	t := (&turn{state: p.state.State}).by(Actor{Kind: Operator})
	v, err := t.sessions().getSession(&wire.GetSession{SessionID: id})
	require.Nil(p.t, err)
	whole, fault := state.Complete(v, t.pages, shelf(p.records))
	require.NoError(p.t, fault)
	return whole.(*wire.SessionView)
}

// showSession writes a session without its messages.
func (p *player) showSession(id string) {
	view := p.session(id)
	fmt.Fprintf(&p.out, "%s %s %s\n", view.ID, view.State, view.Reason)
	for _, m := range view.Standing {
		fmt.Fprintf(&p.out, "%s %s %s, %d waiting, %d working\n", m.AgentID, m.AgentType, m.Status, m.Waiting, m.Working)
	}
	for _, k := range view.Tasks {
		fmt.Fprintf(&p.out, "task %s %s %s of %s, try %d, review %d of %d", k.TaskID, k.Phase, k.State, k.Developer, k.Tries, k.Iteration, k.MaxIterations)
		for _, f := range k.Findings {
			fmt.Fprintf(&p.out, ", %s %s %d-%d", f.ID, f.Severity, f.Found, f.Fixed)
		}
		if k.Error != nil {
			fmt.Fprintf(&p.out, ", %s: %s, %s", k.Error.ErrorType, k.Error.ErrorMessage, k.Error.SuggestedAction)
		}
		p.out.WriteString("\n")
	}
	for _, v := range view.Reviews {
		fmt.Fprintf(&p.out, "review %s of %s by %s, %d: %s\n", v.ReviewID, v.TaskID, v.Reviewer, v.Iteration, v.Verdict)
	}
	for _, e := range view.Messages {
		fmt.Fprintf(&p.out, "%d %s %s from %s %s %v %s\n", e.Seq, e.MessageID, e.Type, e.From, e.Chain, e.Errors, e.Refused)
	}
}

// documentForm matches the long parts of the record of a session message.
var documentForm = regexp.MustCompile(`,?"document":\{.*\}|"sum":\d+,|"processing_duration_ms":0,?`)

// heardMessage returns a short form of a session message on an agent's stdin. It must equal the
// message sent, except for members that were filled in.
func (p *player) heardMessage(l *Letter) string {
	var m, said map[string]any
	require.NoError(p.t, json.Unmarshal(l.Line, &m))
	short := fmt.Sprintf("%s %s seq %v", m["message_type"], m["message_id"], m["sequence_number"])
	if m["correlation_id"] != nil {
		short += fmt.Sprintf(" corr %v", m["correlation_id"])
	}
	if m["reply_to"] != nil {
		short += fmt.Sprintf(" reply %v", m["reply_to"])
	}
	line := p.lines[fmt.Sprint(m["message_id"])]
	if line == "" { // the orchestrator sends it for an agent
		payload, err := json.Marshal(m["payload"])
		require.NoError(p.t, err)
		return short + " " + string(payload)
	}
	require.NoError(p.t, json.Unmarshal([]byte(line), &said))
	for _, filled := range []string{"sequence_number", "correlation_id"} {
		if said[filled] == nil {
			delete(m, filled)
		}
	}
	require.Equal(p.t, said, m, "it is delivered as it was said")
	return short
}
