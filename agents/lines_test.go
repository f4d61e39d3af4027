package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"orchestrator/agents"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

// delicate is JSON that must pass through unchanged, digit for digit.
const delicate = `{"n":12345678901234567890,"f":1.10,"html":"<a&b>","esc":"\u003c","same":1,"same":2}`

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
