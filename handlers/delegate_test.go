package handlers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
)

// TestChains checks that the delegating agent is the last in the chain, and that the chain keeps
// all earlier ones.
//
// Rows: D-12, T-50.
func TestChains(t *testing.T) {
	for _, test := range []struct {
		before, said []string
		want         string
	}{
		{nil, nil, "[me]"},
		{nil, []string{"me"}, "[me]"},
		{nil, []string{"a", "me"}, "[a me]"},
		{nil, []string{"a", "b"}, "[a b me]"},
		{nil, []string{"me", "a"}, "[a me]"},
		{[]string{"a", "b"}, nil, "[a b me]"},
		{[]string{"a", "b"}, []string{"me"}, "[a b me]"},
		{[]string{"a", "b"}, []string{"a", "b", "me"}, "[a b me]"},
		{[]string{"a", "b"}, []string{"b", "me"}, "[a b me]"},
		{[]string{"a", "b"}, []string{"b", "c"}, "[a b c me]"},
		{[]string{"a", "b"}, []string{"b", "a"}, "[a b me]"},
	} {
		parent := &state.Task{Extra: &state.Extra{Delegation: &state.DelegatedWork{StoredDelegation: state.StoredDelegation{Chain: test.before}}}}
		require.Equal(t, test.want, fmt.Sprint(chainOf(parent, test.said, "me")), "%v %v", test.before, test.said)
		require.Len(t, parent.Delegation().Chain, len(test.before), "it is the parent's")
		if test.before == nil {
			require.Equal(t, test.want, fmt.Sprint(chainOf(nil, test.said, "me")))
			require.Equal(t, test.want, fmt.Sprint(chainOf(new(state.Task), test.said, "me")), "of another dialect")
		}
	}
}

// TestEagerness checks the order in which the capable agents are chosen.
//
// Rows: D-16.
func TestEagerness(t *testing.T) {
	sorted := []state.Rank{
		{}, {Given: 7}, {Load: 1}, {Load: 2, Given: 1}, {Full: true}, {Full: true, Load: 3},
		{Away: true}, {Away: true, Given: 1}, {Away: true, Full: true}, {Lost: true}, {Lost: true, Away: true},
	}
	for i, a := range sorted {
		require.Zero(t, a.Compare(a))
		for _, b := range sorted[i+1:] {
			require.Negative(t, a.Compare(b), "%+v before %+v", a, b)
			require.Positive(t, b.Compare(a), "%+v after %+v", b, a)
		}
	}
}

// TestSwamped checks the bounds of the tasks that wait for an agent. Beyond them a source may
// try again later.
//
// Rows: D-30, K-06.
func TestSwamped(t *testing.T) {
	for name, test := range map[string]struct{ fits, size int }{
		"many":  {state.MaxWaiting, 1},
		"heavy": {33, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			p.play("agents: boss(planner) dev(worker) two(worker)")
			p.play("up")
			p.play("start boss")
			payload := wire.Raw(`{"text":"` + strings.Repeat("x", test.size) + `"}`)
			if name == "heavy" {
				test.fits = state.MaxWaitingBytes/(test.size+len(`{"id":"0000","type":"weigh","payload":{"text":""}`)) + 1
			}
			for i := range test.fits {
				require.Nil(t, p.handsOn("boss", fmt.Sprint(i), "dev", payload).Refused, "%d", i)
			}
			out := p.handsOn("boss", "more", "dev", payload)
			require.Equal(t, wire.CodeLimited, out.Refused.Code)
			fault := delegation.FaultOf(out.Refused)
			require.Equal(t, delegation.FaultAgentBusy, fault.Code)
			require.True(t, fault.Recoverable)
			require.JSONEq(t, fmt.Sprintf(`{"waiting":%d,"reason":"agent_busy"}`, test.fits), string(fault.Details))
			require.Nil(t, p.handsOn("boss", "more", "two", payload).Refused, "it is no task, and the other has nothing to do")
			p.play("start dev")
			p.play("respond dev 0 completed")
			require.Nil(t, p.handsOn("boss", "again", "dev", payload).Refused)
		})
	}
}

