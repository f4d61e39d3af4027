package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/output"
	"orchestrator/wire/control"
)

// past writes a log file as an earlier process would have left it: each line is its second and
// its text.
func past(t *testing.T, agent Agent, name string, lines ...string) {
	t.Helper()
	dir := filepath.Join(agent.Output.Dir, agent.Name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	var text strings.Builder
	for _, line := range lines {
		second, words, _ := strings.Cut(line, " ")
		fmt.Fprintf(&text, "1999-01-01T00:00:%s.000Z %s\n", second, words)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600))
}

func TestLogsOfEarlierLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []Agent{{Name: "a"}, {Name: "b"}}
		p := perform(t, Options{}, agents, map[string]part{"a": untilEOF, "b": untilEOF})
		past(t, agents[0], "000001-99.out", "01 one", "04 four")
		past(t, agents[0], "000001-100.out", "07 seven")
		past(t, agents[0], "000002-01.err", "02 two", "08 eight")
		past(t, agents[1], "000001-01.out", "03 three", "05 five", "06 six")
		logs := func(q output.LogQuery) string {
			var texts []string
			q.Until = "1999-12-31"
			require.NoError(t, p.Logs(t.Context(), q, func(l control.LogLine) error { texts = append(texts, l.Text); return nil }))
			return strings.Join(texts, " ")
		}
		require.Equal(t, "one two three four five six seven eight", logs(output.LogQuery{Last: output.AllLines}))
		require.Equal(t, "one two three four five six seven eight", logs(output.LogQuery{Last: 1 << 30}))
		require.Equal(t, "five six seven eight", logs(output.LogQuery{Last: 2}), "the last of each")
		require.Equal(t, "one four seven", logs(output.LogQuery{Last: output.AllLines, Agents: []string{"a"}, Stream: control.StreamOut}))
		require.Equal(t, "six seven eight", logs(output.LogQuery{Last: output.AllLines, After: "1999-01-01T00:00:05.000Z"}))
		require.Empty(t, logs(output.LogQuery{Last: 0}))
		require.NoError(t, p.stop())
	})
}

// TestLogsThatCannotBeRead checks that an unreadable file is an error, not the end of the lines.
func TestLogsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []Agent{{Name: "a"}}
		p := perform(t, Options{}, agents, map[string]part{"a": untilEOF})
		past(t, agents[0], "000001-01.out", "01 one")
		require.NoError(t, os.Mkdir(filepath.Join(agents[0].Output.Dir, "a", "000001-02.out"), 0o700))
		var texts []string
		err := p.Logs(t.Context(), output.LogQuery{Last: output.AllLines}, func(l control.LogLine) error { texts = append(texts, l.Text); return nil })
		require.ErrorContains(t, err, "000001-02.out")
		require.Equal(t, []string{"one"}, texts)
		require.NoError(t, p.stop())
	})
}

// TestLogsFollowTakesUpWhereTheFilesEnd checks that a follower gets each line once, also the
// ones printed while it reads the files.
func TestLogsFollowTakesUpWhereTheFilesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []Agent{{Name: "a"}}
		p := perform(t, Options{}, agents, map[string]part{"a": func(p *player) int {
			p.say("before")
			for line := p.read(); line != ""; line = p.read() {
				p.say("heard " + line)
			}
			return 0
		}})
		synctest.Wait()
		past(t, agents[0], "000000-01.out", "01 long ago")
		var texts []string
		told := false
		require.NoError(t, p.Logs(t.Context(), output.LogQuery{Last: output.AllLines, Stream: control.StreamOut, Follow: true}, func(l control.LogLine) error {
			if !told { // while the files are being read
				told = true
				<-time.After(time.Second)
				require.NoError(t, p.Tell(t.Context(), "a", []byte("more\n")))
				synctest.Wait()
				go p.cancel()
			}
			texts = append(texts, l.Text)
			return nil
		}))
		require.NoError(t, p.end())
		require.Equal(t, []string{"long ago", "before", "heard more"}, texts[:3])
		require.NotContains(t, texts[3:], "heard more")
	})
}
