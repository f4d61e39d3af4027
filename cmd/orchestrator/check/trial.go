package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// A trial is one life of the checked program, with a temporary supervisor.
type trial struct {
	*hub.Hub
	ask   *serve.Answerer
	run   *run
	terms requirements
	state string        // state directory
	over  chan struct{} // closed when the supervisor has ended
	heard chan struct{} // closed when all output and events are recorded
	works bool          // it has done its task; valid at the end
}

// beginTrial starts the program. The caller must call end.
func beginTrial(a *cli.App, command []string, terms requirements, again bool) (*trial, error) {
	state, err := os.MkdirTemp("", "orchestrator-check-")
	if err != nil {
		return nil, fmt.Errorf("making a place for its state: %w", err)
	}
	name := strings.TrimSuffix(filepath.Base(command[0]), filepath.Ext(command[0]))
	c := config.Alone(a.Dir, state, name, command)
	agent := &c.Agents[0]
	agent.Role = terms.Role
	agent.Stop.CloseStdin, agent.Stop.Unspoken, agent.Stop.Grace = terms.Grace, terms.Grace, terms.Grace
	c.Orchestrator.Shutdown = 2*terms.Grace + 5*time.Second
	c.Store.Kind = "memory" // the state directory is temporary
	if again {
		agent.OnExit = "requeue"
		agent.Restart.Policy, agent.Restart.Delay = "always", 50*time.Millisecond
	}
	h := serve.NewHub(a, new(hub.Place), hub.NewFile(), c, hclog.NewNullLogger())
	t := &trial{Hub: h, state: state, terms: terms, over: make(chan struct{}), heard: make(chan struct{})}
	ctx := context.Background()
	if err := t.Hold(ctx); err != nil {
		_ = os.RemoveAll(state)
		return nil, serve.CannotHold(err, state)
	}
	t.File.Base = hub.AgentBase(a.Environ)
	if err := t.addWorkspace(agent); err != nil {
		t.Stop()
		_ = os.RemoveAll(state)
		return nil, err
	}
	agent.InheritEnv = config.InheritEnv{All: terms.InheritEnv, Ordinary: !terms.InheritEnv}
	if err := t.Supervise(ctx, supervisor.Options{Name: name}); err != nil {
		t.Stop()
		_ = os.RemoveAll(state)
		return nil, serve.CannotRecord(err, c.Store)
	}
	t.run = newRun(name, c.Protocol.MaxDepth)
	t.ask = &serve.Answerer{App: a, Team: h}
	follower := t.Super.Listen(true)
	go func() {
		defer close(t.heard)
		t.run.Follow(follower)
	}()
	t.Serve()
	go func() {
		defer close(t.over)
		_ = t.Super.Run(ctx) // the recorded events tell the result
	}()
	return t, nil
}

// addWorkspace gives the tasks of an agent workspaces in a clone of the repository, below the state directory.
func (t *trial) addWorkspace(agent *config.Agent) error {
	if t.terms.Workspace == "" {
		return nil
	}
	clone := filepath.Join(t.state, "repository")
	argv := []string{"git", "clone", "-q", "--shared", "--", t.terms.Workspace, clone}
	if _, err := t.Place.Run(context.Background(), argv, t.state, t.File.Base); err != nil {
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("--workspace %s: git cannot clone it: %v", t.terms.Workspace, err),
			Because: []string{"Nothing was checked."}, Hint: "Name the top folder of a git repository with a commit",
		}
	}
	agent.Workspace = &config.Workspace{Worktree: clone, Branch: "task/" + config.TaskShort, Keep: "all"}
	return nil
}

// end stops the program, waits for the end of its processes, and reads the audit of its
// requests. When ctx is done, it kills the program.
func (t *trial) end(ctx context.Context) error {
	t.run.Ends()
	t.Super.Stop("the check is over")
	unless := context.AfterFunc(ctx, func() { t.Super.Kill("the check was stopped") })
	defer unless()
	<-t.over
	<-t.heard
	t.Shut()
	err := t.run.ReadTrail(t.Place.Home.Dir)
	t.Stop()
	_ = os.RemoveAll(t.state)
	return err
}

