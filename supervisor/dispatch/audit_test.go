package dispatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// fileIn returns a file for the audit of a state directory.
func fileIn(stateDir string) *output.File {
	dir := filepath.Join(stateDir, "audit")
	return &output.File{
		Dir: dir, Prefix: output.RunPrefix(output.NextRun(dir)), Suffix: ".jsonl", Limits: output.Limits{MaxSize: 16 << 20, Keep: 8},
		Note: auditGap,
	}
}

// trail reads the audit of a state directory.
func trail(t *testing.T, dir string) (lines []map[string]any) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl"))
	require.NoError(t, err)
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			require.True(t, strings.HasSuffix(line, "\n"), "half a line")
			var entry map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
			lines = append(lines, entry)
		}
	}
	return lines
}

// TestAuditLines checks that a line has the actor, the operation, its subject and the outcome,
// whatever text they hold.
//
// Rows: B-81.
func TestAuditLines(t *testing.T) {
	dir := t.TempDir()
	a := newAudit(fileIn(dir), hclog.NewNullLogger())
	at := time.Date(2026, 11, 21, 14, 0, 0, 999e6, time.FixedZone("", 3600))
	agent := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: "r"}
	evil := "\x1b[2J\"\\\n\u2028<&>"
	a.note(at, agent, "request:query-agents", object.Quote(evil), nil)
	a.note(at, agent, "event:question", object.Quote("2"), &wire.Error{Code: wire.CodeDenied, Message: evil})
	a.note(at, agent, "request:"+evil, []byte(`12345678901234567890`), &wire.Error{Code: wire.CodeUnknownType, Message: "no"})
	a.note(at, handlers.Actor{Kind: handlers.Operator}, "request:x", nil, &wire.Error{Code: wire.CodeInvalid, Message: "no"})
	a.close()
	got := trail(t, dir)
	require.Len(t, got, 4)
	for _, line := range got {
		require.Equal(t, "2026-11-21T13:00:00.999Z", line["at"])
	}
	require.Equal(t, evil, got[0]["id"])
	require.Equal(t, "granted", got[0]["outcome"])
	require.Equal(t, "request:query-agents", got[0]["type"])
	require.Equal(t, evil, got[1]["why"])
	require.Equal(t, "denied", got[1]["outcome"])
	require.Equal(t, "request:"+evil, got[2]["type"])
	require.Nil(t, got[3]["id"])
	require.Equal(t, "operator", got[3]["actor"])
	var none *audit
	none.requests(nil, nil)
	none.note(at, agent, "x", nil, nil)
	none.close()
}

// TestAuditIsWrittenSoon checks that lines are written soon, without blocking a caller, and that
// the next process writes its own file.
//
// Rows: B-81.
func TestAuditIsWrittenSoon(t *testing.T) {
	dir := t.TempDir()
	for life := range 2 {
		synctest.Test(t, func(t *testing.T) {
			a := newAudit(fileIn(dir), hclog.NewNullLogger())
			a.note(time.Now(), handlers.Actor{}, "request:x", object.Quote("1"), nil)
			synctest.Wait()
			require.Len(t, trail(t, dir), 2*life)
			<-time.After(auditPause)
			synctest.Wait()
			require.Len(t, trail(t, dir), 2*life+1)
			a.note(time.Now(), handlers.Actor{}, "request:x", object.Quote("2"), nil)
			a.close()
			require.Len(t, trail(t, dir), 2*life+2)
		})
	}
}

// TestAuditClosesAtOnce checks that the end of an audit does not wait for more lines, whether it
// holds lines or not.
//
// Rows: B-81.
func TestAuditClosesAtOnce(t *testing.T) {
	for lines := range 2 {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			a := newAudit(fileIn(dir), hclog.NewNullLogger())
			synctest.Wait()
			for range lines {
				a.note(time.Now(), handlers.Actor{}, "request:x", object.Quote("1"), nil)
			}
			synctest.Wait()
			began := time.Now() // time passes only while all goroutines wait for it
			a.close()
			require.Equal(t, began, time.Now())
			require.Len(t, trail(t, dir), lines)
		})
	}
}

