package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
)

// TestWholeProgram simulates the whole program in fake time: the real dispatcher, handlers and
// event log, on a disk that fails, with functions as agents and operators. Each world has several
// lives. A life ends in order, by a kill at one of its writes, or by a power failure. The last life
// has no faults and lasts until all is done. The promises of the program are checked against a
// model that knows only its answers.
//
// All choices come from one seed; the order of goroutines does not. Kills of processes, full
// mailboxes and files that vanish have tests of their own with the real program.
func TestWholeProgram(t *testing.T) {
	seed := rand.Uint64()
	for world := range max(2, rounds(16)) {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed+uint64(world))
			folder := t.TempDir()
			for life := range 6 {
				folder = w.live(t, folder, life, false)
			}
			w.live(t, folder, 6, true)
			w.model.requirePlenty(t)
		})
	}
}

// A world is a simulated team and its operators over several lives of the orchestrator.
type world struct {
	random *dice
	model  *model
	calm   bool // no more faults and no new work
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Logf("seed %d", seed)
	random := &dice{random: rand.New(rand.NewPCG(seed, 0))}
	return &world{random: random, model: newModel()}
}

// A logCheck checks the log of a world.
type logCheck struct{ *eventlog.SQLite }

func (logCheck) Deposed(error) *wire.Error { return nil }

// live runs one life with the files of a folder. It returns the folder for the next one.
func (w *world) live(t *testing.T, folder string, life int, calm bool) (next string) {
	next = filepath.Join(t.TempDir(), "next")
	w.calm = calm
	left := 0
	if life > 0 && !calm && w.random.below(4) > 0 { // the first life makes the files
		left = 1 + w.random.below(800)
	}
	name := fmt.Sprintf("%s-%d", filepath.Base(filepath.Dir(folder)), w.random.below(1<<40))
	synctest.Test(t, func(t *testing.T) {
		disk := newSimDisk(t, folder, w.random.fork(), left, !calm)
		vfs.Register(name, disk)
		defer vfs.Unregister(name)
		defer func() { disk.image(t, next, w.random.below(2) == 0) }()
		log, err := eventlog.Open(t.Context(), eventlog.Options{Path: filepath.Join(folder, "events.db"), Durable: true, VFS: name})
		if err != nil {
			require.True(t, disk.ended(), "only a fault may hinder the start: %v", err)
			return
		}
		w.requireReplay(t, log)
		w.model.begin()
		p := perform(t, Options{Record: log, Protocol: freely, Check: logCheck{log}}, w.agents(), w.parts())
		w.run(t, p, disk)
		err = p.stop()
		closed := log.Close()
		if disk.ended() {
			return // no later fact than the fault can be recorded, and the answers report it
		}
		require.NoError(t, err)
		require.NoError(t, closed)
	})
	return next
}

// run lets operators and agents work until the life has ended.
func (w *world) run(t *testing.T, p *play, disk *simDisk) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if !w.calm {
		for range 3 {
			go w.operate(ctx, p)
		}
		for range 200 {
			if <-time.After(100 * time.Millisecond); disk.ended() {
				return
			}
		}
		return
	}
	<-time.After(time.Hour)
	synctest.Wait()
	w.model.requireKept(t, func(task string) string { return statusOf(t, p, task) })
}

// statusOf returns the status of a task, or "" without one.
func statusOf(t *testing.T, p *play, task string) string {
	reply, err := p.Requests.Ask(t.Context(), operator, "get-task", fmt.Appendf(nil, `{"taskId":%q}`, task))
	if refusal, ok := err.(*wire.Error); ok && refusal.Code == wire.CodeNotFound {
		return ""
	}
	require.NoError(t, err)
	return taskIn(t, reply).Status
}

var operator = handlers.Actor{Kind: handlers.Operator}

// taskIn returns the task of an answer.
func taskIn(t *testing.T, reply any) (task struct{ ID, Status string }) {
	text, err := wire.AppendPayload(nil, reply)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &struct{ Task any }{&task}))
	return task
}

// requireReplay checks that the State of the next life equals the one that all facts give.
func (w *world) requireReplay(t *testing.T, log *eventlog.SQLite) {
	s := New(Options{Record: log}, nil)
	require.NoError(t, s.Restore(t.Context()))
	var facts []wire.Record
	for r, err := range log.Records(t.Context(), 0) {
		require.NoError(t, err)
		facts = append(facts, r)
	}
	s.dispatcher.Look(func(state *handlers.State) {
		require.Equal(t, spelledState(t, replayed(t, facts)), spelledState(t, state))
	})
}

// operate submits and cancels tasks, and asks about them.
func (w *world) operate(ctx context.Context, p *play) {
	for ctx.Err() == nil {
		w.random.pause(ctx, 200*time.Millisecond)
		switch w.random.below(5) {
		case 0, 1:
			reply, err := p.Requests.Ask(ctx, operator, "submit-task", []byte(`{"type":"work","name":"o","requiredCapabilities":["w"]}`))
			if err == nil {
				w.model.submitted("", taskIn(p.t, reply).ID)
			}
		case 2:
			if id := w.model.anyTask(w.random); id != "" {
				_, err := p.Requests.Ask(ctx, operator, "cancel-task", fmt.Appendf(nil, `{"taskId":%q}`, id))
				if err == nil {
					w.model.ended(id, "cancelled")
				}
			}
		default:
			id := w.model.anyTask(w.random)
			if id == "" {
				continue
			}
			before := w.model.end(id)
			reply, err := p.Requests.Ask(ctx, operator, "get-task", fmt.Appendf(nil, `{"taskId":%q}`, id))
			if refusal, ok := err.(*wire.Error); ok && refusal.Code == wire.CodeNotFound {
				p.t.Errorf("task %s is lost", id)
			}
			if err == nil && before != "" && taskIn(p.t, reply).Status != before {
				p.t.Errorf("task %s was %s and is %s", id, before, taskIn(p.t, reply).Status)
			}
		}
	}
}

