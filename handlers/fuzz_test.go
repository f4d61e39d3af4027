package handlers

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// FuzzHandle makes valid and odd inputs from bytes. No turn may fail. The records and a snapshot
// must each give an equal State.
func FuzzHandle(f *testing.F) {
	f.Add([]byte("\x00\x05\x06\x01\x08{\"type\":\"t\",\"name\":\"n\"}"))
	f.Add([]byte("000111222333444555666777888999"))
	for n := range byte(20) {
		f.Add([]byte{n, 1, 8, 1, 1, n, 8, 2, 1, 12, 3, 0, 1, 1, n, 1, 1, 0, 13, 1, 0, 0, 2, 2, 14, 0, 0, 0, 3, 3, n, 2, 2, 2, 2, 15, 1, 0, 1, 4, 4, 17, 0, 0, 0, 5, 5, 19, 4, n, 18})
	}
	for n := range uint64(rounds(64)) {
		f.Add(noise(n))
	}
	f.Add([]byte("\x02a1\x02b1\x03c1\x03d1\x04e1\x05f1\x06g1\x07h1\x08i1\x09j1\x0ak1"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		z := &fuzzer{t: t, rest: bytes, state: New(Rules{KeepFinished: 2, KeepClosed: 1, Archive: true}), at: beginning}
		z.roster()
		z.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
		for i := range fuzzAgents {
			z.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: z.name(i), Run: "0"})
		}
		for len(z.rest) > 0 && z.inputs < 300 {
			z.input()
		}
		shadow := New(Rules{KeepFinished: 2, KeepClosed: 1, Archive: true})
		for _, r := range z.records {
			require.NoError(t, shadow.Apply(nil, r))
			_ = state.Tell(r)
		}
		text := spelled(t, z.state)
		require.Equal(t, text, spelled(t, shadow))
		restored(t, z.state.Rules, text)
		requireSound(t, z.state)
	})
}

// A fuzzer makes inputs from bytes.
type fuzzer struct {
	t       *testing.T
	rest    []byte
	state   *State
	at      time.Time
	inputs  int
	records []wire.Record
	last    Outcome
	early   bool // the next lookup sees an old log
}

const fuzzAgents = 4

func (*fuzzer) name(i int) string { return fmt.Sprintf("a%d", i%(fuzzAgents+1)) } // one too many

func (f *fuzzer) next() int {
	if len(f.rest) == 0 {
		return 0
	}
	b := f.rest[0]
	f.rest = f.rest[1:]
	return int(b)
}

// text returns some of the bytes unchanged.
func (f *fuzzer) text() string {
	n := min(f.next(), len(f.rest))
	text := string(f.rest[:n])
	f.rest = f.rest[n:]
	return text
}

func (f *fuzzer) do(from Actor, m wire.Message) {
	f.inputs++
	f.at = f.at.Add(time.Second)
	in := Input{At: f.at, From: from, Message: m}
	binary.BigEndian.PutUint64(in.Random[:], uint64(f.inputs))
	out := f.decide(&in)
	f.last = out
	require.NoError(f.t, out.Fault)
	f.records = append(f.records, out.Records...)
	for _, l := range out.Letters {
		if l.Pages != nil {
			_, err := state.Complete(l.Payload, l.Pages, shelf(f.records))
			require.NoError(f.t, err)
		}
		_ = stdio.Envelope{}.AppendAnswer(nil, l.Request, l.Payload, l.Refusal)
	}
}

func (f *fuzzer) actor() Actor {
	n := f.next()
	switch {
	case n%7 == 0:
		return Actor{Kind: Operator}
	case n%17 == 16:
		return Actor{Kind: External, Name: f.mailName()}
	case n%19 == 18:
		return Actor{Kind: Operator, Name: strings.ToValidUTF8(f.text(), "?")} // tokens are JSON
	}
	return Actor{Kind: Agent, Name: f.name(n), Run: fmt.Sprint(n / 64)}
}

