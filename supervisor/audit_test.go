package supervisor

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

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
		agents, parts, all := talkers(t, Agent{Name: "a"})
		parts["slow"] = slowly(time.Second)
		agents = append(agents, Agent{Name: "slow", DependsOn: []string{"a"}})
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
