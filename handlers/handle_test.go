package handlers

import (
	"cmp"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// register adds an operation to the table for one test.
func register(t *testing.T, name string, do func(*decision) (any, *wire.Error)) {
	byName[name] = &Operation{Operation: &wire.Operation{Name: name, Writes: true}, do: func(t *decision, _ any) (any, *wire.Error) { return do(t) }}
	t.Cleanup(func() { delete(byName, name) })
}

// atWork returns a player with a running planner and coder.
func atWork(t testing.TB) *player {
	p := newPlayer(t)
	for _, line := range []string{"agents: planner(planner) coder(worker)", "up", "start planner", "start coder"} {
		p.play(line)
	}
	return p
}

// ask has an agent request an operation that needs no payload.
func (p *player) ask(who, id, operation string) Outcome {
	return p.do(p.actor(who), &wire.Request{ID: id, Operation: operation, Timestamp: object.Timestamp(p.at)})
}

// TestPanic checks that a panic costs one request. Its earlier decisions stand, only the log has
// the details, and the next request is served.
//
// Rows: B-21, B-75.
func TestPanic(t *testing.T) {
	register(t, "stumble", func(t *decision) (any, *wire.Error) {
		_, _ = t.tasks().submitTask(&wire.SubmitTask{Type: "t", Name: "before"})
		panic("for the log alone")
	})
	p := atWork(t)
	out := p.ask("planner", "1", "stumble")
	require.ErrorContains(t, out.Fault, "for the log alone")
	require.Equal(t, wire.CodeInternal, out.Refused.Code)
	require.Len(t, out.Letters, 1)
	line := string(stdio.Envelope{}.AppendAnswer(nil, out.Letters[0].Request, nil, out.Letters[0].Refusal))
	require.Contains(t, line, `"correlationId":"1"`)
	require.Contains(t, line, `"code":"INTERNAL_ERROR"`)
	require.NotContains(t, line, "log alone")

	require.Len(t, out.Records, 1)
	require.NotNil(t, p.task("before"), "what was decided stands")
	p.requireReplay()
	p.play(`> planner 2 get-task {"taskId":"$before"}`)
	require.NoError(t, p.last.Fault)
	require.Nil(t, p.last.Refused)
}

// TestPanicAfterTheAnswer checks that a request that panics after its answer has one answer.
//
// Rows: B-21, B-75.
func TestPanicAfterTheAnswer(t *testing.T) {
	p := atWork(t)
	spoil := func(t *decision) { t.state.Tasks.Queue.Fresh = append(t.state.Tasks.Queue.Fresh, nil) }
	mend := func() { p.state.Tasks.Queue.Fresh = nil }
	register(t, "answer-and-stumble", func(t *decision) (any, *wire.Error) {
		spoil(t)
		return &wire.Nothing{}, nil
	})
	out := p.ask("planner", "1", "answer-and-stumble")
	require.Error(t, out.Fault)
	require.Nil(t, out.Refused)
	require.Len(t, out.Letters, 1)
	require.Nil(t, out.Letters[0].Refusal)
	mend()

	register(t, "wait-and-stumble", func(t *decision) (any, *wire.Error) {
		spoil(t)
		return nil, nil
	})
	out = p.ask("planner", "2", "wait-and-stumble")
	require.Error(t, out.Fault)
	require.True(t, out.Waits)
	require.Empty(t, out.Letters)
	mend()
}

// TestForeignInput checks that an input that the package does not handle is a fault without an
// effect.
func TestForeignInput(t *testing.T) {
	for name, message := range map[string]wire.Message{
		"no kind of happening": &wire.Event{Kind: "agent.danced"},
		"a log line":           wire.Log{},
	} {
		t.Run(name, func(t *testing.T) {
			p := atWork(t)
			before := spelled(t, p.state)
			out := p.do(Actor{}, message)
			require.Error(t, out.Fault)
			require.Empty(t, out.Records)
			require.Equal(t, before, spelled(t, p.state))
		})
	}
}

// TestUnprepared checks that a request is refused if its payload was not decoded, or decoded for
// another operation. An unknown operation is refused too.
//
// Rows: B-27, B-28.
func TestUnprepared(t *testing.T) {
	p := atWork(t)
	for _, o := range operations {
		out := p.do(p.actor("planner"), &wire.Request{ID: "1", Operation: o.Name, Body: 7})
		require.NoError(t, out.Fault)
		require.Contains(t, []wire.Code{wire.CodeInvalid, wire.CodeDenied}, out.Refused.Code, o.Name)
	}
	require.Equal(t, wire.CodeUnknownType, p.ask("planner", "1", "no-such-thing").Refused.Code)
}

// TestUsedChance checks that random bytes that come twice are a fault, and do not give two tasks
// one id.
func TestUsedChance(t *testing.T) {
	p := atWork(t)
	p.play(`> planner 1 submit-task {"type":"t","name":"one"}`)
	p.chance--
	out := p.do(p.actor("planner"), &wire.Request{ID: "2", Operation: "submit-task", Body: &wire.SubmitTask{Type: "t", Name: "two"}})
	require.Error(t, out.Fault)
	require.Len(t, p.state.Tasks.List, 1)
}

// TestQuestionsAreBounded checks that an agent may have a thousand open questions. Beyond them
// it is refused; other agents are not.
//
// Rows: B-67, K-22.
func TestQuestionsAreBounded(t *testing.T) {
	s := New(Rules{})
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	handle := func(from Actor, m wire.Message) Outcome {
		out := s.Handle(Input{At: at, From: from, Message: m, Random: [16]byte{1}})
		require.NoError(t, out.Fault)
		return out
	}
	handle(Actor{}, &wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: "worker", Capacity: 1}, {ID: "b", Role: "worker", Capacity: 1}}})
	a, b := Actor{Kind: Agent, Name: "a", Run: "1"}, Actor{Kind: Agent, Name: "b", Run: "2"}
	wonder := &wire.AgentEvent{Name: "question", Body: &activity.OpenQuestion{Question: "why?"}}
	for range maxQuestions {
		require.Nil(t, handle(a, wonder).Refused)
	}
	require.Equal(t, wire.CodeLimited, handle(a, wonder).Refused.Code)
	require.Nil(t, handle(b, wonder).Refused)
	ask := &wire.Request{ID: "1", Operation: "ask-user", Timestamp: "2026-11-21T10:00:00Z", Payload: []byte(`{"question":"why?"}`)}
	require.Nil(t, Prepare(ask, 8))
	require.Equal(t, "too_many_questions", handle(a, ask).Refused.Details["reason"])
}

