package supervisor

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
)

// doors is a Doorway that records its calls. Agents are started by several goroutines.
type doors struct {
	env []string
	err error

	mu   sync.Mutex
	told []string
	runs []string
}

func (d *doors) open(agent, run string) ([]string, func(), error) {
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
		p := perform(t, Options{Doorway: d.open}, []Agent{a}, map[string]part{"a": func(r *player) int {
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
// started, one whose access failed, which starts without it, and one that joined by a pipe.
func TestRunsWithoutADoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{env: []string{"ORC_TOKEN=t"}, err: errors.New("no room")}
		missing, lucky := agentOf(t, "missing"), agentOf(t, "lucky")
		missing.Autostart, lucky.Autostart = true, true
		p := perform(t, Options{Doorway: d.open}, []Agent{missing, lucky}, map[string]part{"lucky": untilEOF})
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