// TestAuditOfMany checks that many lines are written together, without a loss.
//
// Rows: B-81.
func TestAuditOfMany(t *testing.T) {
	const many = 20_000
	dir := t.TempDir()
	a := newAudit(fileIn(dir), hclog.NewNullLogger())
	done := make(chan struct{})
	for part := range 4 {
		go func() {
			for n := range many / 4 {
				a.note(time.Now(), handlers.Actor{}, "request:x", object.Quote(fmt.Sprint(part, " ", n)), nil)
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
	a.close()
	seen := make(map[any]bool)
	for _, line := range trail(t, dir) {
		seen[line["id"]] = true
	}
	require.Len(t, seen, many)
}

// TestAuditOnAFullDisk checks a disk that cannot be written. No caller waits, one error is
// logged, and the lost lines are counted. A line with their number follows when there is room
// again.
//
// Rows: B-81.
func TestAuditOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "audit"), nil, 0o600)) // in the way of the folder
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		a := newAudit(fileIn(dir), hclog.New(&hclog.LoggerOptions{Output: &said}))
		for n := range 3 {
			a.note(time.Now(), handlers.Actor{}, "request:x", object.Quote(fmt.Sprint(n)), nil)
			<-time.After(time.Second)
		}
		require.NoError(t, os.Remove(filepath.Join(dir, "audit")))
		<-time.After(5 * time.Second) // output.File tries again
		a.note(time.Now(), handlers.Actor{}, "request:x", object.Quote("3"), nil)
		a.close()
		got := trail(t, dir)
		require.Len(t, got, 2)
		require.Equal(t, "lost", got[0]["outcome"])
		require.EqualValues(t, 3, got[0]["lines"])
		require.Equal(t, "3", got[1]["id"])
		require.Equal(t, 1, strings.Count(said.String(), "the audit log cannot be written"))
	})
}

// TestAuditIsBounded checks that lines are counted and not kept while no line can be written.
//
// Rows: B-81.
func TestAuditIsBounded(t *testing.T) {
	a := &audit{wake: make(chan struct{}, 1)} // without a writer
	text := bytes.Repeat([]byte("x"), 1<<20)
	for range 20 {
		a.add(text, 3)
	}
	require.LessOrEqual(t, len(a.text), maxAuditBytes+len(text))
	require.EqualValues(t, 3*(len(a.text)>>20), a.lines)
	require.EqualValues(t, 20*3, a.lines+a.lost)
}

// TestAuditOfSeveralCallers checks that requests that are decided together keep their callers, times and
// operations.
//
// Rows: B-81.
func TestAuditOfSeveralCallers(t *testing.T) {
	dir := t.TempDir()
	a := newAudit(fileIn(dir), hclog.NewNullLogger())
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ann, bob := handlers.Actor{Kind: handlers.Agent, Name: "ann"}, handlers.Actor{Kind: handlers.Agent, Name: "bob"}
	var inputs []handlers.Input
	for _, in := range []struct {
		at        time.Time
		from      handlers.Actor
		operation string
	}{{noon, ann, "get-task"}, {noon, bob, "get-task"}, {noon, bob, "get-task"}, {noon.Add(time.Second), bob, "get-task"}, {noon.Add(time.Second), bob, "query-agents"}} {
		inputs = append(inputs, handlers.Input{At: in.at, From: in.from, Message: &wire.Request{ID: "1", Operation: in.operation}})
	}
	a.requests(inputs, &work{verdicts: make([]*wire.Error, len(inputs))})
	a.close()
	var got []string
	for _, line := range trail(t, dir) {
		got = append(got, fmt.Sprintf("%s %s %s", line["at"], line["actor"], line["type"]))
	}
	require.Equal(t, []string{
		"2026-11-21T12:00:00.000Z agent:ann request:get-task",
		"2026-11-21T12:00:00.000Z agent:bob request:get-task",
		"2026-11-21T12:00:00.000Z agent:bob request:get-task",
		"2026-11-21T12:00:01.000Z agent:bob request:get-task",
		"2026-11-21T12:00:01.000Z agent:bob request:query-agents",
	}, got)
}

