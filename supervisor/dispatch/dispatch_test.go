package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// TestNothingFollowsABrokenRecord checks that after a failure of the log events are shown
// without a number, and no letter is sent: an agent could rely on it.
func TestNothingFollowsABrokenRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		door := d.recipients.wait("door:boss")
		boss := handlers.Actor{Kind: handlers.Agent, Name: "boss", Run: "door:boss"}
		ask := func(id, operation, payload string) {
			r := &wire.Request{ID: id, Operation: operation, Timestamp: noon, Payload: []byte(payload)}
			require.Nil(t, handlers.Prepare(r, 64))
			d.submit([]handlers.Input{{At: time.Now(), From: boss, Message: r, Random: randomBytes()}}, new(work))
		}
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "boss", Role: wire.RolePlanner}, {ID: "w", Role: wire.RoleWorker, Capacity: 1}}})
		ask("1", "submit-task", `{"type":"t","name":"n","requiredRole":"worker"}`)
		require.Nil(t, (<-door).Refusal)
		ask("2", "ask-user", `{"question":"why?","timeout":1000}`)
		d.Settle()

		record.meddle(func() error { return errors.New("broken") })
		d.Note(&wire.Event{Kind: events.OrchestratorIdle})
		d.taken()
		d.Note(&wire.Event{Kind: events.AgentStarted, Agent: "w", Run: "run"})
		shown := d.taken()
		require.NotEmpty(t, shown)
		for _, r := range shown {
			require.Zero(t, r.Seq, "%s has a number", r.Kind)
		}
		<-time.After(2 * time.Second)
		require.Equal(t, wire.CodeInternal, (<-door).Refusal.Code, "it was not recorded that the question is over")
		ask("3", "query-agents", `{}`)
		require.Equal(t, wire.CodeInternal, (<-door).Refusal.Code)
		d.Close()
	})
}

// A patience is a Meter that waits until the recorder has sent everything.
type patience struct{}

func (patience) Judged(string, string, wire.Code, int)            { synctest.Wait() }
func (patience) Recorded([]wire.Record, time.Time, time.Duration) {}

// answers are the ids of answered requests, in order.
type answers []string

func (*answers) Asked(Asked)           {}
func (a *answers) Answered(x Answered) { *a = append(*a, x.ID) }

// TestAnswersKeepTheOrderOfRequests checks that replies keep the order of requests, even if only
// one of two in a chunk waits for the log. An agent that exits because of a refusal exits before
// it gets later replies.
//
// Rows: B-62.
func TestAnswersKeepTheOrderOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		boss := handlers.Actor{Kind: handlers.Agent, Name: "boss", Run: "run"}
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "boss", Role: wire.RolePlanner}, {ID: "w", Role: wire.RoleWorker, Capacity: 1}}})
		d.Settle()
		var order answers
		d.options.Watch = Hooks{Meter: patience{}, Tracer: &order}
		var chunk []handlers.Input
		for id, operation := range []string{"get-task", "submit-task", "query-agents"} {
			r := &wire.Request{ID: strconv.Itoa(id), Operation: operation, Timestamp: noon, Payload: []byte(`{"type":"t","name":"n","requiredRole":"worker"}`)}
			if operation != "submit-task" {
				r.Payload = []byte(`{"taskId":"none"}`)
			}
			require.Nil(t, handlers.Prepare(r, 64))
			chunk = append(chunk, handlers.Input{At: time.Now(), From: boss, Message: r, Random: randomBytes()})
		}
		d.submit(chunk, new(work))
		d.Settle()
		require.Equal(t, answers{"0", "1", "2"}, order)
		d.Close()
	})
}

// TestPanicIsAnswered checks that a panic costs only its request: the agent gets an error on its
// stdin, without a stack, and its next request is granted.
func TestPanicIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "boss", Role: wire.RolePlanner}}})
		boss := d.enter("boss", stdin.Limits{Messages: 10, Bytes: 1 << 20})
		boss.listen()
		bad := &wire.Request{ID: "bad", Operation: "submit-task", Body: (*wire.SubmitTask)(nil)}
		d.submit([]handlers.Input{{At: time.Now(), From: boss.actor(), Message: bad}}, new(work))
		boss.says(`{"type":"request:query-agents","id":"good","timestamp":"` + noon + `"}`)
		lines := boss.lines()
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], `"correlationId":"bad"`)
		require.Contains(t, lines[0], `"code":"INTERNAL_ERROR"`)
		require.NotContains(t, lines[0], "goroutine")
		require.Contains(t, lines[1], `"type":"response:success"`)
		require.Contains(t, lines[1], `"correlationId":"good"`)
		d.Close()
	})
}