// task returns the id of a task, or another text.
func (f *fuzzer) task() string {
	if n := f.next(); n < len(f.state.Tasks.List) {
		return f.state.Tasks.List[n].View.ID
	}
	return f.text()
}

func (f *fuzzer) input() {
	switch n := f.next() % 26; n {
	case 0:
		f.roster()
	case 1:
		code := f.next() % 3
		e := &wire.Event{Kind: events.AgentEnded, Agent: f.name(f.next()), Run: "0", Text: f.text(), Figures: wire.Figures{ExitCode: &code, Ordered: f.next()%2 == 0}}
		f.do(Actor{}, e)
	case 2:
		kinds := []string{events.OrchestratorStarted, events.OrchestratorStopping, events.AgentStarted, events.AgentExited, events.AgentStalled, events.AgentRecovered, events.AgentGaveUp}
		f.do(Actor{}, &wire.Event{Kind: kinds[f.next()%len(kinds)], Agent: f.name(f.next()), Run: fmt.Sprint(f.next() % 3), Text: f.text()})
	case 3:
		f.do(Actor{}, &wire.Delivered{Agent: f.name(f.next()), Run: fmt.Sprint(f.next() % 3), Task: f.task(), Lost: f.next()%4 == 0})
	case 4:
		f.do(Actor{}, wire.Tick{})
	case 5:
		f.report()
	case 6: // whatever the bytes are
		f.request(operations[f.next()%len(operations)].Name, f.text())
	case 20, 21, 22, 23, 24, 25:
		f.mail(n)
	default:
		f.sensible(n)
	}
}

func (f *fuzzer) roster() {
	roster := &wire.AgentSet{}
	for i := range fuzzAgents {
		n := f.next()
		if n%16 != 15 {
			roster.Agents = append(roster.Agents, wire.Member{
				ID: f.name(i), Role: wire.Roles[n%3], Capabilities: strings.Split("go,sql", ",")[:n%2], Capacity: n % 4,
				OnExit: []string{"auto", "fail", "requeue"}[n%3], Deaf: n%11 == 10, Actor: []string{"", "S:db", "GO", "PO:a", "W"}[n/16%5],
			})
		}
	}
	f.do(Actor{}, roster)
}

func (f *fuzzer) report() {
	reports := []any{
		&activity.Progress{TaskID: f.task(), Progress: float64(f.next()) / 255, Message: f.text()},
		&activity.Trouble{TaskID: f.task(), Error: f.text(), Recoverable: f.next()%2 == 0},
		&activity.OpenQuestion{Question: f.text()},
		nil,
	}
	f.do(f.actor(), &wire.AgentEvent{Name: "x", Body: reports[f.next()%len(reports)]})
}

// request sends a payload unchanged, if it can be read.
func (f *fuzzer) request(operation, payload string) {
	r := &wire.Request{ID: fmt.Sprint(f.next() % 8), Operation: operation, Timestamp: "t", Payload: []byte(payload)}
	if Prepare(r, 16) == nil {
		f.do(f.actor(), r)
	}
}

// sensible makes a request that is likely to be granted.
func (f *fuzzer) sensible(n int) {
	id, err := object.Encode(f.task())
	require.NoError(f.t, err)
	switch n {
	case 7, 8:
		roles := []string{`"worker"`, `"planner"`, `null`}
		needs := ""
		if len(f.state.Tasks.List) > 0 && f.next()%2 == 0 {
			needs = `"` + f.state.Tasks.List[f.next()%len(f.state.Tasks.List)].View.ID + `"`
		}
		f.request("submit-task", fmt.Sprintf(`{"type":"t","name":"n","requiredRole":%s,"priority":%d,"dependencies":[%s],"payload":{"p":%q}}`,
			roles[f.next()%3], f.next(), needs, fmt.Sprint(f.next())))
	case 9:
		verbs := []string{"start-task", "complete-task", "cancel-task", "get-task"}
		f.request(verbs[f.next()%len(verbs)], fmt.Sprintf(`{"taskId":%s}`, id))
	case 10:
		f.request("ask-user", fmt.Sprintf(`{"question":"q%d","timeout":%d}`, f.next()%3, 1+1000*f.next()))
	case 11:
		f.request("answer-question", fmt.Sprintf(`{"questionId":"q%d","answer":"a"}`, f.next()%8))
	default:
		f.work(n, string(id))
	}
}