// look returns the state of the program.
func (t *trial) look(ctx context.Context) (control.AgentView, bool) {
	status, err := t.Super.Status(ctx)
	if err != nil || len(status.Agents) == 0 {
		return control.AgentView{}, false
	}
	return status.Agents[0], true
}

// started waits until the program runs or could not be started. It reports whether it runs.
func (t *trial) started(ctx context.Context) bool {
	return t.run.Await(ctx, func() bool { return t.run.Starts > 0 || t.run.Refused != nil }) && t.run.Refused == nil
}

// give submits a task that only this program can get.
func (t *trial) give(ctx context.Context, name string) (id string, err error) {
	answer, err := t.ask.Ask(ctx, "submit-task", map[string]any{
		"type": "check", "name": name, "requiredRole": t.terms.Role,
		"description": "A task of orchestrator check: say hello, and that it is done.",
	})
	if err != nil {
		return "", err
	}
	text, err := object.Encode(answer)
	if err != nil {
		return "", err
	}
	var reply struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	err = object.DecodeOwn(text, &reply)
	return reply.Task.ID, err
}

// maxProgress is how often progress restarts a wait.
const maxProgress = 10

// await waits until so returns true. Each progress message restarts the wait, up to
// maxProgress times.
func (t *trial) await(ctx context.Context, so func() bool) bool {
	told := 0
	for range maxProgress {
		soon, stop := context.WithTimeout(ctx, t.terms.Wait)
		yes := t.run.Await(soon, func() bool { return so() || t.run.Told > told })
		stop()
		if !yes {
			return false
		}
		done := false
		t.run.Await(ctx, func() bool { done, told = so(), t.run.Told; return true })
		if done {
			return true
		}
	}
	return false
}

// finish waits for the end of a task, or of the program.
func (t *trial) finish(ctx context.Context, task string) {
	t.await(ctx, func() bool { return t.run.Over(task) || t.run.Gone() && t.run.Ended })
}

