package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// watcher records the calls of a Watch.
type watcher struct {
	mu    sync.Mutex
	heard []string
	facts []wire.Record
}

func (w *watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, fmt.Sprintf(format, args...))
}

func (w *watcher) watch() dispatch.Hooks { return dispatch.Hooks{Meter: w, Tracer: w} }

func (w *watcher) Judged(door, kind string, code wire.Code, n int) {
	w.note("judged %s %s %q %d", door, kind, code, n)
}

func (w *watcher) Asked(a dispatch.Asked) { w.note("asked %s %s", a.From, a.Operation) }

func (w *watcher) Answered(a dispatch.Answered) { w.note("answered %q", a.Code) }

func (w *watcher) Recorded(facts []wire.Record, _ time.Time, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts = append(w.facts, facts...)
}

// since returns the calls since its last call, sorted.
func (w *watcher) since() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.heard
	w.heard = nil
	slices.Sort(lines)
	return lines
}

// TestWatch checks that a Watch gets every message and every recorded fact.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := team(t)
		record, w := newLedger(), new(watcher)
		p := perform(t, Options{Record: record, Watch: w.watch()}, agents, parts)
		synctest.Wait()
		boss := all[0]
		require.Empty(t, w.since(), "what the orchestrator says itself is nobody's message")

		boss.says(request("1", "query-tasks", `{}`), request("2", "query-tasks", `{}`), request("3", "get-task", `{"taskId":"none"}`))
		require.Equal(t, []string{
			`answered ""`, `answered ""`, `answered "not_found"`,
			`asked agent:boss get-task`, `asked agent:boss query-tasks`, `asked agent:boss query-tasks`,
			`judged stdio request:get-task "not_found" 1`, `judged stdio request:query-tasks "" 2`,
		}, w.since(), "those of one kind are told of together")
		boss.says(request("4", "no-such", `{}`), event("5", "progress", `{"taskId":"none","progress":0.5}`), event("6", "progress", `[]`))
		require.Equal(t, []string{
			`judged stdio event:progress "invalid" 1`, `judged stdio event:progress "not_found" 1`, `judged stdio request:no-such "unknown_type" 1`,
		}, w.since(), "what makes no sense is asked of nobody")
		boss.says(submit("waits", "cobol"))
		p.operate("query-tasks", `{}`)
		require.Equal(t, []string{
			`answered ""`, `answered ""`, `asked agent:boss submit-task`, `asked operator query-tasks`,
			`judged http request:query-tasks "" 1`, `judged stdio request:submit-task "" 1`,
		}, w.since())

		h, err := p.Requests.ResumePoint(t.Context(), 0)
		require.NoError(t, err)
		require.Empty(t, w.since(), "who looks for a Watch is not seen by it")
		created := slices.IndexFunc(record.facts(t), func(r wire.Record) bool { return r.Kind == events.TaskCreated })
		require.LessOrEqual(t, h.Behind, int64(created), "the task is behind it")
		status, err := p.QuickStatus(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, status.Tasks.Pending)
		require.Len(t, status.Agents, 2)
		require.NoError(t, p.stop())
		require.Equal(t, record.facts(t), w.facts)
	})
}

// TestHindsight checks that the log is read from the origin of the oldest open task, and not
// from its beginning.
func TestHindsight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := team(t)
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		boss, worker := all[0], all[1]
		number := func(id string) int64 {
			for _, r := range record.facts(t) {
				if r.Kind == events.TaskCreated && r.Correlation == id {
					return r.Seq
				}
			}
			return 0
		}
		behind := func(since int64) int64 {
			<-time.After(time.Second) // of the bubble: each task has another time
			h, err := p.Requests.ResumePoint(t.Context(), since)
			require.NoError(t, err)
			return h.Behind
		}
		last := func() int64 { return int64(len(record.facts(t))) }
		require.Equal(t, last(), behind(last()), "nothing is open")
		boss.says(submit("first", "w"))
		first := boss.task("first").ID
		worker.says(request("1", "complete-task", `{"taskId":"`+first+`"}`))
		synctest.Wait()
		ended := last()
		require.Equal(t, ended, behind(ended))
		require.Equal(t, number(first)-1, behind(0), "it has ended since")
		boss.says(submit("waits", "cobol"))
		waits := boss.task("waits").ID
		require.Equal(t, number(waits)-1, behind(ended))
		_, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "cancel-task", []byte(`{"taskId":"`+waits+`"}`))
		require.NoError(t, err)
		require.Equal(t, last(), behind(last()))
		require.NoError(t, p.stop())
	})
}

