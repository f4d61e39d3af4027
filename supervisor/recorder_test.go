package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// liveALittle makes tasks in every state, a question, a key, and an agent that has crashed.
func liveALittle(t *testing.T, p *play, all []*talker) {
	boss, w := all[0], all[1]
	synctest.Wait()
	boss.says(submit("done", "w"), submit("running", "w"), submit("waiting", "w"), submit("mine", ""), request("q", "ask-user", `{"question":"why?","timeout":3600000}`))
	id := func(request string) string { return fmt.Sprintf(`{"taskId":%q}`, boss.task(request).ID) }
	w.says(request("1", "complete-task", id("done")))
	boss.says(request("2", "cancel-task", id("mine")), event("3", "question", `{"question":"fine?","context":{"n":12345678901234567890}}`))
	boss.says(request("4", "submit-task", fmt.Sprintf(`{"type":"t","name":"after","dependencies":[%q],"priority":1}`, boss.task("running").ID)))
	_, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "issue-key", []byte(`{"agent":"boss"}`))
	require.NoError(t, err)
	synctest.Wait()
}

// team returns a boss and a worker.
func team(t *testing.T) ([]settings.Agent, map[string]part, []*talker) {
	return talkers(t, settings.Agent{Name: "boss", Role: wire.RolePlanner, OnExit: "auto"}, worker("w", 1))
}

// replayed returns the State that facts give.
func replayed(t *testing.T, facts []wire.Record) *handlers.State {
	t.Helper()
	s := handlers.New(handlers.Rules{})
	for _, r := range facts {
		require.NoError(t, s.Apply(nil, r))
	}
	return s
}

// TestStateIsKeptAtTheEnd checks that the State is kept at the end, and equals a replay of the
// facts.
func TestStateIsKeptAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := team(t)
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		liveALittle(t, p, all)
		require.NoError(t, p.stop())
		facts := record.facts(t)
		require.Equal(t, []int64{int64(len(facts))}, record.keeps)
		seq, state, err := record.Snapshot(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, len(facts), seq)
		require.Equal(t, spelledState(t, replayed(t, facts)), string(state))
		for i, r := range facts {
			require.EqualValues(t, i+1, r.Seq)
		}
	})
}

// TestKeeping checks that Keeping reports the last State while it is being kept, because the end
// of the program waits for it.
func TestKeeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		p := perform(t, Options{Record: record}, nil, nil)
		synctest.Wait()
		release := make(chan struct{})
		record.beforeKeep = func() { <-release }
		p.cancel()
		synctest.Wait()
		require.Positive(t, p.Keeping())
		close(release)
		require.NoError(t, p.end())
		require.Zero(t, p.Keeping())
		require.Len(t, record.keeps, 1)
	})
}

// TestRestartFromSnapshot checks that a start from the kept State and later facts equals one
// from all facts, and continues in the same way.
func TestRestartFromSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		for life := range 3 {
			agents, parts, all := team(t)
			p := perform(t, Options{Record: record}, agents, parts)
			liveALittle(t, p, all)
			record.forgets = life > 0 // later processes keep no State
			require.NoError(t, p.stop())
		}
		seq, _, err := record.Snapshot(t.Context())
		require.NoError(t, err)
		facts := record.facts(t)
		require.Less(t, seq, int64(len(facts)))
		tailed := New(Options{Record: record}, nil)
		require.NoError(t, tailed.Restore(t.Context()))
		require.EqualValues(t, len(facts), tailed.Seq())
		tailed.dispatcher.Look(func(state *handlers.State) {
			require.Equal(t, spelledState(t, replayed(t, facts)), spelledState(t, state))
		})
	})
}

// TestRestartFromUnreadableSnapshot checks that an unreadable State is ignored, because the
// facts are complete.
func TestRestartFromUnreadableSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		agents, parts, all := team(t)
		p := perform(t, Options{Record: record}, agents, parts)
		liveALittle(t, p, all)
		require.NoError(t, p.stop())
		facts := record.facts(t)
		for _, text := range []string{"", "{}", `{"version":99}`, "no JSON"} {
			require.NoError(t, record.Memory.Keep(t.Context(), int64(len(facts)), bytes.NewReader([]byte(text))))
			s := New(Options{Record: record}, nil)
			require.NoError(t, s.Restore(t.Context()))
			s.dispatcher.Look(func(state *handlers.State) {
				require.Equal(t, spelledState(t, replayed(t, facts)), spelledState(t, state))
			})
		}
	})
}

