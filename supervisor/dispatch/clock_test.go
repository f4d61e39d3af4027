package dispatch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// TestClockSet checks that a question waits as long as its agent has asked for when the clock of the
// machine is set, in both directions, and that the time of a sleeping machine counts. Fake time is the
// date here.
func TestClockSet(t *testing.T) {
	for name, test := range map[string]struct {
		passed, by time.Duration // elapsed time, and the step of the clock during it
		over       bool
	}{
		"forward": {passed: 0, by: time.Hour},
		"back":    {passed: time.Minute, by: -50 * time.Second, over: true},
		"sleep":   {passed: time.Minute, by: 0, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var set atomic.Int64
				d := begin(t, Options{Record: newLedger(), Clock: func() time.Duration { return time.Since(began) - time.Duration(set.Load()) }})
				defer d.Close()
				d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "one", Capacity: 1}}})
				one := d.enter("one", stdin.Limits{Messages: 100, Bytes: 1 << 20})
				one.listen()
				one.says(`{"type":"request:ask-user","id":"q","timestamp":"` + noon + `","payload":{"question":"Now?","timeout":40000}}`)
				d.taken()

				d.mu.Lock()
				set.Store(int64(test.by))
				d.timer.Stop() // it stands still while the machine sleeps, and the date does not move it
				d.mu.Unlock()
				<-time.After(test.passed + test.by)
				d.Tick()
				require.Equal(t, test.over, len(one.lines()) > 0, "%q", one.lines())
				shown := d.taken()
				require.Equal(t, test.by != 0, len(shown) > 0 && shown[0].Kind == events.OrchestratorClockSet, "%v", shown)
				<-time.After(39 * time.Second)
				require.Equal(t, test.over, len(one.lines()) > 0, "%q", one.lines())
				<-time.After(time.Second)
				require.Len(t, one.lines(), 1)
			})
		})
	}
}