// TestAuditFolds checks that refusals of one kind share a line after the first ones, with their number,
// also when the orchestrator ends.
//
// Rows: S-07.
func TestAuditFolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := newAudit(fileIn(dir), hclog.NewNullLogger())
		agent := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: "r", Via: `,"pid":7`}
		refuse := func(kind string, times int) {
			for range times {
				a.note(time.Now(), agent, kind, nil, &wire.Error{Code: wire.CodeDenied, Message: "no"})
			}
		}
		refuse("request:x", 1000)
		refuse("request:y", 3)
		refuse("request:"+strings.Repeat("z", 1000), 20)
		a.note(time.Now(), agent, "request:x", nil, nil)
		<-time.After(foldTime + time.Second)
		refuse("request:x", foldAfter+5)
		for n := range 2 * maxFolds { // the folds are bounded
			refuse(fmt.Sprint("request:", n), 1)
		}
		require.LessOrEqual(t, len(a.folds), maxFolds)
		a.close()
		counts, sum := make(map[string]int), 0.0
		for _, line := range trail(t, dir) {
			counts[line["type"].(string)]++
			if folded, ok := line["folded"].(float64); ok {
				sum += folded
			}
		}
		require.Equal(t, 1+foldAfter+1+foldAfter+1, counts["request:x"], "the granted one, and twice the first ones and the rest")
		require.Equal(t, 3, counts["request:y"])
		require.Equal(t, 20, counts["request:"+strings.Repeat("z", 1000)])
		require.EqualValues(t, 1000-foldAfter+5, sum)
	})
}

// TestAuditOfRequestsWithoutDecision checks that a program that polls has two lines in foldTime, that requests of
// other programs and requests that write have a line each, and that a stream has its begin and its end, also after
// the audit was closed.
func TestAuditOfRequestsWithoutDecision(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := newAudit(fileIn(dir), hclog.NewNullLogger())
		from := func(via string) handlers.Actor { return handlers.Actor{Kind: handlers.Operator, Name: "ann", Via: via} }
		for port := range 5 { // each request has a separate connection
			a.asked(time.Now(), from(fmt.Sprintf(`,"address":"10.0.0.1:%d","credential":"t1"`, port)), "request:status", "", true, nil)
		}
		a.asked(time.Now(), from(`,"address":"10.0.0.2:1","credential":"t1"`), "request:status", "", true, nil)
		a.asked(time.Now(), from(`,"address":"10.0.0.1:1","credential":"t2"`), "request:status", "", true, nil)
		a.asked(time.Now(), from(`,"pid":7`), "request:status", "", true, nil)
		for range 3 {
			a.asked(time.Now(), from(`,"pid":7`), "request:stop-agent", "", false, nil)
		}
		a.asked(time.Now(), from(`,"pid":7`), "request:logs", identity.Begin, true, nil)
		a.close()
		a.asked(time.Now(), from(`,"pid":7`), "request:logs", identity.End, true, &wire.Error{Code: wire.CodeConflict, Message: "the orchestrator has stopped"})
		none := (*audit)(nil)
		none.asked(time.Now(), from(""), "request:status", "", true, nil)
	})
	var got []string
	for _, line := range trail(t, dir) {
		require.NotEmpty(t, line["id"])
		got = append(got, strings.TrimSpace(fmt.Sprint(line["type"], " ", line["outcome"], " ", line["stream"], " ", line["folded"])))
	}
	require.ElementsMatch(t, []string{
		"request:status granted <nil> <nil>", "request:status granted <nil> 4",
		"request:status granted <nil> <nil>", "request:status granted <nil> <nil>", "request:status granted <nil> <nil>",
		"request:stop-agent granted <nil> <nil>", "request:stop-agent granted <nil> <nil>", "request:stop-agent granted <nil> <nil>",
		"request:logs granted begin <nil>", "request:logs conflict end <nil>",
	}, got)
}