// work makes a request about the work on a task that is likely to be granted.
func (f *fuzzer) work(n int, id string) {
	pick := func(of ...string) string { return of[f.next()%len(of)] }
	able := func() string {
		return pick(`{"languages":["go"]}`, `{"languages":["go"],"tags":["x"],"max_concurrent_tasks":3}`, `{}`)
	}
	other, err := object.Encode(f.task())
	require.NoError(f.t, err)
	switch n {
	case 12:
		f.request("submit-task", fmt.Sprintf(`{"type":"t","name":"n","requirements":%s,"structured_spec":%s,"dependencies":[{"depends_on_task_id":%s,"dependency_type":"input","contract_key":"k"}]}`,
			able(), specWith("d"), other))
	case 13:
		f.request(pick("assign-task", "assign-task", "auto-assign", "match-agents"), fmt.Sprintf(`{"taskId":%s,"agent":%q,"requirePlan":%s}`, id, f.name(f.next()), pick("true", "false")))
	case 14:
		f.request(pick("submit-plan", "approve-plan", "revise-plan", "request-help", "fail-task"),
			fmt.Sprintf(`{"taskId":%s,"plan":"p","feedback":"f","question":"q","error":"e"}`, id))
	case 15:
		f.request("add-dependency", fmt.Sprintf(`{"taskId":%s,"dependsOnTaskId":%s,%s}`, id, other,
			pick(`"dependencyType":"blocks"`, `"dependencyType":"related"`, `"dependencyType":"input","contractKey":"k"`)))
	case 16:
		f.request("remove-dependency", fmt.Sprintf(`{"taskId":%s,"dependencyId":%s}`, id, pick(string(other), `"d1"`, `"d2"`, `"d3"`)))
	case 17:
		f.request("complete-task", fmt.Sprintf(`{"taskId":%s,"result":{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{%q:{"status":"fulfilled","data":%s}}}}`,
			id, pick("k", "k1"), pick(`{}`, `1`, `"`+strings.Repeat("x", state.Heavy)+`"`)))
	case 18:
		f.request(pick("update-capabilities", "update-task", "add-note", "list-notes", "poll-tasks"),
			fmt.Sprintf(`{"taskId":%s,"capabilities":%s,"requirements":%s,"content":"c","priority":%d}`, id, able(), able(), f.next()%5))
	case 19:
		f.enroll()
	}
}

// enroll has a server register with a token that was issued for it.
func (f *fuzzer) enroll() {
	f.do(Actor{Kind: Operator}, &wire.Request{ID: "o", Operation: "issue-registration", Body: &wire.IssueRegistration{}})
	issued := f.last.Letters[len(f.last.Letters)-1].Payload.(*wire.IssuedRegistration)
	f.do(Actor{Kind: Anonymous}, &wire.Request{ID: "s", Operation: "register-agent", Body: &wire.Register{Name: f.name(f.next()), Token: issued.Token}})
}