// handsOn has an agent delegate a task, without showing it in the play.
func (p *player) handsOn(who, id, to string, payload wire.Raw) Outcome {
	made := delegation.Request{ID: id, Type: "weigh", Payload: payload, Routing: delegation.Routing{Target: to}}
	r, err := wire.ReadTaskRequest(made.Forwarded(delegation.Forwarding{}), 64)
	require.Nil(p.t, err)
	p.chance++
	out := p.state.Handle(Input{
		At: p.at, From: p.actor(who), Random: [16]byte{byte(p.chance >> 8), byte(p.chance), 1},
		Message: &wire.Request{ID: id, Operation: "submit-task-request", Body: r, Form: dialect.TaskRequest, Sum: r.Sum},
	})
	require.NoError(p.t, out.Fault)
	p.records = append(p.records, out.Records...)
	return out
}

// TestGiven checks that the owner of a task decides the meaning of its messages.
//
// Rows: D-18, T-32.
func TestGiven(t *testing.T) {
	p := newPlayer(t)
	for _, line := range []string{"agents: boss(planner) dev(worker; weigh,cut)", "up", "start boss", "start dev", "request boss t-1 weigh"} {
		p.play(line)
	}
	require.True(t, p.state.Given("dev", "t-1"))
	require.False(t, p.state.Given("boss", "t-1"))
	require.False(t, p.state.Given("dev", "t-2"))
	require.False(t, p.state.Given("", "t-1"))
	require.True(t, p.state.Does("cut"))
	require.False(t, p.state.Does("paint"))
	require.False(t, p.state.Does("worker"), "that is a role")
	p.play("respond dev t-1 completed")
	require.True(t, p.state.Given("dev", "t-1"), "it was")
}

// TestLinesOfRecords checks that a recorded line equals the line to be written.
//
// Rows: D-17, D-38.
func TestLinesOfRecords(t *testing.T) {
	p := newPlayer(t)
	for _, line := range []string{
		"agents: boss(planner) dev(worker)", "up", "start boss", "start dev", "request boss t-1 weigh to=dev",
		"act boss t-1 update 1.50", `respond dev t-1 completed result={"n":1.50}`,
	} {
		p.play(line)
	}
	var kept []string
	for _, r := range p.records {
		line, err := state.LineOf(r)
		if err != nil {
			require.ErrorContains(t, err, "keeps no line")
			continue
		}
		kept = append(kept, string(line))
	}
	require.Equal(t, []string{
		`{"id":"t-1","type":"task.update","payload":{"input":1.50}}`,
		`{"id":"t-1","result":{"n":1.50},"status":"completed"}`,
	}, kept)
	_, err := state.LineOf(wire.Record{Seq: 7, Kind: "task.danced", Payload: []byte("{}")})
	require.ErrorContains(t, err, "record 7")
}

// TestForeignDelegation checks that records about delegated work have no effect if they do not
// follow from the records before them.
//
// Rows: D-17.
func TestForeignDelegation(t *testing.T) {
	p := newPlayer(t)
	for _, line := range []string{
		"agents: boss(planner) dev(worker)", "up", "start boss", "start dev", `> boss a submit-task {"type":"t","name":"plain","requiredRole":"worker"}`,
		"request boss t-1 weigh to=dev",
	} {
		p.play(line)
	}
	before := spelled(t, p.state)
	plain := p.task("plain").View.ID
	for _, test := range []struct{ kind, payload, why string }{
		{events.TaskCreated, `{"task":"a","delegated":{"document":{"id":"a"},"sum":1}}`, "its request makes no sense"},
		{events.TaskForwarded, `{"task":"` + plain + `","agent":"dev"}`, "was not handed on"},
		{events.TaskForwarded, `{"task":"nowhere","agent":"dev"}`, "there is no task nowhere"},
		{events.TaskReturned, `{"task":"` + plain + `","agent":"dev"}`, "was not handed on"},
		{events.TaskResponded, `{"task":"` + plain + `"}`, "was not handed on"},
		{events.TaskAnswered, `{"task":"` + plain + `"}`, "was not handed on"},
		{events.TaskUnanswered, `{"task":"` + plain + `"}`, "was not handed on"},
		{events.TaskActed, `{"task":"` + plain + `"}`, "was not handed on"},
		{events.TaskRetried, `{"task":"t-1"}`, "it does not say why"},
		{events.TaskRetried, `{"task":"` + plain + `","error":{}}`, "was not handed on"},
	} {
		err := p.state.Apply(nil, wire.Record{Seq: p.state.Seq() + 1, At: beginning, Kind: test.kind, Payload: []byte(test.payload)})
		require.ErrorContains(t, err, test.why, "%s %s", test.kind, test.payload)
		require.Equal(t, before, spelled(t, p.state))
	}
}

