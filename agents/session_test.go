package agents_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

var (
	lead  = agents.ArchitectID("lead")
	coder = agents.DeveloperID("coder")
	judge = agents.ReviewerID("judge")
)

// as opens a session as the given agent.
func (t *talk) as(who session.Agent) *agents.Session {
	t.Helper()
	s, err := t.agent.OpenSession(agents.Identity{Agent: who.AgentID, Type: who.AgentType, Session: "kitchen"})
	require.NoError(t, err)
	return s
}

// A spoken value is a message from another agent of the session.
type spoken struct {
	id, chain, replyTo string
	seq                int64
	from, to           session.Agent
	kind               string
	payload            any
}

// line returns the message as the orchestrator delivers it.
func (s spoken) line() string {
	if s.id == "" {
		s.id = uuid.NewString()
	}
	text, err := object.Encode(map[string]any{
		"message_id": s.id, "timestamp": "2026-02-04T14:30:00Z", "sequence_number": s.seq, "from_agent": s.from, "to_agent": s.to,
		"message_type": s.kind, "payload": s.payload, "correlation_id": "chain" + s.chain,
	})
	if err != nil {
		panic(err)
	}
	if s.replyTo != "" {
		text = fmt.Appendf(text[:len(text)-1], `,"reply_to":%q}`, s.replyTo)
	}
	return string(text)
}

func (t *talk) deliver(m spoken) {
	t.Helper()
	t.say(m.line())
	synctest.Wait()
}

// hears expects a session message of a type and reads its payload.
func (t *talk) hears(kind string, into any) *agents.Said {
	t.Helper()
	said, err := t.peer.Said()
	require.NoError(t, err)
	require.Equal(t, kind, said.MessageType, string(said.Document))
	require.Empty(t, said.Notes)
	if into != nil {
		require.NoError(t, said.Read(into))
	}
	return said
}

func (t *talk) undeliver(said *agents.Said, why *wire.Error) {
	t.Helper()
	require.NoError(t, t.peer.Undelivered(said.MessageID, "", why))
	synctest.Wait()
}

// doing runs a function in the background and returns the channel of its error.
func doing(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

func boil(task string) agents.Assignment {
	return agents.Assignment{Priority: "medium", Task: agents.TaskInput{
		TaskID: task, Description: "boil water", AcceptanceCriteria: []string{"it boils"},
		Constraints: agents.Constraints{Scope: []string{"kettle/**"}},
	}}
}

func TestSessionVerbs(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		var sent *agents.Sent
		done := doing(func() (err error) { sent, err = s.Assign(t.Context(), "coder", boil("kettle")); return err })
		first := t.hears(session.TypeTaskAssignment, nil)
		require.NoError(t, <-done)
		require.JSONEq(t, `{
			"task":{"task_id":"kettle","task_description":"boil water","context":{"specs":[],"reference_files":[]},
				"constraints":{"scope":["kettle/**"],"testing_required":false,"must_not_break":[]},"acceptance_criteria":["it boils"]},
			"priority":"medium"}`, string(first.Payload))
		require.Equal(t, first.MessageID, sent.MessageID)
		require.Equal(t, first.CorrelationID, sent.CorrelationID)
		require.NotEmpty(t, sent.CorrelationID)
		require.Equal(t, []any{"kitchen", lead, coder, int64(1)}, []any{first.SessionID, first.From, first.To, sent.SequenceNumber})
		require.Equal(t, "2000-01-01T00:00:00.000Z", first.Timestamp)

		chained := s.Chain("mine")
		for kind, say := range map[string]func() (*agents.Sent, error){
			session.TypeReviewRequest: func() (*agents.Sent, error) {
				return chained.RequestReview(t.Context(), "judge", agents.ReviewRequest{TaskID: "kettle"})
			},
			session.TypeAbort: func() (*agents.Sent, error) {
				return chained.Abort(t.Context(), coder, agents.Abort{Scope: session.AbortSession, Reason: "enough"})
			},
			session.TypeFeedback: func() (*agents.Sent, error) {
				return chained.GiveFeedback(t.Context(), judge, agents.Feedback{Type: session.FeedbackGuidance})
			},
			session.TypeStatusQuery: func() (*agents.Sent, error) {
				return chained.AskStatus(t.Context(), judge, agents.StatusQuery{TaskID: "kettle"})
			},
		} {
			done := doing(func() error { _, err := say(); return err })
			said := t.hears(kind, nil)
			require.NoError(t, <-done)
			require.Equal(t, "mine", said.CorrelationID)
			require.Greater(t, said.SequenceNumber, int64(1))
		}
	})
}