// FuzzApply makes records of every kind from bytes, with any payload. A record that does not
// follow is an error, never a panic. Applied records can be encoded, shown and restored.
func FuzzApply(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte("\xff\x10{\"task\":\"t0\"}\xff\x02[]"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		z := &fuzzer{t: t, rest: bytes}
		s := New(Rules{KeepFinished: 1, KeepClosed: 1, Archive: true})
		applied := 0
		for n := 0; len(z.rest) > 0 && n < 300; n++ {
			r := wire.Record{
				Seq: s.Seq() + 1, At: beginning.Add(time.Duration(applied) * time.Minute), Kind: fuzzKinds[z.next()%len(fuzzKinds)], Payload: []byte(z.payload()),
				From: []string{"orchestrator", "operator", "agent:a0", "agent:a1", "agent:a2", ""}[z.next()%6],
			}
			if r.Kind == events.MessageSent {
				z.address(&r)
			}
			_ = state.Tell(r)
			if s.Apply(nil, r) == nil {
				applied++
			}
		}
		kept, err := s.Snapshot().Text()
		require.NoError(t, err)
		again := restored(t, s.Rules, string(kept))
		for _, st := range []*State{s, again} {
			out := st.Handle(Input{At: beginning, Message: &wire.Event{Kind: events.OrchestratorStarted}})
			require.NoError(t, out.Fault, "after %d records", applied)
			out = st.Handle(Input{At: beginning.Add(time.Hour), Message: wire.Tick{}})
			require.NoError(t, out.Fault)
		}
		require.Equal(t, spelled(t, s), spelled(t, again))
	})
}

// fuzzKinds lists the kinds of record, in order.
var fuzzKinds = func() []string {
	kinds := []string{events.OrchestratorStarted, events.AgentStarted, events.AgentEnded, events.MessageSent, "task.danced"}
	for kind := range state.Facts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}()

// payload returns a payload for a record: a document with the members of all kinds, or arbitrary
// bytes.
func (f *fuzzer) payload() string {
	if f.next() > 250 {
		return f.text()
	}
	pick := func(of ...string) string { return of[f.next()%len(of)] }
	task := func() string { return pick(`"t0"`, `"t1"`, `"t2"`, `"t3"`, `"t4"`, `""`) }
	name := func() string { return pick(`"a0"`, `"a1"`, `"a2"`, `""`) }
	able := func() string {
		return pick(`{}`, `{"languages":["go"]}`, `{"repos":{"r":{}},"max_concurrent_tasks":0}`)
	}
	more := fmt.Sprintf(`"number":%d,"waiting":[{"task":%s,"number":%d}],"dependency":{"depends_on_task_id":%s,"dependency_type":%s,"contract_key":"k"},
		"plan":%s,"way":%s,"requirements":%s,"structured_spec":%s,"abilities":%s,"without":%s,"key":%s,"until":%s,"expires_at":%s,"registration":"r","description":%s`,
		f.next()%4, task(), f.next()%4, task(), pick(`"blocks"`, `"input"`, `"related"`, `"soft"`, `"x"`), pick(`true`, `false`), pick(`""`, `"match"`, `"hand"`),
		able(), pick(`null`, specWith("d")), able(), pick(`[]`, `["requirements"]`), pick(`"k1"`, `"k2"`), pick(`"2026-11-21T14:00:01.000Z"`, `""`), pick(`"2026-11-21T16:00:01.000Z"`, `""`),
		pick(`""`, `"`+strings.Repeat("x", state.Heavy+1)+`"`))
	more += fmt.Sprintf(`,"actor":%s,"seq":%d,"over":%s`, pick(`"W:r0"`, `"PO:a"`, `"GO"`, `""`), f.next()%9, pick(`true`, `false`))
	if f.next()%2 == 0 { // other kinds have lists or texts under these names
		return fmt.Sprintf(`{"task":%s,"agent":%s,"question_id":%s,"capabilities":%s,"result":%s,%s}`, task(), name(), pick(`"q1"`, `"q2"`), able(),
			pick(`{}`, `{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{"k":{"status":"partial","data":1}}}`), more)
	}
	return fmt.Sprintf(`{"task":%s,"dependencies":%s,"id":%s,"agent":%s,"run":%s,"role":%s,"capacity":%d,"attempt":%d,
		"question_id":%s,"request":%s,"deadline":%s,"death":%s,"deaf":%s,"priority":%s,"result":%s,
		"required_role":%s,"required_capabilities":%s,"capabilities":%s,"hash":%s}`,
		task(), pick(`[]`, `[`+task()+`]`, `[`+task()+`,`+task()+`]`, `null`), name(), name(), pick(`"r0"`, `"r1"`, `""`),
		pick(`"worker"`, `"planner"`), f.next()%3, f.next()%3,
		pick(`"q1"`, `"q2"`, `"q3"`), pick(`null`, `{"id":"1","run":"r0","timestamp":"t","sum":1}`, `{"id":"2","run":"r1","timestamp":"t","sum":1}`),
		pick(`""`, `"2026-11-21T14:00:01.000Z"`, `"2026-11-21T16:00:01.000Z"`, `"soon"`), pick(`true`, `false`), pick(`true`, `false`),
		pick(`1`, `1e9`, `-7.5`, `"high"`, `null`), pick(`{}`, `"x"`, `null`, `[1, 2]`),
		pick(`"worker"`, `""`), pick(`[]`, `["go"]`, `["sql","go"]`), pick(`[]`, `["go"]`, `["go","sql"]`), pick(`"h0"`, `"h1"`))
}