// TestChangesAreBounded checks that a task takes ten thousand changes and no more.
func TestChangesAreBounded(t *testing.T) {
	p := atWork(t)
	p.play(`> planner 1 submit-task {"type":"t","name":"one"}`)
	k := p.state.Tasks.List[0]
	change := func() Outcome {
		return p.do(Actor{Kind: Operator}, &wire.Request{ID: "2", Operation: "update-task", Body: &wire.UpdateTask{TaskID: k.View.ID, Name: new(k.View.Name)}})
	}
	require.Nil(t, change().Refused)
	k.Extra.Parts = make([]int64, state.MaxChanges-1)
	require.Nil(t, change().Refused)
	out := change()
	require.Equal(t, "too_many_changes", out.Refused.Details["reason"])
	require.Empty(t, out.Records)
}

// TestRefusalsQuoteShortIDs checks that a refusal does not repeat the whole of a long id.
//
// Rows: B-77.
func TestRefusalsQuoteShortIDs(t *testing.T) {
	s := New(Rules{})
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	s.Handle(Input{At: at, Message: &wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: "planner", Capacity: 1}}}})
	long := strings.Repeat("x", 1<<20)
	for operation, payload := range map[string]string{
		"cancel-task":    `{"taskId":"` + long + `"}`,
		"submit-task":    `{"type":"t","name":"n","requiredRole":"worker","dependencies":["` + long + `"]}`,
		"add-dependency": `{"taskId":"` + long + `","dependsOnTaskId":"` + long + `"}`,
	} {
		r := &wire.Request{ID: "1", Operation: operation, Timestamp: "2026-11-21T10:00:00Z", Payload: []byte(payload)}
		require.Nil(t, Prepare(r, 8))
		refused := s.Handle(Input{At: at, From: Actor{Kind: Agent, Name: "a", Run: "1"}, Message: r, Random: [16]byte{1}}).Refused
		require.NotNil(t, refused, operation)
		text, err := object.Encode(refused)
		require.NoError(t, err)
		require.Less(t, len(text), 4*maxSaid, operation)
		require.Contains(t, string(text), "…", operation)
	}
}