// TestAnswersKeepTheChain checks that an answer has the chain of its message and a higher
// sequence number.
func TestAnswersKeepTheChain(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(coder)
		t.deliver(spoken{id: "msg-7-kettle", seq: 41, from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil("kettle")})
		var said *agents.Said
		for said = range t.agent.Talk(t.Context()) {
			break
		}
		for kind, say := range map[string]func() (*agents.Sent, error){
			session.TypeAcknowledgment: func() (*agents.Sent, error) { return s.Acknowledge(t.Context(), said) },
			session.TypeTaskProgress: func() (*agents.Sent, error) {
				return s.Report(t.Context(), said, agents.Progress{Percent: 12.5, Step: "filling"})
			},
			session.TypeTaskCompletion: func() (*agents.Sent, error) {
				return s.Complete(t.Context(), said, agents.Completion{Summary: "it boils", Changes: agents.FileChanges{Created: []agents.FileChange{{Path: "kettle/a"}}}})
			},
			session.TypeFeedback: func() (*agents.Sent, error) {
				return s.Answer(t.Context(), said, agents.Feedback{Type: session.FeedbackQuestion})
			},
			session.TypeStatusResponse: func() (*agents.Sent, error) { return s.TellStatus(t.Context(), said, agents.Status{}) },
		} {
			done := doing(func() error { _, err := say(); return err })
			answer := t.hears(kind, nil)
			require.NoError(t, <-done)
			require.Equal(t, []any{"chain", lead}, []any{answer.CorrelationID, answer.To}, kind)
			require.Greater(t, answer.SequenceNumber, int64(41))
			require.Equal(t, "msg-7-kettle", answer.ReplyTo)
			if kind == session.TypeTaskCompletion {
				require.Contains(t, string(answer.Payload), `"task_id":"kettle","status":"completed"`)
				require.Contains(t, string(answer.Payload), `"change_type":"created"`)
			}
		}
	})
}

// TestSessionsRefuseWhatMakesNoSense checks that invalid messages are refused at once and not
// sent.
func TestSessionsRefuseWhatMakesNoSense(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		_, err := s.Assign(t.Context(), "coder", agents.Assignment{Priority: "urgent"})
		require.ErrorContains(t, err, "task_assignment: it cannot be said: task.task_id must not be empty")
		_, err = s.GiveFeedback(t.Context(), coder, agents.Feedback{Type: "praise"})
		require.ErrorContains(t, err, "feedback_type must be one of")
		_, err = s.TellStatus(t.Context(), &agents.Said{Message: &session.Message{From: coder}}, []int{1})
		require.ErrorContains(t, err, "a payload must be an object")
		_, err = t.as(coder).Assign(t.Context(), "judge", boil("kettle"))
		require.ErrorContains(t, err, "task_assignment is for an agent of the type architect to say")

		stopped, stop := context.WithCancel(t.Context())
		stop()
		_, err = s.Assign(stopped, "coder", boil("kettle"))
		require.ErrorIs(t, err, context.Canceled)
		requireSilence(t)
	})
}

func TestWhoIsWhoInASession(t *testing.T) {
	conn, peer := agents.Pipe()
	defer peer.Close()
	_, err := conn.OpenSession(agents.Identity{Type: session.AgentDeveloper})
	require.ErrorContains(t, err, "$ORC_AGENT_ID is not set")
	_, err = conn.OpenSession(agents.Identity{Agent: "coder", Type: "worker"})
	require.ErrorContains(t, err, `"worker" is none of the types`)

	t.Setenv("ORC_AGENT_ID", "coder")
	t.Setenv("ORC_SESSION_TYPE", "developer")
	t.Setenv("ORC_SESSION", "kitchen")
	s, err := conn.OpenSession(agents.Identity{})
	require.NoError(t, err)
	require.Equal(t, agents.Identity{Agent: "coder", Type: "developer", Session: "kitchen"}, s.Identity())
	require.Same(t, conn, s.Conn())
	require.ErrorContains(t, s.Lead(t.Context(), nil), "coder is of the type developer, and this is for one of the type architect")
	require.Error(t, s.Review(t.Context(), nil))
}

// enough is a number of tasks beyond the number that is remembered.
const enough = 9000