// TestTurnsAreNotRecorded checks that the last event:turn of a run can be read, and that none is
// recorded.
func TestTurnsAreNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "boss", Role: wire.RolePlanner}}})
		boss := d.enter("boss", stdin.Limits{Messages: 10, Bytes: 1 << 20})
		boss.listen()
		require.Nil(t, boss.Turn())
		d.Settle()
		before := record.Last()
		boss.says(
			`{"type":"event:turn","id":"1","timestamp":"`+noon+`","payload":{"state":"busy","what":"go test"}}`,
			`{"type":"event:turn","id":"2","timestamp":"`+noon+`","payload":{"state":"waiting"}}`,
		)
		d.Settle()
		require.Equal(t, activity.Waiting, boss.Turn().State)
		require.Equal(t, before, record.Last())
		d.Close()
	})
}

// TestDoorHearsThatTheDiskHangs checks that a request over the API gets the error that the disk
// hangs, and that a canceled one is not waited for.
//
// Rows: B-29, B-62.
func TestDoorHearsThatTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record, Rules: handlers.Rules{RequestTimeout: time.Second}})
		gate := make(chan struct{})
		record.meddle(func() error { <-gate; return nil })
		operator := handlers.Actor{Kind: handlers.Operator}
		left, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := d.Requests().Ask(left, operator, "submit-task", []byte(`{"type":"t","name":"n"}`))
			gone <- err
		}()
		synctest.Wait()
		leave()
		require.ErrorIs(t, <-gone, context.Canceled)
		for range 3 { // the later ones, too
			_, err := d.Requests().Ask(t.Context(), operator, "submit-task", []byte(`{"type":"t","name":"n"}`))
			var refused *wire.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, wire.CodeTimeout, refused.Code)
		}
		close(gate)
		_, err := d.Requests().Ask(t.Context(), operator, "submit-task", []byte(`{"type":"t","name":"n"}`))
		require.NoError(t, err)
		require.Len(t, record.facts(t, events.TaskCreated), 5)
		require.Empty(t, d.recipients.waiters)
		d.Close()
	})
}

// TestComplaints checks that different complaints are all reported, equal ones once with their
// count, and at most a few together.
func TestComplaints(t *testing.T) {
	type told struct {
		text  string
		count int64
	}
	say := func(texts ...string) (all []told) {
		var what complaints
		for _, text := range texts {
			what.add(text)
		}
		what.report(time.Unix(9, 0), func(text string, count int64) { all = append(all, told{text, count}) })
		return all
	}
	require.Empty(t, say())
	require.Equal(t, []told{{"b (2 times)", 2}, {"a", 1}}, say("b", "a", "b"))
	var many []string
	for n := range 8 {
		many = append(many, fmt.Sprint(n))
	}
	all := say(many...)
	require.Len(t, all, maxComplaints)
	require.Equal(t, told{"4 (and 3 more)", 4}, all[maxComplaints-1])
}

// TestLateComplaints checks that a text that comes within a second of a report is reported when the second is over,
// once, also without later texts, and that flush reports it at once.
func TestLateComplaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var what complaints
		var mu sync.Mutex // a timer complains, too
		var all []string
		complain := func(text string, _ int64) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, text)
		}
		heard := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		say := func(text string) {
			what.add(text)
			what.report(time.Now(), complain)
		}
		later := func() {
			<-time.After(time.Second)
			synctest.Wait()
		}
		say("a")
		say("b")
		say("c")
		require.Equal(t, []string{"a"}, heard())
		later()
		require.Equal(t, []string{"a", "b", "c"}, heard())
		say("d")
		what.flush(time.Now(), complain)
		require.Equal(t, []string{"a", "b", "c", "d"}, heard())
		later()
		require.Len(t, heard(), 4)
	})
}

// TestMailWaitersAreRemoved checks that a waiter for mail is removed when its reader ends, for any
// reason.
func TestMailWaitersAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "one", Actor: "PO:one"}}})
		one := d.enter("one", stdin.Limits{Messages: 100, Bytes: 1 << 20})
		one.listen()
		waiters := func() int {
			n := &d.notifier
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.waiters)
		}
		one.says(`{"type":"request:send-message","id":"1","timestamp":"` + noon + `","payload":{"to_actor":"PO:one","topic":"message.direct","payload":{}}}`)
		sent := 0
		require.NoError(t, d.Requests().Messages(t.Context(), MailQuery{}, func(mail.Message) error { sent++; return nil }))
		require.Positive(t, sent)
		require.Zero(t, waiters())
		gone := errors.New("gone")
		require.ErrorIs(t, d.Requests().Messages(t.Context(), MailQuery{Follow: true}, func(mail.Message) error { return gone }), gone)
		require.Zero(t, waiters())
		one.box.Drop()
		d.Close()
	})
}