// FuzzRestore restores States from arbitrary bytes. Bytes that are not a snapshot give no State,
// and a restored State can continue.
func FuzzRestore(f *testing.F) {
	p := atWork(f)
	for _, line := range []string{
		`> planner 1 submit-task {"type":"t","name":"one","requiredRole":"worker"}`,
		`> planner 2 submit-task {"type":"t","name":"two","dependencies":["$one"]}`,
		`> planner 3 ask-user {"question":"?"}`,
		`> operator 4 hub:submit-task {"title":"three","spec":"s","requirements":{"languages":["go"]},"dependencies":[{"depends_on_task_id":"$one","dependency_type":"input","contract_key":"k"},{"depends_on_task_id":"$two","dependency_type":"related"}]}`,
		`> operator 5 assign-task {"taskId":"$three","agent":"coder","requirePlan":true}`,
		`> operator 6 issue-registration {}`,
		`> newcomer 7 register-agent {"name":"far","registration_token":"$TOKEN","capabilities":{"languages":["go"]}}`,
		`> coder 1 complete-task {"taskId":"$one"}`,
		`> coder 2 heartbeat {}`,
		`> coder 3 send-message {"to_actor":"GO","topic":"build.finished","payload":{},"idempotency_key":"k"}`,
		`> operator 8 ack-messages {"seq":3}`,
		`> operator 9 issue-token {"actor":"HO:far"}`,
		`event agent.exited coder`,
	} {
		f.Add([]byte(spelled(f, p.state)))
		p.play(line)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, ok := Restore(Rules{}, text, nil)
		if !ok {
			return
		}
		_, _ = s.Snapshot().Text()
		_ = s.Counts()
		s.Handle(Input{At: beginning, Message: &wire.Event{Kind: events.OrchestratorStarted}})
		s.Handle(Input{At: beginning.Add(time.Hour), Message: wire.Tick{}})
	})
}

// noise returns bytes that make all kinds of inputs.
func noise(seed uint64) []byte {
	chance := rand.New(rand.NewPCG(seed, 4))
	bytes := make([]byte, 3000)
	for i := range bytes {
		bytes[i] = byte(chance.IntN([]int{8, 26, 256}[chance.IntN(3)])) // short texts, and all kinds
	}
	return bytes
}