// TestRestartFromTheFuture checks that a record of an unknown kind is an error that names it: no
// start may ignore facts.
func TestRestartFromTheFuture(t *testing.T) {
	record := eventlog.NewMemory()
	facts := []wire.Record{{At: time.Now(), Kind: events.OrchestratorStarted, Payload: []byte(`{}`)}, {At: time.Now(), Kind: "task.teleported", Payload: []byte(`{}`)}}
	require.NoError(t, record.Append(context.Background(), 0, facts))
	err := New(Options{Record: record}, nil).Restore(t.Context())
	require.ErrorContains(t, err, "task.teleported")
	require.ErrorContains(t, err, "record 2")
}

// killed returns the log of a process that was killed: it commits no more.
func (l *ledger) killed(t *testing.T) *ledger {
	t.Helper()
	next := newLedger()
	var facts []wire.Record
	for _, r := range l.facts(t) {
		r.Seq = 0
		facts = append(facts, r)
	}
	require.NoError(t, next.Memory.Append(t.Context(), 0, facts))
	return next
}

// TestLifeAfterAKill checks that after a kill every task continues, whatever on_exit is.
// Questions wait, and earlier requests are known.
//
// Rows: B-30, B-57, T-57.
func TestLifeAfterAKill(t *testing.T) {
	for _, onExit := range []string{"auto", "fail", "requeue"} {
		synctest.Test(t, func(t *testing.T) {
			agents, parts, all := team(t)
			agents[1].OnExit = onExit
			record := newLedger()
			p := perform(t, Options{Record: record}, agents, parts)
			liveALittle(t, p, all)
			task := all[0].task("running").ID
			after := record.killed(t)
			require.NoError(t, p.stop())

			agents, parts, all = team(t)
			agents[1].OnExit = onExit
			p = perform(t, Options{Record: after}, agents, parts)
			synctest.Wait()
			boss, w := all[0], all[1]
			boss.says(request("get", "get-task", fmt.Sprintf(`{"taskId":%q}`, task)))
			require.Equal(t, "running", boss.task("get").Status, onExit)
			require.Equal(t, []string{"notify:task-assigned"}, w.gist())
			boss.says(submit("running", "w"), request("q", "ask-user", `{"question":"why?","timeout":3600000}`))
			require.Equal(t, task, boss.task("running").ID, "a repeat by the next run")
			answer, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "list-questions", nil)
			require.NoError(t, err)
			require.Len(t, answer.(*wire.QuestionList).Questions, 2, "nobody is asked twice")
			_, err = p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "answer-question", []byte(`{"questionId":"q1","answer":"so"}`))
			require.NoError(t, err)
			require.Contains(t, boss.gist(), "q granted")
			require.NoError(t, p.stop())
			replayed(t, after.facts(t))
		})
	}
}

// TestLifeWithoutAnAgent checks that an agent removed from the file before a restart is
// forgotten. Its task is assigned once to a running agent.
//
// Rows: B-56.
func TestLifeWithoutAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := worker("one", 1), worker("other", 1)
		one.Offers, other.Offers, one.OnExit = []string{"w"}, []string{"w"}, "requeue"
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, one, other)
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		all[0].says(submit("1", "w"))
		require.Equal(t, []string{"notify:task-assigned"}, all[1].gist())
		after := record.killed(t)
		require.NoError(t, p.stop())

		agents, parts, all = talkers(t, settings.Agent{Name: "boss"}, other)
		p = perform(t, Options{Record: after}, agents, parts)
		synctest.Wait()
		require.Equal(t, []string{"notify:task-assigned"}, all[1].gist())
		seen := kinds(after.facts(t), "task.")
		require.Equal(t, []string{"task.created", "task.assigned", "task.started", "task.requeued", "task.assigned", "task.started"}, seen)
		require.NoError(t, p.stop())
	})
}

// TestEventsOfEarlierLives checks that events from memory and from the log form one sequence
// without gaps.
func TestEventsOfEarlierLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		for range 2 {
			agents, parts, all := team(t)
			p := perform(t, Options{Record: record}, agents, parts)
			liveALittle(t, p, all)
			var seqs []int64
			require.NoError(t, p.Events(t.Context(), output.EventQuery{}, func(e wire.Event) error {
				seqs = append(seqs, e.Seq)
				return nil
			}))
			require.Len(t, seqs, len(record.facts(t)))
			for i, seq := range seqs {
				require.EqualValues(t, i+1, seq)
			}
			require.NoError(t, p.stop())
		}
	})
}

// past writes a log file as an earlier process would have left it: each line is its second and
// its text.
func past(t *testing.T, agent settings.Agent, name string, lines ...string) {
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
		agents := []settings.Agent{{Name: "a"}, {Name: "b"}}
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
		agents := []settings.Agent{{Name: "a"}}
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
		agents := []settings.Agent{{Name: "a"}}
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
