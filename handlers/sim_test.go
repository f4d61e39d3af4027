package handlers

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

var (
	simSteps = flag.Int("steps", rounds(enoughSteps), "how long TestSimulation goes on; millions are fine")
	simSeed  = flag.Uint64("seed", 1, "what happens in TestSimulation")
)

const (
	simWorlds   = 6      // each has its own rules
	enoughSteps = 90_000 // to see everything once
)

// TestSimulation lets worlds of agents, people, accidents and restarts live for a long time, each
// twice. The second life is the same but for the State, which is taken from a snapshot now and
// then. Both must agree word for word. A State that follows the records alone must always be equal,
// and the invariants (requireSound, and all checks of world) must hold at any time.
//
//	go test ./handlers -run TestSimulation -steps 5000000 -seed 7
//
// Rows, T-13, T-43, T-47, T-55.
// Rows: B-21, B-29, B-30, B-42, B-49, B-50, B-56, K-01, K-04, T-07, T-21, T-23, T-44, T-57, T-59.
// Rows: E-12, E-15, E-16, E-17, E-19, E-20, E-21, E-22, E-24, E-28, E-30, E-31, E-32, E-33, E-34, E-35, E-36, E-37.
// Rows: C-02, C-16, C-22, C-38, C-45, C-52, C-71, C-72, C-75, C-78, C-79, C-81, C-86, C-87, C-88, C-91, C-93, C-96, C-98, C-99.
// Rows: E-43, E-44, E-46, E-47, E-48, E-49, E-55, E-63, E-66, E-67, E-77, E-86, T-34, T-35, T-37, T-38, T-40, T-41.
func TestSimulation(t *testing.T) {
	saw := make(map[string]int)
	for n := range simWorlds {
		lives := make([]*world, 2)
		t.Run(fmt.Sprint("world ", n), func(t *testing.T) {
			for life := range lives {
				t.Run(fmt.Sprint(life), func(t *testing.T) {
					t.Parallel()
					lives[life] = live(t, *simSeed+uint64(n), *simSteps/simWorlds, life > 0)
				})
			}
		})
		if lives[0] == nil || lives[1] == nil {
			return
		}
		require.Equal(t, lives[0].said(), lives[1].said(), "the same inputs give the same records and letters, byte for byte")
		for _, w := range lives {
			for what, times := range w.saw {
				saw[what] += times
			}
		}
	}
	for _, what := range seenSomewhere() {
		if *simSteps < enoughSteps {
			break
		}
		require.Positive(t, saw[what], "%s is not seen in any world", what)
	}
}

// rulesOf returns the rules of one world. The rules without which a kind of record cannot be seen change from world to
// world, so each run has all of them.
func rulesOf(seed uint64) Rules {
	chance := rand.New(rand.NewPCG(seed, 3))
	either := func() bool { return chance.IntN(2) == 0 }
	return Rules{
		KeepFinished: 50, OnDependencyFailure: []string{"auto", "block", "cancel"}[seed/2%3], MaxAttempts: 1 + chance.IntN(4),
		OnlineOnly: either(), CountAssigned: either(), MergeQueue: either(), MatchOnCreate: seed%2 == 0, LenientResults: either(), IgnoreArrivals: chance.IntN(4) == 0,
		Stale: []time.Duration{10 * time.Second, time.Minute, 3 * time.Minute}[chance.IntN(3)], Topics: []string{"build.finished"},
		DelegationRetries: []int{0, 2, 3, 5}[chance.IntN(4)], KeepClosed: 1,
		Archive: chance.IntN(3) > 0,
	}
}

// live runs one life of a world.
func live(t *testing.T, seed uint64, steps int, restores bool) *world {
	w := newWorld(t, seed)
	when := rand.New(rand.NewPCG(seed, 2))
	var slow slowSnapshot
	for range steps {
		w.step()
		w.handOn()
		if restores {
			slow.look(w, when.IntN(2000))
		}
		if restores && when.IntN(steps/5) == 0 {
			w.state = restored(t, w.rules, spelled(t, w.state))
			requireSound(t, w.state)
			w.lookAtBus()
			w.minutes.look()
			w.handovers.look()
		}
		if !restores && w.steps%(steps/20) == 0 {
			requireSound(t, w.state)
			w.lookAtBus()
			w.minutes.look()
			w.handovers.look()
		}
	}
	w.settle()
	w.end()
	t.Log(w.summary())
	return w
}

// A slowSnapshot is spelled while the world lives on, and must equal the State at its beginning.
type slowSnapshot struct {
	snapshot *Snapshot // nil: none is being spelled
	want     string
	text     []byte
}