// decide handles an input after a lookup in the log. The first lookup may be out of date.
func (f *fuzzer) decide(in *Input) Outcome {
	if f.early {
		f.early = false
		shelf(f.records[:len(f.records)/2]).lookUp(f.state, in)
		out := shelf(f.records).handle(f.state, in)
		if !out.Again {
			return out
		}
		require.Empty(f.t, out.Records)
		require.Empty(f.t, out.Letters)
	}
	shelf(f.records).lookUp(f.state, in)
	out := shelf(f.records).handle(f.state, in)
	require.False(f.t, out.Again)
	return out
}

// mailName returns an actor that may have mail.
func (f *fuzzer) mailName() string {
	known := f.state.Bus.All()
	if n := f.next(); n < len(known) {
		return known[n].ID
	}
	return []string{"HO:far", "PO:a", "W:0", "S:db:0", "broadcast", "Bus", "GO"}[f.next()%7]
}

// heldTask returns a task that an agent holds, or any task.
func (f *fuzzer) heldTask() string {
	if n := f.next(); n%4 > 0 {
		if a := f.state.Agents.ByID[f.name(n/4)]; a != nil && len(a.Holds) > 0 {
			return a.Holds[0].View.ID
		}
	}
	return f.task()
}

// mail makes a request about mail that is likely to be granted, or lets time pass.
func (f *fuzzer) mail(n int) {
	pick := func(of ...string) string { return of[f.next()%len(of)] }
	claim := func(key string) string {
		if f.next()%3 > 0 {
			return ""
		}
		return fmt.Sprintf(`%q:%q,`, key, f.mailName())
	}
	switch n {
	case 20:
		f.early = f.next()%2 == 0
		task, err := object.Encode(f.heldTask())
		require.NoError(f.t, err)
		topic := pick("message.direct", "heartbeat", "task.completed", "task.failed", "task.progress", "agent.terminated", "a.b", "topic.unknown", "broadcast.all")
		f.request("send-message", fmt.Sprintf(`{%s"to_actor":%q,"topic":%q,"payload":{"ticket_id":%s,"progress":0.5,"error":"e","result":%s},"reply_to":%s%s}`,
			claim("from_actor"), f.mailName(), topic, task, pick("null", `{}`, `{"$schema":"orchestratia/task-result/v1"}`), pick("null", "1", `"2"`, "9999"),
			pick("", `,"idempotency_key":"k"`, `,"idempotency_key":"l"`)))
	case 21:
		f.request("poll-messages", fmt.Sprintf(`{%s%s"limit":%d}`, claim("actor"), pick("", `"cursor":0,`, `"cursor":7,`), 1+f.next()))
	case 22:
		f.request("ack-messages", fmt.Sprintf(`{%s"seq":%d}`, claim("actor"), f.next()))
	case 23:
		f.request("heartbeat", fmt.Sprintf(`{%s"x":0}`, claim("actor")))
	case 24:
		f.at = f.at.Add(time.Duration(f.next()) * time.Second)
		if id := f.mailName(); f.next()%4 == 0 && mail.CheckActor(id) == "" {
			f.request("issue-token", fmt.Sprintf(`{"actor":%q,"overlap":%d,"ttl":60000}`, id, f.next()*1000))
		}
	case 25:
		f.state = restored(f.t, f.state.Rules, spelled(f.t, f.state))
	}
}

// address turns a record into mail, sometimes into mail that no actor sends.
func (f *fuzzer) address(r *wire.Record) {
	pick := func(of ...string) string { return of[f.next()%len(of)] }
	r.From, r.To = pick("W:r0", "PO:a", "GO", "Bus", ""), pick("W:r0", "GO", "broadcast", "PO:later", "")
	r.Topic, r.Key = pick("message.direct", "heartbeat", "agent.spawned", "agent.terminated", ""), pick("", "k", "l")
	r.ReplyTo = int64(f.next() % 3)
	r.Correlation = pick("", `{"agent":"a0","id":"1","run":"r0","timestamp":"t","sum":1}`, `{"agent":"nobody","id":"1","run":"","timestamp":"","sum":1,"warnings":["w"]}`, `{`)
}
