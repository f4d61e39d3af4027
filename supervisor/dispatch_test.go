package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestNothingIsToldBeforeItIsRecorded checks the order: decide, record, tell. No reply, notice,
// event or status leaves before it is recorded.
//
// Rows: B-51, B-56.
func TestNothingIsToldBeforeItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("w", 1))
		boss, w := all[0], all[1]
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		release := record.hold()
		boss.says(submit("1", "w"))
		require.Empty(t, boss.told())
		require.Empty(t, w.told())
		require.Zero(t, p.count(events.TaskCreated))
		shown := make(chan control.Status, 1)
		go func() {
			status, err := p.Status(t.Context())
			require.NoError(t, err)
			shown <- status
		}()
		synctest.Wait()
		require.Empty(t, shown, "a status shows what is decided")
		release()
		require.Equal(t, []string{"1 granted"}, boss.gist())
		require.Equal(t, "queued", boss.task("1").Status)
		require.Equal(t, []string{"notify:task-assigned"}, w.gist())
		require.Equal(t, 1, p.count(events.TaskCreated))
		require.Len(t, (<-shown).Agents, 2)
		require.NoError(t, p.stop())
	})
}

// TestReadsComeAfterWrites checks that a read after a write, of the same or another agent, is
// answered after it and sees it.
//
// Rows: B-26.
func TestReadsComeAfterWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a"}, settings.Agent{Name: "b"})
		a, b := all[0], all[1]
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		release := record.hold()
		a.says(submit("1", ""), request("2", "query-tasks", `{}`))
		b.says(request("3", "query-agents", `{}`))
		require.Empty(t, a.told())
		require.Empty(t, b.told(), "its answer might show what is not recorded")
		release()
		require.Equal(t, []string{"1 granted", "2 granted"}, a.gist())
		require.Contains(t, string(a.told()[1].Payload), a.task("1").ID)
		require.Equal(t, []string{"3 granted"}, b.gist())
		b.says(request("4", "query-agents", `{}`))
		require.Equal(t, []string{"3 granted", "4 granted"}, b.gist(), "with nothing to record a read is answered at once")
		require.NoError(t, p.stop())
	})
}

// TestOneBatchServesAllWhoWait checks that the next batch gathers while one is being recorded:
// one sync serves all waiting requests.
func TestOneBatchServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var crowd []settings.Agent
		for i := range 20 {
			crowd = append(crowd, settings.Agent{Name: fmt.Sprint("a", i)})
		}
		agents, parts, all := talkers(t, crowd...)
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		before := len(record.tried())
		release := record.hold()
		for i, a := range all {
			a.says(submit(fmt.Sprint(i), ""))
			synctest.Wait()
		}
		release()
		for i, a := range all {
			require.Equal(t, []string{fmt.Sprint(i, " granted")}, a.gist())
		}
		batches := record.tried()[before:]
		require.Len(t, batches, 2)
		require.Len(t, batches[0], 1)
		require.Len(t, batches[1], 19)
		require.NoError(t, p.stop())
	})
}

// TestRecordThatFails checks that a failed commit has no effect. Waiting requests are refused, no
// letter is sent, and everything stops in order.
//
// Rows: B-21, B-74, B-75.
func TestRecordThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("w", 1))
		boss, w := all[0], all[1]
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		recorded := len(record.facts(t))
		gate := make(chan struct{})
		full := errors.New("no space left on device")
		record.meddle(func([]wire.Record) error { <-gate; return full })
		boss.says(submit("1", "w"))
		synctest.Wait()
		boss.says(submit("2", "w"), request("3", "query-agents", `{}`))
		require.Empty(t, boss.told())
		tried := len(record.tried())
		close(gate)
		require.ErrorIs(t, p.end(), full)
		require.Equal(t, []string{"1 INTERNAL_ERROR", "2 INTERNAL_ERROR", "3 INTERNAL_ERROR", "notify:shutdown"}, boss.gist())
		require.Equal(t, []string{"notify:shutdown"}, w.gist())
		require.Len(t, record.tried(), tried, "after one failure nothing is tried again")
		require.Len(t, record.facts(t), recorded)
		require.Empty(t, record.keeps, "a state with what is not recorded is not kept")
	})
}

