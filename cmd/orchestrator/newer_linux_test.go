package main

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
)

// The record of a newer program is refused and not changed.
func TestRecordOfANewerProgram(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write func(t *testing.T, path string)
		says  []string
	}{
		"schema": {
			func(t *testing.T, path string) {
				db, err := sql.Open("sqlite", path)
				require.NoError(t, err)
				_, err = db.Exec("PRAGMA user_version = 9")
				require.NoError(t, err)
				require.NoError(t, db.Close())
			},
			[]string{`written by a newer version: its schema is 9, this program knows up to \d+\n`},
		},
		"kind": {
			func(t *testing.T, path string) {
				log, err := eventlog.Open(t.Context(), eventlog.Options{Path: path})
				require.NoError(t, err)
				batch := []wire.Record{{At: time.Now(), From: "orchestrator", Kind: "weather.changed"}}
				require.NoError(t, log.Append(t.Context(), log.Last(), batch))
				require.NoError(t, log.Close())
			},
			[]string{`record \d+ is of the kind "weather.changed", which this version does not know\n`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, quick+"agent \"a\" {\n  command = [\"sh\", \"-c\", \"echo $$ >>pids; echo >>a-ran; exec cat\"]\n}\n").up()
			s.waitForPIDs(1, "pids")
			s.stop()
			path := filepath.Join(s.state(), "events.db")
			test.write(t, path)
			before := intoOneFile(t, path)
			ran, err := os.ReadFile(s.path("a-ran"))
			require.NoError(t, err)
			s.start(exec.Command(s.program, "up", "--state-dir", s.state(), "--timeout", "3m"))
			require.Equal(t, cli.ExitNo, s.await())
			said := s.cried.all()
			require.Contains(t, said, "Error: cannot use the record "+path+": ")
			for _, words := range test.says {
				require.Regexp(t, words, said)
			}
			require.Contains(t, said, "This is version "+cli.Version+". Nothing was started, and nothing was changed.")
			require.Contains(t, said, "Use the program that wrote it, or a newer one     Or begin beside it: --state-dir DIR")
			require.Equal(t, before, intoOneFile(t, path), "it was changed")
			now, err := os.ReadFile(s.path("a-ran"))
			require.NoError(t, err)
			require.Equal(t, ran, now, "an agent was started")
		})
	}
}