func (s *slowSnapshot) look(w *world, size int) {
	if s.snapshot == nil || w.state.Tasks.Saving != s.snapshot { // or the world was restored
		want := spelled(w.t, w.state)
		*s = slowSnapshot{snapshot: w.state.Snapshot(), want: want}
	}
	part, done, err := s.snapshot.Next(size)
	require.NoError(w.t, err)
	if s.text = append(s.text, part...); done {
		again, ok := Restore(w.rules, s.text, backwards)
		require.True(w.t, ok)
		requireSameText(w.t, s.want, spelled(w.t, again))
		w.saw["a snapshot that took a while"]++
		s.snapshot = nil
	}
}

func (w *world) said() string { return hex.EncodeToString(w.voice.Sum(nil)) }

func (w *world) summary() string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%d steps, %d records, %d tasks:", w.steps, w.state.Seq(), len(w.state.Tasks.List)))
	var kinds []string
	for kind := range w.saw {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		text.WriteString(fmt.Sprintf(" %s %d", kind, w.saw[kind]))
	}
	return text.String()
}

// seenSomewhere lists the events that must be seen in a run of enough steps.
func seenSomewhere() []string {
	what := []string{
		"repeat", "repeat of a question", "repeat while it waits", "late answer", "gained", "missed late",
		"created with requirements", "matched on creation", "matched on arrival", "assigned when unblocked", "assigned", "no_match",
		"link refused: cycle", "link refused: contract_taken", "link refused: wrong_state", "link refused: dependency_failed",
		"a key holds: true", "a key holds: false", "notify:task-assigned", "notify:task-cancelled", "notify:task-updated",
		events.MessageSent, "a key again", "a message again", "a look that is too old", "a name moves", "messages read",
		"alert.fired: agent.stale", "alert.resolved: agent.stale", "alert.fired: agent.crashed", "alert.resolved: agent.crashed",
		"alert.fired: message.failed", "by mail: task.done", "by mail: task.failed", "by mail: task.progress",
		"a line", "said again", "fate ", "fate held", "fate kept", "fate pulled", "a sender hears of a retry", "a completion is said for anyRecipient", "a session is forgotten",
		"escalated: abort", "escalated: force_approve", "escalated: human_review", "escalated at the last: false", "judged: approve", "judged: revise", "judged: abort",
		"revised by the same name", "revised by another name, revise", "revised by another name, redesign",
		"verdict ", "verdict approved", "verdict changes_requested", "verdict rejected",
		"trouble: exception, retry", "trouble: exception, reassign", "trouble: timeout, retry", "trouble: timeout, reassign", "trouble: resource_limit, manual",
		"message refused: scope_violation", "message refused: id_reused", "message refused: not_active", "message refused: task_id_taken",
		"message refused: iterations_used_up", "message refused: wrong_task", "message refused: session_closed", "message refused: invalid",
		"handed on: a part", "handed on: in a trace", "handed on: a request", "handed on: a response", "handed on: completed", "handed on: failed",
		"handed on: cancelled", "handed on: an input is brought again", "handed on: a line is lost", "handed on: the same again",
		"handed on: the same words again", "handed on: how it stands", "handed on: nobody's words", "handed on: refused: id_reused",
		"handed on: refused: cycle", "handed on: refused: agent_unavailable", "handed on: words refused: not_forwarded",
		"postponed, given out early: false",
	}
	for _, kind := range session.Types {
		what = append(what, "say "+kind)
	}
	for phase := range edges {
		if phase != "" {
			what = append(what, "phase "+phase)
		}
	}
	for kind := range state.Facts {
		what = append(what, kind)
	}
	for st := range transitions {
		what = append(what, "-> "+string(st))
	}
	return what
}

// requireSound checks all invariants of a State.
func requireSound(t testing.TB, s *State) {
	requireSoundTasks(t, s)
	requireSoundAgents(t, s)
	requireSoundMarket(t, s)
	requireSoundPostponed(t, s)
	requireSoundWishes(t, s)
	requireSoundIndex(t, s)
	requireSoundServers(t, s)
	requireSoundQuestions(t, s)
	requireSoundHelp(t, s)
	requireSoundBus(t, s)
	requireSoundSessions(t, s)
}

// rounds returns how often to repeat a random test: n times, or n/16 under the race detector,
// where each round is several times slower. Races show early; rare cases are left to the run
// without it.
func rounds(n int) int {
	build, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 16
	}
	return n
}

