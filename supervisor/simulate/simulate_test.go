package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

func agent(name, role string, capabilities ...string) Agent {
	return Agent{Member: wire.Member{ID: name, Role: role, Capabilities: capabilities, Capacity: 1, OnExit: "requeue"}, Verified: true, Attempts: 2}
}

func block(name string, needs []string, requires ...string) wire.SubmitTask {
	s := wire.SubmitTask{Type: "task", Name: name, RequiredCapabilities: requires, Block: &hub.TaskBlock{Name: name, Needs: needs}}
	if requires == nil {
		s.RequiredRole = wire.RoleWorker
	}
	return s
}

// texts returns the findings as lines.
func texts(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n", f.Kind, f.Text)
	}
	return b.String()
}

// A simulation reports problems, and the same seed reports the same.
func TestRun(t *testing.T) {
	rules := handlers.Rules{MaxAttempts: 3}
	boss, deaf := agent("boss", wire.RolePlanner), agent("deaf", "tester", "probe")
	deaf.Deaf = true
	lonely := session.Spec{ID: "lonely", Members: []session.Member{{AgentID: "boss", AgentType: session.AgentArchitect}}, MaxIterations: 3, OnMax: "abort"}
	for name, c := range map[string]struct {
		team Team
		says []string
	}{
		"nothing": {Team{Agents: []Agent{agent("a", wire.RoleWorker)}}, nil},
		"unmatched": {
			Team{Agents: []Agent{agent("a", wire.RoleWorker, "go")}, Tasks: []wire.SubmitTask{block("build", nil, "go", "sql"), block("test", []string{"build"})}},
			[]string{`unmatched: task "build" was never assigned: no agent has go and sql`, `unmatched: task "test" was never assigned: it waits for another task`, "idle: a never had a task"},
		},
		"deaf":    {Team{Agents: []Agent{deaf}, Tasks: []wire.SubmitTask{block("look", nil, "probe")}}, []string{"deaf could do it, but gets no messages"}},
		"no role": {Team{Agents: []Agent{boss}, Tasks: []wire.SubmitTask{block("x", nil)}}, []string{"no agent has the role worker"}},
		"lonely":  {Team{Agents: []Agent{boss}, Sessions: []session.Spec{lonely}}, []string{"session: lonely: no agent of the file is its developer"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.team.Rules = rules
			said := texts(Run(c.team))
			for _, want := range c.says {
				require.Contains(t, said, want)
			}
			if c.says == nil {
				require.Empty(t, said)
			}
			require.Equal(t, said, texts(Run(c.team)))
		})
	}
}

// A team that is in order gets its work done, whatever happens: crashes, failures, wrong results and questions.
func TestRunOfAGoodTeam(t *testing.T) {
	var agents []Agent
	for n := range 4 {
		agents = append(agents, agent(fmt.Sprint("w", n), wire.RoleWorker, "go"))
	}
	agents = append(agents, agent("boss", wire.RolePlanner), agent("rex", "reviewer"))
	spec := session.Spec{ID: "s", MaxIterations: 9, OnMax: "human_review", Validation: "standard", RequireReview: true, Members: []session.Member{
		{AgentID: "boss", AgentType: session.AgentArchitect}, {AgentID: "w0", AgentType: session.AgentDeveloper}, {AgentID: "rex", AgentType: session.AgentReviewer},
	}}
	r := Run(Team{Rules: handlers.Rules{MaxAttempts: 5}, Agents: agents, Sessions: []session.Spec{spec}, Load: 1000, Seed: 1})
	require.Equal(t, 1000, r.Tasks)
	require.GreaterOrEqual(t, r.Done, 950, "%s", texts(r))
	require.Positive(t, r.Questions)
	require.NotContains(t, texts(r), "s: 20 of 20")
	require.NotContains(t, texts(r), "unmatched")
	crashed := 0
	for _, a := range r.Agents {
		crashed += a.Crashes
	}
	require.Positive(t, crashed)

	agents[4].Stays = true
	r = Run(Team{Rules: handlers.Rules{MaxAttempts: 5}, Agents: agents, Load: 1000, Seed: 1})
	require.Contains(t, texts(r), "boss crashed for good: its restart policy is never")
	require.Contains(t, texts(r), "boss could do it, but crashed for good")
}