// agents returns a boss, who submits tasks and sends mail, and two workers.
func (w *world) agents() []settings.Agent {
	agents := []settings.Agent{
		{Name: "boss", Role: wire.RolePlanner, OnExit: "auto", Actor: "PO:boss"},
		{Name: "one", Role: wire.RoleWorker, Offers: []string{"w"}, Capacity: 1, OnExit: "auto", Actor: "PO:one"},
		{Name: "two", Role: wire.RoleWorker, Offers: []string{"w"}, Capacity: 3, OnExit: "auto", Actor: "PO:two"},
	}
	for i := range agents {
		agents[i].Restart = settings.Restart{Policy: settings.Always, Delay: 100 * time.Millisecond, Factor: 1, MaxDelay: time.Second, ResetAfter: time.Second, Burst: 10_000, Window: time.Minute}
	}
	return agents
}

func (w *world) parts() map[string]part {
	play := func(name string, act func(*actor)) part {
		return func(p *player) int {
			a := &actor{world: w, player: p, name: name, said: make(map[string]int), heard: make(map[string]int), over: make(chan struct{}), left: make(chan struct{})}
			w.model.enter(a)
			go a.listen()
			act(a)
			close(a.left)
			w.model.leave(a)
			return w.random.below(2) // the exit code
		}
	}
	return map[string]part{"boss": play("boss", (*actor).direct), "one": play("one", (*actor).toil), "two": play("two", (*actor).toil)}
}

// An actor is one run of a simulated agent.
type actor struct {
	*world
	player *player
	name   string
	over   chan struct{} // closed at the end of its stdin
	left   chan struct{} // closed at the end of its part

	// Guarded by the lock of the model.
	said, heard map[string]int // requests printed, and answers read, by id
	tasks       []string       // assigned, and not handled yet
	letter      int64          // the latest letter
}

// dead reports whether the run was killed.
func (a *actor) dead() bool {
	select {
	case <-a.player.killed:
		return true
	default:
		return false
	}
}

// say prints a request. Now and then it prints it twice, as a client that is unsure would.
func (a *actor) say(id, operation, payload string) {
	lines := 1
	if a.random.below(10) == 0 {
		lines = 2
	}
	for range lines {
		a.model.says(a, id)
		a.player.say(request(id, operation, payload))
	}
}

// pause waits, and reports whether the run continues.
func (a *actor) pause(most time.Duration) bool {
	select {
	case <-a.over:
		return false
	case <-a.player.killed:
		return false
	case <-time.After(a.random.within(most)):
		return true
	}
}

// crashes decides whether the run ends by itself now.
func (a *actor) crashes() bool { return !a.calm && a.random.below(60) == 0 }

// direct is the part of the boss. A request without an answer is repeated by later runs.
func (a *actor) direct() {
	for a.pause(200*time.Millisecond) && !a.crashes() {
		id, to := a.model.unanswered(a.calm, a.random)
		switch {
		case id == "":
		case to == "":
			a.say(id, "submit-task", fmt.Sprintf(`{"type":"work","name":%q,"requiredCapabilities":["w"]}`, id))
		default:
			a.say(id, "send-message", fmt.Sprintf(`{"to_actor":%q,"topic":"message.direct","payload":{"id":%q}}`, to, id))
		}
	}
}

// toil is the part of a worker.
func (a *actor) toil() {
	var acked int64
	for a.pause(300*time.Millisecond) && !a.crashes() {
		task, letter := a.model.next(a)
		if task != "" {
			a.say("complete "+task, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":{"by":%q}}`, task, a.name))
		}
		if letter > acked && a.random.below(3) == 0 {
			a.say(fmt.Sprintf("ack %d of %s", letter, a.player.spec.Run), "ack-messages", fmt.Sprintf(`{"seq":%d}`, letter))
			acked = letter
		}
	}
}

// listen reads the lines of the orchestrator. Some agents read slowly.
func (a *actor) listen() {
	defer close(a.over)
	for {
		text := a.player.read()
		if text == "" {
			return
		}
		var line heardLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			a.player.spec.Listener.Output(0, []byte("no JSON\n"))
			return
		}
		a.model.hears(a, &line)
		if a.calm || a.random.below(40) > 0 {
			continue
		}
		select {
		case <-a.left:
			return
		case <-time.After(a.random.within(5 * time.Second)):
		}
	}
}

// TestSimDiskForgets checks the disk of the simulation: a change that was not synced may be lost.
func TestSimDiskForgets(t *testing.T) {
	folder := t.TempDir()
	for _, name := range simFiles {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("old"), 0o600))
	}
	contents := make(map[string]bool)
	for seed := range uint64(64) {
		d := newSimDisk(t, folder, rand.New(rand.NewPCG(seed, 0)), 0, false)
		d.files["events.db"].pending = []change{{0, []byte("new")}, {at: 1}}
		next := filepath.Join(t.TempDir(), "next")
		d.image(t, next, true)
		text, err := os.ReadFile(filepath.Join(next, "events.db"))
		require.NoError(t, err)
		contents[string(text)] = true
	}
	require.Equal(t, map[string]bool{"old": true, "new": true, "o": true, "n": true}, contents)
}