// accident lets a process fail.
func (w *world) accident(m *inhabitant) {
	happen := func(kind string, figures wire.Figures) {
		w.do(Actor{}, &wire.Event{Kind: kind, Agent: m.ID, Run: m.run, Text: kind, Figures: figures})
	}
	code := w.chance.IntN(2)
	figures := wire.Figures{ExitCode: &code}
	if w.chance.IntN(4) == 0 {
		figures = wire.Figures{Signal: "SIGKILL"}
	}
	switch n := w.chance.IntN(10); {
	case m.far:
		m.up = n < 6 // a server reports again, or stays silent
	case m.dying:
		m.dying = false
		happen(events.AgentEnded, figures)
		w.yield(m)
		if w.chance.IntN(8) == 0 {
			happen(events.AgentRecovered, wire.Figures{}) // reported late
		}
		w.giveUp(m, figures)
	case !m.up && m.listed:
		w.launch(m)
	case !m.up:
	case n < 3:
		m.up, m.dying = false, true
		w.forget(func(run string) bool { return run == m.run })
		happen(events.AgentExited, figures)
	case n < 5:
		w.stop(m, figures)
	case n < 6:
		happen(events.AgentStalled, wire.Figures{})
	case n < 7:
		happen(events.AgentStdinClosed, wire.Figures{})
	case n < 8: // of a run long ago
		w.do(Actor{}, &wire.Event{Kind: events.AgentStalled, Agent: m.ID, Run: "a.0"})
	default:
		happen(events.AgentRecovered, wire.Figures{})
	}
	w.drain(m)
}

// giveUp sometimes reports that an ended agent is not restarted: after a clean exit, or because
// it is given up.
func (w *world) giveUp(m *inhabitant, figures wire.Figures) {
	switch {
	case w.chance.IntN(4) > 0:
	case figures.ExitCode != nil && *figures.ExitCode == 0:
		w.do(Actor{}, &wire.AgentGone{Agent: m.ID})
	default:
		w.do(Actor{}, &wire.Event{Kind: events.AgentGaveUp, Agent: m.ID, Run: m.run, Text: events.AgentGaveUp})
	}
}

// reconfigure changes, removes or adds an agent.
func (w *world) reconfigure(m *inhabitant) {
	switch {
	case w.chance.IntN(3) == 0:
		w.reseat()
		return
	case !m.listed && !m.far && w.chance.IntN(2) == 0:
		w.enroll(m)
		return
	case !m.listed:
		if m.far { // it runs here from now on
			m.far, m.up, m.run = false, false, ""
		}
		m.listed = true
	case w.chance.IntN(4) == 0:
		m.listed = false
		w.sent = slices.DeleteFunc(w.sent, func(s sent) bool { return s.from.Name == m.ID }) // its requests are forgotten too
	default:
		w.retrain(m)
		m.Capacity = 1 + w.chance.IntN(3)
		if w.chance.IntN(2) == 0 {
			w.rename(m)
		}
	}
	w.enlist()
	if !m.listed { // its questions were withdrawn
		w.forget(func(run string) bool { return run == m.run })
	}
	if !m.listed && m.up {
		m.up = false
		w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run, Figures: wire.Figures{Ordered: true}})
	}
	m.dying = m.dying && m.listed
}

// catastrophe ends the orchestrator, orderly or not, and starts it again from the records.
func (w *world) catastrophe() {
	if w.chance.IntN(2) == 0 {
		w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStopping})
		for range 20 {
			w.submit(w.members[0])
			w.work()
			w.deliver()
			w.confer()
			w.carry()
		}
		for _, m := range w.members {
			if m.up && !m.far {
				m.up = false
				w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run, Figures: wire.Figures{Ordered: true}})
			}
		}
		w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStopped})
	}
	w.mail, w.sessions.lines = nil, nil
	w.forget(func(string) bool { return true })
	w.sent = slices.DeleteFunc(w.sent, func(s sent) bool { return strings.HasPrefix(s.from.Run, "door:") }) // each makes one request
	for _, m := range w.members {
		if !m.far {
			m.up, m.dying = false, false
		}
		if m.yields {
			m.yields, m.Actor = false, ""
		}
	}
	w.enlist()
	w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	for _, k := range w.state.Tasks.List {
		w.must(k.View.State != wire.TaskVerifying, "%s is verifying, and its commands ended with the orchestrator", k.View.ID)
	}
	for _, m := range w.members {
		if m.listed && w.chance.IntN(3) > 0 {
			w.launch(m)
		}
	}
}
