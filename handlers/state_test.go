package handlers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/access"
	"orchestrator/handlers/history"
	"orchestrator/handlers/snapshot"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// TestForeignRecords checks that a record that does not follow from the records before it is an
// error that names it, without an effect.
func TestForeignRecords(t *testing.T) {
	const task = "00000005-0000-4000-8000-000000000000"
	for _, test := range []struct{ kind, payload, why string }{
		{"task.danced", `{}`, `is of the kind "task.danced", which this version does not know`},
		{events.TaskDone, `{"task":7}`, "cannot be read"},
		{events.TaskDone, `[]`, "cannot be read"},
		{events.TaskDone, ``, "cannot be read"},
		{events.AgentKnown, `{}`, "the agent has no name"},
		{events.AgentForgotten, `{"id":"nobody"}`, `agent "nobody" does not exist`},
		{events.TaskCreated, `{}`, "the task has no id"},
		{events.TaskCreated, `{"task":"` + task + `"}`, "there is a task " + task + " already"},
		{events.TaskCreated, `{"task":"a","dependencies":["b"]}`, "task b to depend on does not exist"},
		{events.TaskAssigned, `{"task":"` + task + `","agent":"nobody"}`, `agent "nobody" does not exist`},
		{events.TaskAssigned, `{"task":"a","agent":"coder"}`, "there is no task a"},
		{events.TaskStarted, `{"task":"` + task + `"}`, "is pending"},
		{events.TaskProgress, `{"task":"` + task + `"}`, "is pending"},
		{events.TaskRequeued, `{"task":"` + task + `"}`, "is pending"},
		{events.TaskDone, `{"task":"` + task + `"}`, "is pending"},
		{events.TaskFailed, `{"task":"` + task + `"}`, "is pending"},
		{events.TaskCancelled, `{"task":"a"}`, "there is no task a"},
		{events.QuestionAsked, `{"question_id":"q1"}`, "there is a question q1 already"},
		{events.QuestionRejoined, `{"question_id":"q1"}`, "no caller waits"},
		{events.QuestionRejoined, `{"question_id":"q2","request":{"id":"1","run":"r","timestamp":"","sum":1}}`, "there is no question q2"},
		{events.QuestionAnswered, `{"question_id":"q2"}`, "there is no question q2"},
		{events.QuestionExpired, `{"question_id":"q2"}`, "there is no question q2"},
	} {
		t.Run(test.kind+" "+test.payload, func(t *testing.T) {
			p := atWork(t)
			p.play(`> planner 1 submit-task {"type":"t","name":"one"}`)
			p.play(`> planner 2 ask-user {"question":"?"}`)
			require.Equal(t, task, p.task("one").View.ID)
			before := spelled(t, p.state)
			seq := p.state.Seq()
			err := p.state.Apply(nil, wire.Record{Seq: seq + 1, At: beginning, Kind: test.kind, Payload: []byte(test.payload)})
			require.ErrorContains(t, err, test.why)
			require.ErrorContains(t, err, fmt.Sprintf("record %d", seq+1))
			require.Equal(t, before, spelled(t, p.state))
		})
	}
}

// TestGap checks that a missing or repeated record is an error.
func TestGap(t *testing.T) {
	p := atWork(t)
	for _, seq := range []int64{0, p.state.Seq(), p.state.Seq() + 2} {
		err := p.state.Apply(nil, wire.Record{Seq: seq, Kind: events.OrchestratorStarted, Payload: []byte(`{"text":""}`)})
		require.ErrorContains(t, err, "follows record")
	}
}

// TestForeignSnapshots checks that an invalid snapshot gives no State, and that the records
// still do.
func TestForeignSnapshots(t *testing.T) {
	p := atWork(t)
	p.play(`> planner 1 submit-task {"type":"t","name":"one","requiredRole":"worker"}`)
	p.play(`> planner 2 submit-task {"type":"t","name":"two","dependencies":["$one"]}`)
	p.play(`> planner 3 ask-user {"question":"?"}`)
	whole := spelled(t, p.state)
	one := p.task("one").View.ID
	twice := func(list string) string {
		at := strings.Index(whole, list) + len(list)
		end := at + strings.Index(whole[at:], `],"`)
		return whole[:at] + whole[at:end] + "," + whole[at:end] + whole[end:]
	}
	for name, text := range map[string]string{
		"nothing":               "",
		"not JSON":              "{",
		"half":                  whole[:len(whole)/2],
		"another version":       strings.Replace(whole, fmt.Sprintf(`"version":%d`, snapshot.SnapshotVersion), `"version":12`, 1),
		"a task that is missed": strings.Replace(whole, `{"view":{"id":"`+one+`"`, `{"view":{"id":"else"`, 1),
		"a task in no list":     strings.Replace(whole, `"finished":[`, `"finished":["else"`, 1),
		"a task twice":          twice(`"tasks":[`),
		"an agent twice":        twice(`"agents":[`),
		"a question twice":      twice(`"questions":[`),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, whole, text)
			_, ok := Restore(Rules{}, []byte(text), nil)
			require.False(t, ok)
		})
	}
	restored(t, Rules{}, whole)
}

