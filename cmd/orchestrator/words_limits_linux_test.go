package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// Of three hundred requests in one write, about a hundred are served and the others refused.
// Each has one answer and one audit line. Log lines are not counted, and other agents are not
// affected.
//
// Rows: B-21, B-74, B-79, B-81, T-24.
func TestWordsFlood(t *testing.T) {
	t.Parallel()
	const many = 300
	h := troupe(t, puppets("a", "b"), "a", "b")
	all := h.cast("a", "b")
	a, b := all[0], all[1]
	a.say(strings.Repeat("a plain line\n", 1000))
	h.waitForLines(1000, "a")
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, asking(fmt.Sprint("flood-", n), "query-agents", `{}`))
	}
	a.say(flood.String())
	for range 10 {
		b.quiet()
	}
	waitForThat(t, "answers", func() bool { return len(a.heardSoFar()) >= many })
	served := 0
	for n := range many {
		answers := a.answers(fmt.Sprint("flood-", n))
		require.Len(t, answers, 1)
		if answers[0].Error == nil {
			served++
			continue
		}
		require.Equal(t, "INVALID_REQUEST", answers[0].Error.Code)
		require.Equal(t, "rate_limited", answers[0].Error.Details["reason"])
	}
	require.GreaterOrEqual(t, served, 100)
	require.Less(t, served, many)
	for _, m := range b.all() {
		require.Nil(t, m.Error)
	}
	require.NotEmpty(t, h.waitForEvents(1, events.AgentRefused, "a"), "people hear of it")
	waitForThat(t, "end of the limit", func() bool {
		return a.answer(a.request("query-agents", `{}`)).Error == nil
	})
	h.stop()
	limited, granted := 0, 0
	for _, line := range h.audited() {
		if !strings.HasPrefix(fmt.Sprint(line["id"]), "flood-") {
			continue
		}
		switch line["outcome"] {
		case "limited":
			limited++
		case "granted":
			granted++
		}
	}
	require.Equal(t, served, granted)
	require.Equal(t, many-served, limited)
}

// Events over the rate limit are dropped, and people see their number.
//
// Rows: B-63, B-79, B-81, T-24.
func TestWordsFloodOfEvents(t *testing.T) {
	t.Parallel()
	const many = 300
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, telling(fmt.Sprint("flood-", n), "question", fmt.Sprintf(`{"question":"%d?"}`, n)))
	}
	a.say(flood.String())
	waitForThat(t, "end of the limit", func() bool {
		return a.answer(a.request("query-agents", `{}`)).Error == nil
	})
	require.Len(t, a.heardSoFar(), len(a.all()))
	asked := len(h.questions())
	require.GreaterOrEqual(t, asked, 100)
	require.Less(t, asked, many)
	h.stop()
	var dropped int64
	for _, e := range h.events(events.AgentRefused, "a") {
		dropped += e.Figures.Count
	}
	audited := 0
	for _, line := range h.audited() {
		if strings.HasPrefix(fmt.Sprint(line["id"]), "flood-") {
			require.Equal(t, "limited", line["outcome"])
			audited++
		}
	}
	require.Equal(t, many-asked, audited)
	require.GreaterOrEqual(t, dropped, int64(many-asked))
	for _, m := range a.all() {
		require.NotContains(t, m.line, "flood-")
	}
}

// The configuration sets the limit.
//
// Rows: B-79.
func TestWordsOwnLimit(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a")+"protocol {\n  rate  = 1\n  burst = 3\n}\n", "a")
	a := h.cast("a")[0]
	lines := ""
	for n := range 20 {
		lines += asking(fmt.Sprint(n), "query-agents", `{}`) + "\n"
	}
	a.say(lines)
	for n := range 20 {
		m := a.answer(fmt.Sprint(n))
		if n < 3 {
			require.Nil(t, m.Error)
		}
	}
	require.Equal(t, "rate_limited", a.answer("19").Error.Details["reason"])
	h.stop()
}

// An agent that sends requests without reading the answers blocks itself. When it reads, it gets
// all answers.
//
// Rows: B-21, T-04.
func TestWordsAskingWithoutReading(t *testing.T) {
	t.Parallel()
	const many = 5000
	h := troupe(t, puppets("b")+crowded+`
agent "a" {
  command = ["sh", "a.sh"]
  limits {
    mailbox = 100
  }
}
`, "b")
	h.write("a.sh", fmt.Sprintf(`
i=0
while [ $i -lt %d ]; do
  i=$((i+1)); echo '{"type":"request:query-agents","id":"'$i'","timestamp":"%s"}'
done &
until [ -e go ]; do sleep 0.02; done
exec cat >heard
`, many, noon))
	b := h.cast("b")[0]
	waitForThat(t, "agent that stands still", func() bool {
		view := h.agent("a")
		return view.Mailbox.Messages >= 50
	})
	b.quiet()
	h.write("go", "")
	waitForThat(t, "all answers, or word of one that was not given", func() bool {
		return len(h.textLines("heard")) == many || h.agent("a").Mailbox.Refused > 0
	})
	require.Zero(t, h.agent("a").Mailbox.Refused)
	seen := make(map[string]bool)
	for _, line := range h.textLines("heard") {
		seen[string(heardAs(t, line).CorrelationID)] = true
	}
	require.Len(t, seen, many)
	h.stop()
}

// textLines returns the complete lines of a file.
func (s *stage) textLines(name string) (lines []string) {
	text, _ := os.ReadFile(s.path(name))
	for line := range strings.Lines(string(text)) {
		if whole, ended := strings.CutSuffix(line, "\n"); ended {
			lines = append(lines, whole)
		}
	}
	return lines
}