// doors is a Doorway that records its calls. Agents are started by several goroutines.
type doors struct {
	env []string
	err error

	mu   sync.Mutex
	told []string
	runs []string
}

func (d *doors) open(agent, run string, _ int) ([]string, func(), error) {
	d.tell("+" + agent)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = append(d.runs, run)
	return d.env, func() { d.tell("-" + agent) }, d.err
}

func (d *doors) tell(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, what)
}

// asked returns the calls so far, and their runs.
func (d *doors) asked() (told, runs []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told), slices.Clone(d.runs)
}

// TestEachRunHasItsDoor checks that a run has its own access to the API from before it begins
// until all of it has ended. The access of the last run is closed when the next one opens.
//
// Rows: K-18.
func TestEachRunHasItsDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{env: []string{"ORC_SOCKET=s", "ORC_TOKEN=t"}}
		a := agentOf(t, "a")
		a.Autostart = true
		var mu sync.Mutex
		var seen [][]string
		p := perform(t, Options{Doorway: d.open}, []settings.Agent{a}, map[string]part{"a": func(r *player) int {
			mu.Lock()
			seen = append(seen, slices.Concat(r.spec.Env, []string{r.spec.Run}))
			mu.Unlock()
			return after(time.Second, 1)(r)
		}})
		<-time.After(1700 * time.Millisecond)
		synctest.Wait()
		told, runs := d.asked()
		require.Equal(t, []string{"+a", "-a", "+a"}, told)
		mu.Lock()
		for i, run := range runs {
			require.Equal(t, run, seen[i][len(seen[i])-1])
			require.Contains(t, seen[i], "ORC_SOCKET=s")
			require.Contains(t, seen[i], "ORC_AGENT_ID=a")
		}
		mu.Unlock()
		require.NoError(t, p.stop())
		told, _ = d.asked()
		require.Equal(t, []string{"+a", "-a", "+a", "-a"}, told)
	})
}

// TestRunsWithoutADoor checks which runs have no access to the API: an agent that cannot be
// started, a run that starts although its access failed, and one that joined by a pipe.
func TestRunsWithoutADoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{env: []string{"ORC_TOKEN=t"}, err: errors.New("no room")}
		missing, lucky := agentOf(t, "missing"), agentOf(t, "lucky")
		missing.Autostart, lucky.Autostart = true, true
		p := perform(t, Options{Doorway: d.open}, []settings.Agent{missing, lucky}, map[string]part{"lucky": untilEOF})
		synctest.Wait()
		told, _ := d.asked()
		require.ElementsMatch(t, []string{"+missing", "-missing", "+lucky"}, told)
		require.Contains(t, p.live["lucky"].spec.Env, "ORC_TOKEN=t", "what there is counts")
		c := p.join("guest")
		told, _ = d.asked()
		require.Len(t, told, 3)
		c.end()
		c.goodbye()
		require.NoError(t, p.stop())
	})
}

func TestWithout(t *testing.T) {
	env := []string{"A=1", "ORC_TOKEN=old", "ORC_TOKENS=2", "B"}
	require.Equal(t, "A=1 ORC_TOKENS=2 B", strings.Join(without(env, []string{"ORC_TOKEN=new"}), " "))
	require.Empty(t, without(nil, []string{child.EnvRun + "=x"}))
}
