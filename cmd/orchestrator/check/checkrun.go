package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/checkup"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// A checkRun is one life of the checked program, with a temporary supervisor.
type checkRun struct {
	*serve.Instance
	ask   *serve.Answerer
	run   *checkup.Run
	terms checkup.Terms
	state string // state directory
	shut  func()
	over  chan struct{} // closed when the supervisor has ended
	heard chan struct{} // closed when all output and events are recorded
	works bool          // it has done its task; valid at the end
}

// beginTrial starts the program. The caller must call end.
func beginTrial(a *cli.App, command []string, terms checkup.Terms, again bool) (*checkRun, error) {
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
	t := &checkRun{Instance: serve.NewTeam(), state: state, terms: terms, over: make(chan struct{}), heard: make(chan struct{})}
	if err := t.Hold(state, a.SocketPath(state), hclog.NewNullLogger()); err != nil {
		_ = os.RemoveAll(state)
		return nil, serve.CannotHold(err, state)
	}
	t.Base = serve.AgentBase(a.Environ)
	if err := t.Supervise(c, supervisor.Options{Name: name}); err != nil {
		t.Release()
		_ = os.RemoveAll(state)
		return nil, err
	}
	t.run = checkup.NewRun(name, c.Protocol.MaxDepth)
	t.ask = &serve.Answerer{App: a, Team: t.Instance}
	follower := t.Super.Listen(true)
	go func() {
		defer close(t.heard)
		t.run.Follow(follower)
	}()
	t.shut = t.Serve()
	go func() {
		defer close(t.over)
		_ = t.Super.Run(context.Background()) // the recorded events tell the result
	}()
	return t, nil
}

// end stops the program, waits for the end of its processes, and reads the audit of its
// requests. When ctx is done, it kills the program.
func (c *checkRun) end(ctx context.Context) error {
	c.run.Ends()
	c.Super.Stop("the check is over")
	unless := context.AfterFunc(ctx, func() { c.Super.Kill("the check was stopped") })
	defer unless()
	<-c.over
	<-c.heard
	c.shut()
	err := c.run.ReadTrail(c.Home.Dir)
	c.Release()
	_ = os.RemoveAll(c.state)
	return err
}

// look returns the state of the program.
func (c *checkRun) look(ctx context.Context) (control.AgentView, bool) {
	status, err := c.Super.Status(ctx)
	if err != nil || len(status.Agents) == 0 {
		return control.AgentView{}, false
	}
	return status.Agents[0], true
}

// started waits until the program runs or could not be started. It reports whether it runs.
func (c *checkRun) started(ctx context.Context) bool {
	return c.run.Await(ctx, func() bool { return c.run.Starts > 0 || c.run.Refused != nil }) && c.run.Refused == nil
}

// give submits a task that only this program can get.
func (c *checkRun) give(ctx context.Context, name string) (id string, err error) {
	answer, err := c.ask.Ask(ctx, "submit-task", map[string]any{
		"type": "check", "name": name, "requiredRole": c.terms.Role,
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
func (c *checkRun) await(ctx context.Context, so func() bool) bool {
	told := 0
	for range maxProgress {
		soon, stop := context.WithTimeout(ctx, c.terms.Wait)
		yes := c.run.Await(soon, func() bool { return so() || c.run.Told > told })
		stop()
		if !yes {
			return false
		}
		done := false
		c.run.Await(ctx, func() bool { done, told = so(), c.run.Told; return true })
		if done {
			return true
		}
	}
	return false
}

// finish waits for the end of a task, or of the program.
func (c *checkRun) finish(ctx context.Context, task string) {
	c.await(ctx, func() bool { return c.run.Over(task) || c.run.Gone() && c.run.Ended })
}

// answering answers the program's questions with any valid answer, until stop is called.
func (c *checkRun) answering(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for answered := 0; c.run.Await(ctx, func() bool { return len(c.run.Asks) > answered }); answered++ {
			c.answerAll(ctx)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (c *checkRun) answerAll(ctx context.Context) {
	questions, _ := c.ask.Open(ctx) // after an error there is nothing to answer
	for _, q := range questions {
		text := "yes"
		if len(q.Options) > 0 {
			text = q.Options[0].Value
		}
		c.ask.Answer(ctx, q, text)
	}
}

// readEvery is the interval between looks at the unread input.
const readEvery = 20 * time.Millisecond

// read waits until the program has read all its input. It reports whether it has.
func (c *checkRun) read(ctx context.Context) bool {
	soon, stop := context.WithTimeout(ctx, c.terms.Wait)
	defer stop()
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		view, ok := c.look(soon)
		switch {
		case !ok, view.State != control.StateRunning && view.State != control.StateStalled:
			return false
		case view.Mailbox.Messages == 0 && view.Mailbox.Unread == 0:
			return true
		}
		select {
		case <-ticker.C:
		case <-soon.Done():
			return false
		}
	}
}
