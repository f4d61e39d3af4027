package main

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// delays returns the planned delays before restarts, not the measured ones: the machine may be
// busy, but the plan is exact.
func (s *stage) delays(agent string) []int64 {
	var delays []int64
	for _, e := range s.events(events.AgentRestarting, agent) {
		delays = append(delays, e.Figures.DelayMS)
	}
	return delays
}

// Torture 0, row 5: an agent that crashes at once is restarted with growing delays and then
// given up. The orchestrator continues.
func TestTorture0CrashesAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
agent "crasher" {
  command = ["sh", "-c", "exit 1"]
  restart {
    policy = "always"
    delay  = "20ms"
    jitter = 0
  }
}
`).up("--json")
	s.waitForEvents(1, events.AgentGaveUp, "crasher")
	require.Equal(t, []int64{20, 40, 80, 160, 320}, s.delays("crasher"))
	view := s.agent("crasher")
	require.Equal(t, control.StateFailed, view.State)
	require.Equal(t, 6, view.Starts)
	s.stop()
}

// Torture 0, row 6: an agent that crashes 1.2 s after its start, when other supervisors count it
// as started, also gets growing delays.
func TestTorture0CrashesAfterAMoment(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
agent "crasher" {
  command = ["sh", "-c", "sleep 1.2; exit 1"]
  restart {
    policy = "always"
    delay  = "20ms"
    jitter = 0
    burst  = 2
  }
}
`).up("--json")
	s.waitForEvents(1, events.AgentGaveUp, "crasher")
	require.Equal(t, []int64{20, 40}, s.delays("crasher"))
	for _, e := range s.events(events.AgentExited, "crasher") {
		require.GreaterOrEqual(t, e.Figures.UpMS, int64(1200), "uptime is that of the process")
	}
	s.stop()
}

// Row 10: crashes before reset_after let the delay grow until the agent is given up. After
// longer runs the delay stays at its base. (This test uses 0.3 s and 0.2 s instead of 61 s and
// 60 s; TestRestartDelays of package supervisor uses the real values.)
func TestTorture10RestartDelays(t *testing.T) {
	t.Parallel()
	const growing = `
agent "crasher" {
  command = ["sh", "-c", "%s; exit 1"]
  restart {
    delay  = "20ms"
    jitter = 0
  }
}
`
	for name, script := range map[string]string{"at once": ":", "later": "sleep 0.1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fmt.Sprintf(growing, script)).up("--json")
			s.waitForEvents(1, events.AgentGaveUp, "crasher")
			require.Equal(t, []int64{20, 40, 80, 160, 320}, s.delays("crasher"))
			s.stop()
		})
	}
	t.Run("long after", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, `
agent "crasher" {
  command = ["sh", "-c", "sleep 0.3; exit 1"]
  restart {
    delay       = "20ms"
    jitter      = 0
    reset_after = "200ms"
    window      = "1s"
  }
}
`).up("--json")
		s.waitForEvents(8, events.AgentRestarting, "crasher")
		require.Equal(t, slices.Repeat([]int64{20}, 8), s.delays("crasher")[:8])
		require.Empty(t, s.events(events.AgentGaveUp, "crasher"))
		s.stop()
	})
}

// Row 11: fifty agents crash together. One message reports it, their restarts are spread, and
// all of them run again.
func TestTorture11Storm(t *testing.T) {
	t.Parallel()
	const many = 50
	s := newStage(t, `
agent "victim" {
  command  = ["cat"]
  replicas = 50
  restart {
    delay  = "50ms"
    jitter = 0
  }
}
`).up("--json")
	for _, e := range s.waitForEvents(many, events.AgentStarted, "") {
		require.NoError(t, syscall.Kill(e.Figures.PID, syscall.SIGKILL))
	}
	s.waitForEvents(2*many, events.AgentStarted, "")
	require.Len(t, s.events(events.OrchestratorStorm, ""), 1)
	delays := s.delays("")
	require.Len(t, delays, many)
	require.Greater(t, slices.Max(delays)-slices.Min(delays), int64(500), "the restarts are not spread")
	for _, view := range s.status().Agents {
		require.Equal(t, control.StateRunning, view.State)
		require.Equal(t, 1, view.Restarts)
		require.Equal(t, "killed by SIGKILL", view.LastExit)
	}
	s.stop()
}

// Row 11, the opposite: one agent that crashes many times in a second is not a storm, and waits
// only for its own delay.
func TestTorture11OneCrasherIsNoStorm(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
agent "crasher" {
  command = ["sh", "-c", "exit 1"]
  restart {
    delay  = "5ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }
}
`).up("--json")
	s.waitForEvents(40, events.AgentRestarting, "crasher")
	require.Empty(t, s.events(events.OrchestratorStorm, ""))
	require.Equal(t, slices.Repeat([]int64{5}, 40), s.delays("crasher")[:40])
	s.stop()
}
