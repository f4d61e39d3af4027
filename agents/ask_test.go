package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Rows: B-11, B-14.
func TestARequestOnTheLine(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.asking(t.Context(), "task-1")
		line, message, err := t.peer.Hear()
		require.NoError(t, err)
		request, ok := message.(*wire.Request)
		require.True(t, ok, line)
		require.NoError(t, uuid.Validate(request.ID))
		require.Equal(t, object.Timestamp(time.Now()), request.Timestamp, "the bubble's time stands still")
		require.JSONEq(t, fmt.Sprintf(
			`{"type":"request:get-task","id":%q,"timestamp":%q,"payload":{"taskId":"task-1"}}`, request.ID, request.Timestamp), line)
		t.answer(request, taskNamed("one"))
		require.NoError(t, (<-done).err)
	})
}

// Rows: B-11, B-26.
func TestAnswersOutOfOrder(t *testing.T) {
	converse(t, func(t *talk) {
		slow := t.asking(t.Context(), "slow")
		first := t.request("get-task")
		quick := t.asking(t.Context(), "quick")
		t.answer(t.request("get-task"), taskNamed("quick"))
		require.Equal(t, "quick", (<-quick).task.Name)
		t.answer(first, taskNamed("slow"))
		require.Equal(t, "slow", (<-slow).task.Name)
	})
}

// TestManyAskAtOnce sends many requests concurrently and reverses the order of each pair of
// answers.
func TestManyAskAtOnce(t *testing.T) {
	converse(t, func(t *talk) {
		const many = 1000
		var all sync.WaitGroup
		for n := range many {
			all.Go(func() {
				var got wire.TaskID
				want := wire.TaskID{TaskID: fmt.Sprint(n)}
				if err := t.agent.Ask(t.Context(), "echo", want, &got); err != nil || got != want {
					t.Errorf("asked for %v, was given %v, %v", want, got, err)
				}
			})
		}
		for range many / 2 {
			held, next := t.request("echo"), t.request("echo")
			t.answer(next, wire.Raw(next.Payload))
			t.answer(held, wire.Raw(held.Payload))
		}
		all.Wait()
	})
}

func TestARefusal(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.asking(t.Context(), "task-9")
		require.NoError(t, t.peer.Refuse(t.request("get-task").ID, &wire.Error{
			Code: wire.CodeNotFound, Message: "there is no task task-9", Details: map[string]any{"taskId": "task-9"},
		}))
		err := (<-done).err
		var refused *agents.Refusal
		require.ErrorAs(t, err, &refused)
		require.Equal(t, agents.NotFound, refused.Code)
		require.JSONEq(t, `{"taskId":"task-9"}`, string(refused.Details))
		require.Empty(t, refused.Reason())
		require.EqualError(t, err, "get-task: there is no task task-9 (NOT_FOUND)")
	})
}

func TestWhatRefusalsMean(t *testing.T) {
	for said, want := range map[string]agents.Refusal{
		`,"error":{"code":"TIMEOUT","message":"too late"}`: {Code: agents.Timeout, Message: "too late"},
		`,"error":{"code":"INVALID_REQUEST","message":"m","details":{"reason":"rate_limited"}}`: {
			Code: agents.InvalidRequest, Message: "m", Details: wire.Raw(`{"reason":"rate_limited"}`),
		},
		`,"error":{}`: {
			Code: agents.InternalError, Message: "refused, without a word that could be understood", Details: wire.Raw(`{}`),
		},
		``: {Code: agents.InternalError, Message: "refused, without a word that could be understood"},
	} {
		converse(t, func(t *talk) {
			done := t.asking(t.Context(), "x")
			t.say(fmt.Sprintf(`{"type":"response:error","id":"r","correlationId":%q%s}`, t.request("get-task").ID, said))
			var refused *agents.Refusal
			require.ErrorAs(t, (<-done).err, &refused)
			require.Equal(t, want, *refused)
		})
	}
	require.Equal(t, agents.ReasonLimited, (&agents.Refusal{Details: wire.Raw(`{"reason":"rate_limited"}`)}).Reason())
	require.Equal(t, 20*time.Millisecond, (&agents.Refusal{Details: wire.Raw(`{"retry_after_ms":20}`)}).RetryAfter())
	for _, details := range []string{`{}`, `{"retry_after_ms":-1}`, `{"retry_after_ms":"20"}`, `{"retry_after_ms":1e300}`, ``} {
		require.Zero(t, (&agents.Refusal{Details: wire.Raw(details)}).RetryAfter(), details)
	}
}