// TestResponsesInVain checks that a response to a task that another agent has by now is ignored,
// and that questions to people are limited.
//
// Rows: D-18, D-25, K-22.
func TestResponsesInVain(t *testing.T) {
	p := newPlayer(t)
	for _, line := range []string{"agents: boss(planner) dev(worker)", "up", "start boss", "start dev", "request boss t-1 weigh to=dev"} {
		p.play(line)
	}
	responds := func(who, id, status string) *wire.Error {
		r, err := wire.ReadTaskResponse([]byte(`{"id":"`+id+`","status":"`+status+`","message":"?"}`), 64)
		require.Nil(t, err)
		return p.do(p.actor(who), &wire.AgentEvent{ID: id, Name: wire.ReportTaskResponse, Body: r}).Refused
	}
	for range maxQuestions {
		require.Nil(t, p.do(p.actor("dev"), &wire.AgentEvent{Name: "question", Body: &activity.OpenQuestion{Question: "why?"}}).Refused)
	}
	before := spelled(t, p.state)
	require.Equal(t, wire.CodeNotFound, responds("boss", "t-1", "completed").Code)
	require.Equal(t, wire.CodeNotFound, responds("dev", "t-2", "completed").Code)
	require.Equal(t, wire.CodeConflict, responds("dev@old", "t-1", "completed").Code)
	require.Equal(t, wire.CodeLimited, responds("dev", "t-1", "input_required").Code)
	require.Equal(t, before, spelled(t, p.state))
	require.Nil(t, responds("dev", "t-1", "completed"))
}

// TestCompleteResponse checks that Complete fails if the record of a response is missing or of
// another kind.
//
// Rows: D-40.
func TestCompleteResponse(t *testing.T) {
	p := newPlayer(t)
	for _, line := range []string{"agents: boss(planner) dev(worker)", "up", "start boss", "start dev", "request boss t-1 weigh to=dev", "respond dev t-1 completed"} {
		p.play(line)
	}
	answer := &wire.TaskAnswer{Document: wire.Raw(`{"id":"t-1","status":"completed"}`)}
	gone := read(func(seq int64) (wire.Record, error) { return wire.Record{}, fmt.Errorf("record %d is gone", seq) })
	foreign := read(func(int64) (wire.Record, error) { return wire.Record{Kind: "task.danced"}, nil })
	for _, page := range []history.Page{{Task: "t-1", Response: 7}, {Task: "t-1", Ended: 7}} {
		_, err := state.Complete(answer, []history.Page{page}, gone)
		require.ErrorContains(t, err, "record 7 is gone")
		_, err = state.Complete(answer, []history.Page{page}, foreign)
		require.Error(t, err)
	}
	_, err := state.Complete(answer, []history.Page{{Task: "t-1", Response: 1}}, shelf(p.records))
	require.ErrorContains(t, err, "keeps no line")
	whole, err := state.Complete(answer, nil, shelf(p.records))
	require.NoError(t, err)
	require.Equal(t, answer, whole)
}