// TestHeavyTasksAreNotKept checks that large texts are in the log once, and not in the State,
// its snapshots and the remembered answers. An answer names the record that holds the rest.
//
// Rows: B-46, B-53, T-48.
func TestHeavyTasksAreNotKept(t *testing.T) {
	s := New(Rules{})
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var records []wire.Record
	handle := func(from Actor, m wire.Message) Outcome {
		if r, ok := m.(*wire.Request); ok {
			r.Timestamp = "2026-11-21T10:00:00Z"
			require.Nil(t, Prepare(r, 8))
		}
		out := s.Handle(Input{At: at, From: from, Message: m, Random: [16]byte{byte(len(records))}})
		require.NoError(t, out.Fault)
		require.Nil(t, out.Refused)
		records = append(records, out.Records...)
		return out
	}
	whole := func(l Letter) wire.Task {
		require.NotEmpty(t, l.Pages)
		require.Empty(t, l.Payload.(*wire.TaskReply).Task.Payload)
		answer, err := state.Complete(l.Payload, l.Pages, shelf(records))
		require.NoError(t, err)
		return answer.(*wire.TaskReply).Task
	}
	handle(Actor{}, &wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: "worker", Capacity: 1}}})
	a := Actor{Kind: Agent, Name: "a", Run: "1"}
	payload := `{"text":"` + strings.Repeat("é<&>", 1<<16) + `","n":12345678901234567890}`
	submit := &wire.Request{ID: "1", Operation: "submit-task", Payload: []byte(`{"type":"t","name":"n","payload":` + payload + `}`)}
	first := whole(handle(a, submit).Letters[0])
	require.Equal(t, payload, string(first.Payload))
	handle(a, &wire.Request{ID: "2", Operation: "start-task", Payload: []byte(`{"taskId":"` + first.ID + `"}`)})
	done := &wire.Request{ID: "3", Operation: "complete-task", Payload: []byte(`{"taskId":"` + first.ID + `","result":` + payload + `}`)}
	require.Equal(t, payload, string(whole(handle(a, done).Letters[0]).Result))
	require.Equal(t, first, whole(handle(a, submit).Letters[0]), "a repeat is answered as the first was")
	st, err := s.Snapshot().Text()
	require.NoError(t, err)
	require.Less(t, len(st), 8<<10)
}

// TestOperations checks that the examples of every operation can be decoded, and that the
// operation takes the result.
//
// Rows: B-17, B-57.
func TestOperations(t *testing.T) {
	var standard []string
	bound := operationNames(operationsOf(operations))
	for _, o := range wire.Operations {
		require.Contains(t, bound, o.Name, "no list of operations in handlers has a row for it: bind(%q, …) in the file of its topic", o.Name)
	}
	require.Equal(t, operationNames(wire.Operations), bound, "an operation has two rows, or the order is not that of wire")
	for _, o := range operations {
		require.NotEmpty(t, o.Examples)
		for _, example := range o.Examples {
			r := &wire.Request{Operation: o.Name, Payload: []byte(cmp.Or(example, "{}"))}
			require.Nil(t, Prepare(r, 64), o.Name)
			require.IsType(t, o.Request, r.Body, o.Name)
			require.Equal(t, o.Writes, r.Sum != 0, "%s is recognised when it comes again", o.Name)
		}
		require.Equal(t, o.Writes, wire.OperationNamed(o.Name).IsWrite())
		require.Equal(t, o.Audience <= wire.ForAgents || o.Audience == wire.ForActors, wire.OperationNamed(o.Name).OpenToAgents())
		require.Equal(t, o.Audience == wire.ForActors, wire.OperationNamed(o.Name).OpenToActors())
		require.NotEmpty(t, o.Summary)
		require.NotEmpty(t, o.Audience.String())
		if o.Operation.Answer.Name != "task-response" { // it is passed on as it came
			require.Equal(t, reflect.TypeOf(o.Operation.Answer.Of), reflect.TypeOf(o.Answer).Elem(), "wire declares another answer to %s than its function returns", o.Name)
		}
		if o.Published {
			standard = append(standard, o.Name)
		}
	}
	require.Equal(t, []string{"query-agents", "query-tasks", "submit-task", "get-task", "ask-user"}, standard)
	require.False(t, wire.OperationNamed("no-such-thing").IsWrite())
	require.False(t, wire.OperationNamed("no-such-thing").OpenToAgents())
}

func operationsOf(bound []Operation) (all []*wire.Operation) {
	for _, o := range bound {
		all = append(all, o.Operation)
	}
	return all
}

func operationNames(operations []*wire.Operation) (all []string) {
	for _, o := range operations {
		all = append(all, o.Name)
	}
	return all
}