func TestWhoeverGivesUpIsForgotten(t *testing.T) {
	converse(t, func(t *talk) {
		why := errors.New("lost interest")
		ctx, giveUp := context.WithCancelCause(t.Context())
		done := t.asking(ctx, "x")
		late := t.request("get-task")
		giveUp(why)
		require.ErrorIs(t, (<-done).err, why)

		t.answer(late, taskNamed("late")) // no caller waits for it, and it has no effect
		again := t.asking(t.Context(), "y")
		request := t.request("get-task")
		require.NotEqual(t, late.ID, request.ID)
		t.answer(request, taskNamed("first"))
		t.answer(request, taskNamed("second"))
		require.Equal(t, "first", (<-again).task.Name)

		require.ErrorIs(t, (<-t.asking(ctx, "z")).err, why, "it does not even begin")
	})
}

func TestAWriterThatWaitsCanGiveUp(t *testing.T) {
	converse(t, func(t *talk) {
		first := t.asking(t.Context(), "first") // blocked in its write, since the peer does not read
		synctest.Wait()
		ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
		defer giveUp()
		require.ErrorIs(t, (<-t.asking(ctx, "second")).err, context.DeadlineExceeded)
		t.answer(t.request("get-task"), taskNamed("first"))
		require.NoError(t, (<-first).err)
	})
}

func TestTheEndOfTheStream(t *testing.T) {
	converse(t, func(t *talk) {
		one, two := t.asking(t.Context(), "1"), t.asking(t.Context(), "2")
		t.request("get-task")
		t.request("get-task")
		t.peer.End()
		for _, done := range []<-chan outcome{one, two} {
			require.ErrorIs(t, (<-done).err, io.EOF)
		}
		require.NoError(t, t.agent.Wait())

		err := (<-t.asking(t.Context(), "3")).err
		require.ErrorIs(t, err, io.EOF)
		require.EqualError(t, err, "get-task: not asked: the orchestrator has closed the stream: EOF")
	})
}

func TestAStreamThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	conn := agents.Connect(io.MultiReader(strings.NewReader("{}\n"), failing{broken}), io.Discard)
	require.ErrorIs(t, conn.Wait(), broken)
	require.ErrorIs(t, conn.Ask(t.Context(), "query-tasks", nil, nil), broken)
}

func TestAStreamThatCannotBeWritten(t *testing.T) {
	in, end := io.Pipe()
	broken := errors.New("broken")
	out := &counting{to: failing{broken}}
	conn := agents.Connect(in, out)
	require.ErrorIs(t, conn.Ask(t.Context(), "query-tasks", nil, nil), broken)
	require.ErrorIs(t, conn.Tell("anything", nil), broken)
	require.Equal(t, 1, out.writes, "nothing may follow half a line")
	require.NoError(t, end.Close())
	require.NoError(t, conn.Wait())
}

func TestOneMessageIsOneWrite(t *testing.T) {
	in, end := io.Pipe()
	out := &counting{to: io.Discard}
	conn := agents.Connect(in, out)
	large := map[string]string{"text": strings.Repeat("x", 1<<20)}
	require.NoError(t, conn.Tell("anything", large))
	require.NoError(t, conn.Tell("anything", nil))
	require.Equal(t, 2, out.writes)
	require.Equal(t, 2, out.lineEnds)
	require.NoError(t, end.Close())
	require.NoError(t, conn.Wait())
}

func TestWhatCannotBeAsked(t *testing.T) {
	for about, payload := range map[string]any{
		"a payload must be an object":   []int{1},
		"half of a character":           wire.Raw("{\"half a pair\":\"\\ud800\"}"),
		"it takes more than 16 MiB":     map[string]string{"text": strings.Repeat("x", 16<<20)},
		"spelling map[string]interface": map[string]any{"c": make(chan int)},
	} {
		in, end := io.Pipe()
		conn := agents.Connect(in, io.Discard)
		require.ErrorContains(t, conn.Ask(t.Context(), "submit-task", payload, nil), about)
		require.NoError(t, end.Close())
		require.NoError(t, conn.Wait())
	}
}

// A failing stream returns err from every read and write.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A counting writer counts writes and line ends.
type counting struct {
	to               io.Writer
	writes, lineEnds int
}

func (c *counting) Write(p []byte) (int, error) {
	c.writes++
	c.lineEnds += strings.Count(string(p), "\n")
	return c.to.Write(p)
}