// TestComplete checks that a stub is completed only from its own records.
func TestComplete(t *testing.T) {
	p := atWork(t)
	p.play(`> planner 1 submit-task {"type":"t","name":"one","payload":{"a":1}}`)
	p.play(`> planner 2 submit-task {"type":"t","name":"two","payload":{"b":1}}`)
	answer := p.state.Tasks.Reply(p.task("one"))
	answer.Task.Payload = nil
	one, two := p.task("one"), p.task("two")
	whole, err := state.Complete(answer, []history.Page{{Task: one.View.ID, Parts: []int64{one.Number}}}, shelf(p.records))
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(whole.(*wire.TaskReply).Task.Payload))
	require.Nil(t, answer.Task.Payload, "the one that was given may be remembered")
	_, err = state.Complete(answer, []history.Page{{Task: one.View.ID, Parts: []int64{two.Number}}}, shelf(p.records))
	require.ErrorContains(t, err, "is not about task")
	_, err = state.Complete(answer, []history.Page{{Task: one.View.ID, Parts: []int64{1}}},
		read(func(int64) (wire.Record, error) { return wire.Record{Kind: "task.danced"}, nil }))
	require.Error(t, err)
}

// TestKeys checks that a key is shown once and kept as a hash. It acts for its agent as long as
// that is in the configuration.
func TestKeys(t *testing.T) {
	p := atWork(t)
	p.play(`> operator a issue-key {"agent":"coder"}`)
	issued, ok := p.last.Letters[0].Payload.(*wire.IssuedKey)
	require.True(t, ok)
	require.True(t, strings.HasPrefix(issued.Key, "orc_"))
	for _, r := range p.records {
		require.NotContains(t, string(r.Payload), issued.Key[len("orc_"):])
	}
	require.NotContains(t, spelled(t, p.state), issued.Key[len("orc_"):])
	name, ok := p.state.AgentOf(access.Hash(issued.Key), p.at)
	require.True(t, ok)
	require.Equal(t, "coder", name)
	_, ok = p.state.AgentOf(access.Hash("orc_another"), p.at)
	require.False(t, ok)
	p.play("agents: planner(planner)")
	_, ok = p.state.AgentOf(access.Hash(issued.Key), p.at)
	require.False(t, ok)
	p.play("agents: planner(planner) coder(worker)")
	_, ok = p.replayed().AgentOf(access.Hash(issued.Key), p.at)
	require.True(t, ok)
}

// TestTokensAreRevoked checks that a person's token that was revoked stays revoked in another life.
func TestTokensAreRevoked(t *testing.T) {
	p := atWork(t)
	p.play(`> operator a issue-token {"sub":"ann","role":"viewer"}`)
	issued, ok := p.last.Letters[0].Payload.(*wire.IssuedToken)
	require.True(t, ok)
	require.True(t, p.state.TokenIssued(issued.ID))
	require.False(t, p.state.TokenIssued("forged"))
	p.play(`> operator b issue-token {"sub":"bob"}`)
	other, ok := p.last.Letters[0].Payload.(*wire.IssuedToken)
	require.True(t, ok)
	p.play(`> operator c revoke-token {"id":"` + issued.ID + `"}`)
	for _, s := range []*State{p.state, p.replayed()} {
		require.False(t, s.TokenIssued(issued.ID))
		require.True(t, s.TokenIssued(other.ID))
	}
}

// TestTokensAreRecorded checks that a person's token is known with the subject, the role and the end that
// it was issued with, also in another life.
func TestTokensAreRecorded(t *testing.T) {
	p := atWork(t)
	p.play(`> operator a issue-token {"sub":"ann","role":"viewer"}`)
	issued, ok := p.last.Letters[0].Payload.(*wire.IssuedToken)
	require.True(t, ok)
	end, ok := object.ParseTime(issued.ExpiresAt)
	require.True(t, ok)
	for _, s := range []*State{p.state, p.replayed()} {
		require.True(t, s.TokenRecorded(issued.ID, "ann", wire.PersonViewer, end.Truncate(time.Second)))
		require.False(t, s.TokenRecorded("forged", "ann", wire.PersonViewer, end))
		require.False(t, s.TokenRecorded(issued.ID, "bob", wire.PersonViewer, end))
		require.False(t, s.TokenRecorded(issued.ID, "ann", wire.PersonAdmin, end))
		require.False(t, s.TokenRecorded(issued.ID, "ann", wire.PersonViewer, end.Add(time.Second)))
	}
}

// TestTellBroken checks that a record that cannot be decoded is still shown.
func TestTellBroken(t *testing.T) {
	e := state.Tell(wire.Record{Seq: 7, At: beginning, Kind: "task.danced", Payload: []byte(`{"with":"x"}`)})
	require.Equal(t, int64(7), e.Seq)
	require.Equal(t, "task.danced", e.Kind)
	require.JSONEq(t, `{"with":"x"}`, string(e.Payload))
	require.Contains(t, e.Text, "does not know")
}

// TestAwaits checks that a run with an open question waits for the answer.
func TestAwaits(t *testing.T) {
	p := atWork(t)
	require.False(t, p.state.HasPendingReply("planner.1"))
	p.play(`> planner 1 ask-user {"question":"?"}`)
	require.True(t, p.state.HasPendingReply("planner.1"))
	require.False(t, p.state.HasPendingReply("coder.1"))
	p.play(`> operator a answer-question {"questionId":"q1","answer":"yes"}`)
	require.False(t, p.state.HasPendingReply("planner.1"))
}

// TestAbout checks that About finds the agent of a record without decoding it.
func TestAbout(t *testing.T) {
	for _, test := range []struct{ from, to, about string }{
		{"agent:planner", "", "planner"},
		{"orchestrator", "agent:coder", "coder"},
		{"agent:planner", "agent:coder", "planner"},
		{"operator", "", ""},
	} {
		require.Equal(t, test.about, state.About(&wire.Record{From: test.from, To: test.to}))
	}
	require.True(t, state.Happening(events.AgentStarted))
	require.False(t, state.Happening(events.TaskDone))
}