// TestTasksThatAreForgotten checks that a task without a reference in the program is forgotten
// after many others.
func TestTasksThatAreForgotten(t *testing.T) {
	converse(t, func(t *talk) {
		lone, many := make(chan struct{}), make(chan struct{})
		done := t.leading(func(ctx context.Context, a *agents.Architect) error {
			held, err := a.Assign(ctx, "coder", boil("held"))
			if err != nil {
				return err
			}
			<-lone
			runtime.GC()
			_, err = held.Completion(ctx)
			<-many
			runtime.GC()
			ended, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			if _, known := a.Task(fmt.Sprint(enough - 1)).Completion(ended); known != nil {
				err = errors.Join(err, fmt.Errorf("the latest is gone: %w", known))
			}
			if _, forgotten := a.Task("0").Completion(ended); !errors.Is(forgotten, context.DeadlineExceeded) {
				err = errors.Join(err, errors.New("the oldest is still known"))
			}
			return err
		})
		assignment := t.hears(session.TypeTaskAssignment, nil)
		for n := range enough {
			t.say(spoken{from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{TaskID: fmt.Sprint(n), Status: session.OutcomeCompleted}}.line())
		}
		synctest.Wait()
		close(lone)
		synctest.Wait()
		t.completes(assignment, agents.Completion{})
		close(many)
		require.NoError(t, <-done)
	})
}

// TestTidingsThatNobodyLooksFor checks that the number of unread messages of a kind is bounded,
// and that a completion is kept.
func TestTidingsThatNobodyLooksFor(t *testing.T) {
	converse(t, func(t *talk) {
		look := make(chan struct{})
		done := t.leading(func(ctx context.Context, a *agents.Architect) error {
			<-look
			completion, err := a.Task("kettle").Completion(ctx)
			if err == nil && completion.Summary != "it boils" {
				err = errors.New(completion.Summary)
			}
			for n := 100 - 64; n < 100 && err == nil; n++ {
				completion, err = a.Task("lid").Completion(ctx)
				if err == nil && completion.Summary != fmt.Sprint(n) {
					err = fmt.Errorf("%s in place of %d", completion.Summary, n)
				}
			}
			return err
		})
		say := func(task, summary string) {
			t.say(spoken{from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{TaskID: task, Status: session.OutcomeCompleted, Summary: summary}}.line())
		}
		say("kettle", "it boils")
		for n := range 100 {
			say("lid", fmt.Sprint(n))
			t.say(spoken{from: judge, to: lead, kind: session.TypeFeedback, replyTo: "msg-1", payload: agents.Feedback{
				Type: session.FeedbackClarification, ActionRequired: true, TaskID: "kettle",
			}}.line())
			t.notify(agents.TaskUpdated, "kettle")
		}
		synctest.Wait()
		close(look)
		require.NoError(t, <-done)
	})
}

// A busy context runs a function of the test before its owner waits for it.
type busy struct {
	context.Context
	with chan func() // at most one
}

func (b busy) Done() <-chan struct{} {
	select {
	case do := <-b.with:
		do()
	default:
	}
	return b.Context.Done()
}

// TestTheLastWordInTheLastMoment checks that a result that has arrived counts, even if the
// context ends at the same time.
func TestTheLastWordInTheLastMoment(t *testing.T) {
	for range 20 { // it depends on chance which of the two is seen first
		converse(t, func(t *talk) {
			with := make(chan func(), 1)
			done := t.leading(func(ctx context.Context, a *agents.Architect) error {
				task, err := a.Assign(ctx, "coder", boil("kettle"))
				if err == nil {
					_, err = task.Completion(busy{Context: ctx, with: with})
				}
				return err
			})
			assignment := t.hears(session.TypeTaskAssignment, nil)
			t.notify(agents.TaskUpdated, "kettle")
			request := t.request("get-session")
			synctest.Wait()
			with <- func() { <-time.After(time.Minute) }
			t.answer(request, map[string]any{"tasks": []wire.SessionTask{{TaskID: "kettle", Phase: session.PhaseOver, State: wire.TaskDone}}})
			synctest.Wait()
			<-time.After(30 * time.Second)
			t.completes(assignment, agents.Completion{})
			require.NoError(t, <-done)
		})
	}
}

// TestNumbersFarAhead checks that high sequence numbers of others do not exhaust an agent's
// numbers.
func TestNumbersFarAhead(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(coder)
		for _, each := range []struct{ heard, said int64 }{{1 << 20, 1<<20 + 1}, {1 << 40, 1<<20 + 2}, {1<<20 + 7, 1<<20 + 8}} {
			t.deliver(spoken{seq: each.heard, from: lead, to: coder, kind: session.TypeStatusQuery, payload: map[string]any{}})
			var query *agents.Said
			for query = range t.agent.Talk(t.Context()) {
				break
			}
			done := doing(func() error { _, err := s.TellStatus(t.Context(), query, agents.Status{}); return err })
			require.Equal(t, each.said, t.hears(session.TypeStatusResponse, nil).SequenceNumber)
			require.NoError(t, <-done)
		}
	})
}