// answering answers the program's questions with any valid answer, until stop is called.
func (t *trial) answering(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for answered := 0; t.run.Await(ctx, func() bool { return len(t.run.Asks) > answered }); answered++ {
			t.answerAll(ctx)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (t *trial) answerAll(ctx context.Context) {
	questions, _ := t.ask.Open(ctx) // after an error no question is answered
	for _, q := range questions {
		text := "yes"
		if len(q.Options) > 0 {
			text = q.Options[0].Value
		}
		t.ask.Answer(ctx, q, text)
	}
}

// readEvery is the interval between looks at the unread input.
const readEvery = 20 * time.Millisecond

// read waits until the program has read all its input, as long as it reads some of it within the
// patience of the check: a shell reads a long line byte by byte. It reports whether it has.
func (t *trial) read(ctx context.Context) bool {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	last, since := int64(-1), time.Now()
	for time.Since(since) < t.terms.Wait {
		view, ok := t.look(ctx)
		left := view.Mailbox.Bytes + view.Mailbox.Unread
		switch {
		case !ok, view.State != control.StateRunning && view.State != control.StateStalled:
			return false
		case view.Mailbox.Messages == 0 && view.Mailbox.Unread == 0:
			return true
		case left != last: // the pipe is refilled as it reads
			last, since = left, time.Now()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// steps tests the program with each step, in as few lives as possible.
func (c *checking) steps(ctx context.Context, works bool, first Findings) error {
	if works {
		had := len(c.found)
		if _, err := c.life(ctx, []step{stepAgain}, true, first); err != nil || ctx.Err() != nil {
			return err
		}
		works = c.found[had:].Count(Fail) == 0
	}
	steps := []step{stepUnknown, stepLong}
	if works {
		steps = append(steps, stepCancelled)
	}
	if c.full {
		steps = append(steps, stepPieces)
	}
	if c.full && works {
		steps = append(steps, stepMany)
	}
	for len(steps) > 0 && ctx.Err() == nil {
		most := len(steps)
		if !works { // a crash is noticed only at the end of a life
			most = 1
		}
		taken, err := c.life(ctx, steps[:most], works, first)
		if err != nil {
			return err
		}
		steps = steps[taken:]
	}
	if c.full && works && ctx.Err() == nil {
		return c.killed(ctx)
	}
	return nil
}

// life makes steps until the program does not continue, and returns their number.
func (c *checking) life(ctx context.Context, steps []step, works bool, first Findings) (taken int, err error) {
	t, err := beginTrial(c.app, c.command, c.terms, false)
	if err != nil {
		return 0, err
	}
	enough := t.answering(ctx)
	outcome, last := wentOn, step{}
	if t.started(ctx) {
		for taken < len(steps) && outcome == wentOn && ctx.Err() == nil {
			if taken > 0 {
				c.found = append(c.found, judgeStep(last, outcome, t.run, works))
			}
			last = steps[taken]
			outcome = t.take(ctx, last, works)
			taken++
		}
	}
	enough()
	if err := t.end(ctx); err != nil || ctx.Err() != nil {
		return taken, err
	}
	later := t.run.judgeLater(c.terms)
	news := first.News(later)
	crashed := !works && outcome == wentOn && t.run.Crashed()
	if crashed && len(news) > 0 { // the input that it read caused the crash
		outcome = died
	}
	if taken > 0 && (!crashed || outcome == died) {
		c.found = append(c.found, judgeStep(last, outcome, t.run, works))
	}
	if outcome == wentOn {
		c.found = append(c.found, news...)
	}
	return max(taken, 1), nil
}

// take makes one step and returns its outcome.
func (t *trial) take(ctx context.Context, step step, works bool) outcome {
	if err := t.do(ctx, step); err != nil {
		return t.fallen()
	}
	if works {
		return t.next(ctx)
	}
	if !t.read(ctx) {
		if o := t.fallen(); o == died {
			return o
		}
		return unread
	}
	return wentOn
}

// next gives the program a task and returns whether it does it.
func (t *trial) next(ctx context.Context) outcome {
	task, err := t.give(ctx, "Say hello again")
	if err == nil {
		t.finish(ctx, task)
	}
	t.clear(ctx, task)
	answered := false
	t.run.Await(ctx, func() bool {
		answered = err == nil && t.run.Over(task) && !t.run.Tasks[task].ByExit
		return true
	})
	if answered {
		return wentOn
	}
	return t.fallen()
}

// heardBy is how long clear waits for the end of the program.
const heardBy = 2 * time.Second

// clear waits for the end of the program if that may have ended the task.
func (t *trial) clear(ctx context.Context, task string) {
	ctx, stop := context.WithTimeout(ctx, heardBy)
	defer stop()
	t.run.Await(ctx, func() bool { return !t.run.Unclear(task) || t.run.Gone() })
}

// fallen returns the outcome for a program that did not continue.
func (t *trial) fallen() (o outcome) {
	o = fell
	t.run.Await(context.Background(), func() bool {
		if t.run.Gone() {
			o = died
		}
		return true
	})
	return o
}

// do performs a step.
func (t *trial) do(ctx context.Context, step step) error {
	switch step.Check {
	case stepAgain.Check:
		task, err := t.give(ctx, "Say hello once")
		t.finish(ctx, task)
		return err
	case stepUnknown.Check:
		return t.tell(ctx, strangeNotice("blue"))
	case stepLong.Check:
		err := t.tell(ctx, strangeNotice(strings.Repeat("blue ", 1<<20/len("blue "))))
		t.read(ctx)
		return err
	case stepPieces.Check:
		line := strangeNotice("blue and then grey")
		for _, piece := range []string{line[:1], line[1:40], line[40 : len(line)-1], line[len(line)-1:]} {
			if err := t.tell(ctx, piece); err != nil {
				return err
			}
			t.read(ctx)
		}
		return nil
	case stepCancelled.Check:
		return t.cancelled(ctx)
	case stepMany.Check:
		return t.many(ctx)
	}
	return fmt.Errorf("unknown step %q", step.Check)
}

func (t *trial) tell(ctx context.Context, text string) error {
	return t.Super.TellWaiting(ctx, t.run.Agent, []byte(text))
}

// strangeNotice returns a notification of an unknown type.
func strangeNotice(sky string) string {
	return fmt.Sprintf(`{"type":"notify:weather","id":%q,"timestamp":"2026-01-01T00:00:00.000Z","payload":{"sky":%q}}`+"\n", uuid.NewString(), sky)
}

// cancelled gives the program a task, cancels it, and gives it another one. When that is
// done, the program has received the messages about the first.
func (t *trial) cancelled(ctx context.Context) error {
	err := t.takeAway(ctx)
	t.signal(syscall.SIGCONT)
	// A process that the program was making when it was stopped may have stayed stopped.
	again := time.AfterFunc(100*time.Millisecond, func() { t.signal(syscall.SIGCONT) })
	defer again.Stop()
	if err != nil {
		return err
	}
	task, err := t.give(ctx, "Say hello after all")
	t.finish(ctx, task)
	t.finish(ctx, task) // it may have worked on the cancelled one first
	return err
}

// takenAway is the number of tasks that takeAway gives at most.
const takenAway = 5

// takeAway cancels a task while the program is stopped. The program cannot have done the
// task by then, and its later messages about it are rejected. A thread that is not stopped
// yet may do a task; then takeAway gives another one.
func (t *trial) takeAway(ctx context.Context) error {
	t.signal(syscall.SIGSTOP)
	for try := 1; ; try++ {
		task, err := t.give(ctx, "Say hello, or rather not")
		if err != nil {
			return err
		}
		t.await(ctx, func() bool { return t.run.Begun(task) || t.run.Over(task) })
		_, err = t.ask.Ask(ctx, "cancel-task", wire.CancelTask{TaskID: task, Reason: "the check wants to see this"})
		if err == nil || try == takenAway || !t.await(ctx, func() bool { return t.run.Over(task) }) {
			return err
		}
	}
}

// signal sends a signal to the process group of the program.
func (t *trial) signal(sig syscall.Signal) {
	t.run.Await(context.Background(), func() bool {
		if !t.run.Gone() && t.run.PID > 0 {
			_ = syscall.Kill(-t.run.PID, sig) // it may have exited
		}
		return true
	})
}

// many gives ten tasks and waits for their ends.
func (t *trial) many(ctx context.Context) error {
	var tasks []string
	for i := range 10 {
		task, err := t.give(ctx, fmt.Sprintf("Say hello %d", i+1))
		if err != nil {
			return err
		}
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		t.finish(ctx, task)
	}
	return nil
}

// killed kills the program while it has a task, and checks whether it does that task after
// a restart. The program is stopped first, so that it cannot complete the task.
func (c *checking) killed(ctx context.Context) error {
	t, err := beginTrial(c.app, c.command, c.terms, true)
	if err != nil {
		return err
	}
	outcome := fell
	if t.started(ctx) {
		t.signal(syscall.SIGSTOP)
		task, err := t.give(ctx, "Say hello, twice started")
		if err == nil && t.await(ctx, func() bool { return t.run.Begun(task) }) {
			t.signal(syscall.SIGKILL)
			t.await(ctx, func() bool { return t.run.Starts > 1 || t.run.Over(task) })
			t.finish(ctx, task)
		}
		t.run.Await(ctx, func() bool {
			if t.run.Done(task) {
				outcome = wentOn
			}
			return true
		})
	}
	if err := t.end(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	c.found = append(c.found, judgeStep(stepKilled, outcome, t.run, true))
	return nil
}