// delicate is JSON that must pass through unchanged, digit for digit.
const delicate = `{"n":12345678901234567890,"f":1.10,"html":"<a&b>","esc":"\u003c"}`

func TestPayloadsGoAndComeAsTheyAre(t *testing.T) {
	converse(t, func(t *talk) {
		var got wire.Raw
		done := make(chan error, 1)
		go func() { done <- t.agent.Ask(t.Context(), "echo", wire.Raw(delicate), &got) }()
		request := t.request("echo")
		require.Equal(t, delicate, string(request.Payload))
		t.say(answerLine(request, delicate))
		require.NoError(t, <-done)
		require.Equal(t, delicate, string(got))
	})
}

func TestATaskKeepsItsDocuments(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.asking(t.Context(), "x")
		t.say(answerLine(t.request("get-task"),
			`{"task":{"id":"x","requiredRole":null,"payload":`+delicate+`,"result":`+delicate+`,"priority":2.50,"new in 2030":[]}}`))
		o := <-done
		require.NoError(t, o.err)
		require.Equal(t, delicate, string(o.task.Payload))
		require.Equal(t, delicate, string(o.task.Result))
		require.Equal(t, "2.50", string(o.task.Priority))

		done = t.asking(t.Context(), "x")
		t.say(answerLine(t.request("get-task"), `{"task":{"id":"x","result":null}}`))
		require.Nil(t, (<-done).task.Result, "no result is none")
	})
}

func TestWhatComesInSeveralLinesGoesInOne(t *testing.T) {
	converse(t, func(t *talk) {
		go func() { _ = t.agent.Tell("anything", wire.Raw("{\n  \"a\": 1.0\n}")) }()
		require.Equal(t, `{"a":1.0}`, string(t.report("anything").Payload))
	})
}

func TestLargeLines(t *testing.T) {
	converse(t, func(t *talk) {
		text := strings.Repeat("long ", 1<<20)
		done := t.asking(t.Context(), text)
		request := t.request("get-task")
		require.Greater(t, len(request.Payload), 5<<20)
		t.answer(request, taskNamed(text))
		o := <-done
		require.NoError(t, o.err)
		require.Equal(t, text, o.task.Name)
	})
}

// TestWhatIsNoMessageIsPassedOver checks that an agent ignores lines that are not messages to
// it.
func TestWhatIsNoMessageIsPassedOver(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.asking(t.Context(), "x")
		request := t.request("get-task")
		id, payload := fmt.Sprintf("%q", request.ID), `"payload":{"task":{"name":"wrong"}}`
		for _, line := range []string{
			``, `hello`, `42`, `null`, `"text"`, `[{"type":"response:success"}]`, `{`, `{"type":null}`, `{"type":7}`,
			`{"a":1}{"b":2}`, `{"type":"response:success"}`, `{"type":"response:success","correlationId":7}`,
			`{"type":"response:success","correlationId":"nobody's",` + payload + `}`,
			`{"TYPE":"response:success","correlationId":` + id + `,` + payload + `}`,
			`{"type":"response:success","CorrelationId":` + id + `,` + payload + `}`,
			`{"type":"response:maybe","correlationId":` + id + `,` + payload + `}`,
			`{"type":"response:success","type":"response:success","correlationId":` + id + `,` + payload + `}`,
			`{"type":"response:success","correlationId":"a","correlationId":` + id + `,` + payload + `}`,
			`{"type":"response:success","correlationId":` + id + `,"payload":{},` + payload + `}`,
			`{"type":"response:success","correlationId":` + id + `,"payload":[]}`,
			`{"message_type":"task_assignment","message_id":"m","payload":{}}`,
			"\xff\xfe",
		} {
			t.say(line)
		}
		synctest.Wait()
		select {
		case o := <-done:
			require.Fail(t, "one of them was taken for the answer", "%+v", o)
		default:
		}
		t.say("\t" + answerLine(request, `{"task":{"name":"right"}}`) + " \r")
		require.Equal(t, "right", (<-done).task.Name)
	})
}

func TestALastLineWithoutItsEnd(t *testing.T) {
	conn := agents.Connect(strings.NewReader(`{"type":"notify:shutdown","id":"1","payload":{"gracePeriod":5}}`), nil)
	var names []string
	for notice := range conn.News(t.Context()) {
		names = append(names, notice.Name)
	}
	require.Equal(t, []string{agents.Shutdown}, names)
	require.NoError(t, conn.Wait())
}