// TestDoorHearsOfARecordThatFails checks that a request over the API waits for the log as one of
// an agent does.
//
// Rows: B-62.
func TestDoorHearsOfARecordThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		p := perform(t, Options{Record: record}, nil, nil)
		synctest.Wait()
		record.meddle(func([]wire.Record) error { return errors.New("broken") })
		_, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"n"}`))
		var refused *wire.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, wire.CodeInternal, refused.Code)
		require.ErrorContains(t, p.end(), "broken")
	})
}

// TestRecordThatHangs checks a disk that is blocked for too long. Each waiting request gets one
// error. When the disk continues, the requests have taken effect, and a repeat gets the outcome.
//
// Rows: B-21, B-29, B-30.
func TestRecordThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("w", 1))
		boss, w := all[0], all[1]
		record := newLedger()
		p := perform(t, Options{Record: record, Rules: handlers.Rules{RequestTimeout: 10 * time.Second}}, agents, parts)
		synctest.Wait()
		release := record.hold()
		boss.says(submit("1", "w"))
		<-time.After(5 * time.Second)
		boss.says(submit("2", ""), request("3", "query-agents", `{}`))
		require.Empty(t, boss.told())
		<-time.After(5 * time.Second)
		require.Equal(t, []string{"1 TIMEOUT", "2 TIMEOUT", "3 TIMEOUT"}, boss.gist())
		require.Empty(t, w.told())
		<-time.After(time.Minute)
		release()
		require.Equal(t, []string{"1 TIMEOUT", "2 TIMEOUT", "3 TIMEOUT"}, boss.gist(), "answered twice")
		require.Equal(t, []string{"notify:task-assigned"}, w.gist(), "it happened after all")
		boss.says(submit("1", "w"), submit("2", ""))
		require.Equal(t, []string{"1 granted", "2 granted"}, boss.gist()[3:])
		require.Len(t, kinds(record.facts(t), events.TaskCreated), 2)
		require.NoError(t, p.stop())
	})
}

// TestRecordThatIsAlmostTooLate checks that there is one reply if the disk answers at the moment
// of the timeout.
//
// Rows: B-21.
func TestRecordThatIsAlmostTooLate(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			agents, parts, all := talkers(t, settings.Agent{Name: "boss"})
			record := newLedger()
			p := perform(t, Options{Record: record, Rules: handlers.Rules{RequestTimeout: time.Second}}, agents, parts)
			synctest.Wait()
			record.meddle(func([]wire.Record) error { <-time.After(time.Second); return nil })
			all[0].says(submit("1", ""))
			<-time.After(time.Second)
			record.meddle(nil)
			all[0].says(submit("2", ""))
			<-time.After(5 * time.Second)
			count := make(map[string]int)
			for _, words := range all[0].gist() {
				id, _, _ := strings.Cut(words, " ")
				count[id]++
			}
			require.Equal(t, map[string]int{"1": 1, "2": 1}, count, all[0].gist())
			require.NoError(t, p.stop())
		})
	}
}

// TestDecisionThatPanics checks that a panic costs only its request.
//
// Rows: B-75.
func TestDecisionThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a"})
		a := all[0]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		from := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: a.run.spec.Run}
		_, err := p.Requests.Do(t.Context(), from, "submit-task", (*wire.SubmitTask)(nil))
		var refused *wire.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, wire.CodeInternal, refused.Code)
		require.NotContains(t, refused.Message, "goroutine")
		a.says(submit("good", ""))
		require.Equal(t, []string{"good granted"}, a.gist())
		require.NoError(t, p.stop())
	})
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

// TestAuditAfterARecordHasFailed checks that the audit has the requests that are refused because
// the log failed.
//
// Rows: B-81.
func TestAuditAfterARecordHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a"})
		parts["slow"] = slowly(time.Second)
		agents = append(agents, settings.Agent{Name: "slow", DependsOn: []string{"a"}})
		record, dir := newLedger(), t.TempDir()
		p := perform(t, Options{Record: record, StateDir: dir}, agents, parts)
		synctest.Wait()
		all[0].says(submit("before", ""))
		synctest.Wait()
		record.meddle(func([]wire.Record) error { return errors.New("broken") })
		p.dispatcher.Note(&wire.Event{Kind: events.OrchestratorIdle})
		synctest.Wait()
		all[0].says(submit("after", ""), request("read", "query-agents", `{}`))
		require.Equal(t, []string{"before granted", "after INTERNAL_ERROR", "read INTERNAL_ERROR"}, all[0].gist())
		require.Error(t, p.end())
		outcomes := make(map[any]any)
		for _, line := range trail(t, dir) {
			outcomes[line["id"]] = line["outcome"]
		}
		require.Equal(t, map[any]any{"before": "granted", "after": "internal", "read": "internal"}, outcomes)
	})
}

// TestAuditIsBounded checks that the audit is bounded, files of earlier processes included.
func TestAuditIsBounded(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "audit")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for run := range 20 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, output.RunPrefix(run+1)+"-01.jsonl"), nil, 0o600))
	}
	names := func() []string {
		names, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
		require.NoError(t, err)
		return names
	}
	synctest.Test(t, func(t *testing.T) {
		file := auditFile(dir, nil)
		require.EqualValues(t, 16<<20, file.Limits.MaxSize)
		file.Limits.MaxSize = 1 // one file a line
		for range 12 {
			require.NoError(t, file.Write([]byte("{}\n"), 1, time.Now()))
			require.LessOrEqual(t, len(names()), 8)
		}
		file.Close()
	})
	require.Len(t, names(), 8)
	require.Equal(t, "000021-12.jsonl", filepath.Base(names()[7]))
}
