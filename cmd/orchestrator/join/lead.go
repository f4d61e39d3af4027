package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/agents"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// LeadCommand returns the lead command.
func LeadCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "lead",
		Short: "Lead a session: have each task done and reviewed",
		Long: `Works as the architect of a session. It gives each of its tasks to a developer of the
session and then to a reviewer, until a reviewer approves it. Then the task is complete,
with the summary, the changed files and the verdict. With several developers or reviewers,
the one with the fewest tasks is next. If a member does not take its part, for example
because it does not run, a person is asked, and the task is tried again after the answer.

It has the rights of any agent, and follows the rules of its session: max_iterations,
on_max and so on.`,
		Example: `  # The file starts orchestrator lead as an agent:
  agent "lead" {
    command = ["orchestrator", "lead"]
    capabilities {
      max_concurrent_tasks = 4
    }
  }`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return lead(a) },
	}
}

// A leader is the architect of one session.
type leader struct {
	conn      *agents.Conn
	ctx       context.Context // of the lead
	architect *agents.Architect
	session   string

	mu      sync.Mutex
	busy    map[string]int    // tasks of each member
	task    map[string]string // of the leader, by the task in the session
	cancel  map[string]context.CancelFunc
	working sync.WaitGroup
}

func lead(a *cli.App) error {
	name, in := a.Getenv("ORC_AGENT_ID"), a.Getenv("ORC_SESSION")
	const hint = `Write it into the file: agent "lead" { command = ["orchestrator", "lead"] }     and into the session: member "lead" { type = "architect" }`
	if name == "" || in == "" {
		return cli.UsageError("only an agent that is the architect of a session can lead it", hint)
	}
	ctx, stop := a.Context()
	defer stop()
	conn := agents.Connect(a.Stdin, a.Stdout)
	s, err := conn.OpenSession(agents.Identity{Agent: name, Type: session.AgentArchitect, Session: in})
	if err != nil {
		return err
	}
	l := &leader{conn: conn, session: in, busy: map[string]int{}, task: map[string]string{}, cancel: map[string]context.CancelFunc{}}
	begun := make(chan struct{})
	err = s.LeadAs(ctx, agents.Lead{
		Do: func(ctx context.Context, architect *agents.Architect) error {
			l.ctx, l.architect = ctx, architect
			close(begun)
			<-ctx.Done()
			l.working.Wait()
			return context.Cause(ctx)
		},
		Hear: l.heard,
		News: func(n agents.Notice) {
			<-begun
			l.noticed(n)
		},
	})
	switch {
	case errors.Is(err, agents.ErrShutdown):
		return nil
	case errors.Is(err, io.EOF):
		return &cli.Failure{
			Exit: cli.ExitNotRunning, Code: cli.CodeNotRunning,
			Message: "no orchestrator on stdin: it has ended, or it did not start this command", Hint: hint,
		}
	}
	return err
}

// noticed begins a task that the leader was given, and ends one that was cancelled. A run that
// follows another is notified of its tasks again.
func (l *leader) noticed(n agents.Notice) {
	var about wire.TaskNotice
	if n.Read(&about) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	cancel, known := l.cancel[about.TaskID]
	switch {
	case n.Name == agents.TaskCancelled && known:
		cancel()
	case n.Name == agents.TaskAssigned && !known:
		ctx, cancel := context.WithCancel(l.ctx)
		l.cancel[about.TaskID] = cancel
		l.working.Go(func() {
			defer cancel()
			l.deliver(ctx, about.TaskID)
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.cancel, about.TaskID)
		})
	}
}

// deliver has a task done and reviewed, and reports its end.
func (l *leader) deliver(ctx context.Context, id string) {
	t, err := l.conn.GetTask(ctx, id)
	if err != nil {
		return // the leader no longer has it
	}
	_, _ = l.conn.StartTask(ctx, id) // an earlier run may have started it
	d, err := l.order(ctx, &t)
	for notTaken(err) && l.ask(ctx, t.ID, err) == nil {
		d, err = l.order(ctx, &t)
	}
	switch {
	case errors.Is(context.Cause(ctx), agents.ErrShutdown):
	case ctx.Err() != nil:
		l.abort(d.TaskID)
	case err != nil:
		_, _ = l.conn.FailTask(context.WithoutCancel(ctx), t.ID, err.Error())
	default:
		if !l.awaitMerge(ctx, t.ID, d.TaskID) {
			return // the next run goes on
		}
		_, _ = l.conn.CompleteTask(context.WithoutCancel(ctx), t.ID, map[string]any{
			"summary": d.Completion.Summary, "files": d.Completion.Changes.Touched(), "verdict": d.Review.Verdict,
			"review": d.Review.Summary, "reviews": d.Reviews,
		})
	}
}

// awaitMerge waits until the merge queue, if any, has merged the branch of approved work:
// dependents of the task begin with that work. If the queue cannot merge it, a person is asked.
// awaitMerge reports false if the leader stops.
func (l *leader) awaitMerge(ctx context.Context, task, work string) bool {
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for asked := false; ; {
		t, err := l.conn.GetTask(ctx, work)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil || t.Details == nil || !t.Workspace.Holds():
			return true
		}
		if t.Workspace.Merge == hub.MergeRefused && !asked {
			question := fmt.Sprintf("The work is approved, but its branch %s could not be merged. Why: orchestrator why %s\nTo complete the task, merge it: orchestrator task merge %[2]s",
				t.Workspace.Branch, wire.ShortID(work))
			_, err := l.conn.RequestHelp(ctx, task, question, nil)
			asked = err == nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}

// notTaken reports whether the developer or the reviewer has not taken a message, such as one that does not run.
func notTaken(err error) bool {
	lost, ok := errors.AsType[*agents.Undelivered](err)
	return ok && lost.Code == agents.Timeout
}

// ask waits until a person wants a task to be tried again.
func (l *leader) ask(ctx context.Context, task string, why error) error {
	lost, _ := errors.AsType[*agents.Undelivered](why)
	question := fmt.Sprintf("%s.\nSee to it that it runs, and answer anything: then it is tried again. To end the task instead: orchestrator task fail %s",
		lost.Message, wire.ShortID(task))
	if _, err := l.conn.RequestHelp(ctx, task, question, nil); err != nil {
		return err
	}
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if t, err := l.conn.GetTask(ctx, task); err != nil || t.State != wire.TaskNeedsHuman {
			return err
		}
	}
}

// abort aborts the task of a session after its outer task was cancelled.
func (l *leader) abort(id string) {
	if id == "" {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), requestTimeout)
	defer stop()
	_ = l.architect.Task(id).Abort(ctx, "it was cancelled", false)
}

// order chooses the members for a task, and has it delivered. A task that waits for a person is
// waited for.
func (l *leader) order(ctx context.Context, t *wire.Task) (agents.Delivery, error) {
	id, developer, err := l.workOn(ctx, t.ID)
	if err != nil {
		return agents.Delivery{}, err
	}
	running := developer != ""
	developer, reviewer, err := l.choose(ctx, developer)
	if err != nil {
		return agents.Delivery{}, err
	}
	defer l.free(developer, reviewer)
	o := agents.Order{Developer: developer, Reviewer: reviewer, Assignment: agents.Assignment{Priority: session.PriorityMedium}}
	work := &o.Assignment.Task
	work.TaskID, work.Description, work.AcceptanceCriteria = id, description(t), criteria(t)
	work.Constraints.Scope = []string{"**"}
	o.Review.Context.TaskDescription, o.Review.Context.AcceptanceCriteria = work.Description, work.AcceptanceCriteria
	l.mu.Lock()
	l.task[id] = t.ID
	l.mu.Unlock()
	var d agents.Delivery
	if running {
		d, err = l.architect.Task(id).Resume(ctx, o)
	} else {
		d, err = l.architect.Deliver(ctx, o)
	}
	d.TaskID = id
	var waits *agents.Ended
	if errors.As(err, &waits) && waits.State == wire.TaskNeedsHuman {
		err = l.await(ctx, d.TaskID)
	}
	return d, err
}

// workOn returns the id of the task in the session that a task is done by. If an earlier run of the
// leader has assigned it, and it has not failed, workOn also returns its developer.
func (l *leader) workOn(ctx context.Context, task string) (id, developer string, err error) {
	for n := 1; ; n++ {
		id = fmt.Sprintf("work-%s-%d", wire.ShortID(task), n)
		var answer wire.SessionView
		if err := l.conn.Ask(ctx, "get-session", wire.GetSession{SessionID: l.session, TaskID: id, Limit: 1}, &answer); err != nil {
			return "", "", err
		}
		i := slices.IndexFunc(answer.Tasks, func(t wire.SessionTask) bool { return t.TaskID == id })
		switch {
		case i < 0:
			return id, "", nil
		case answer.Tasks[i].Phase != session.PhaseOver, answer.Tasks[i].State == wire.TaskDone:
			return id, answer.Tasks[i].Developer, nil
		}
	}
}

// pollInterval is how often a task that waits for a person is looked at.
const pollInterval = 2 * time.Second

// await waits for the end of a task about which a person decides.
func (l *leader) await(ctx context.Context, id string) error {
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		t, err := l.conn.GetTask(ctx, id)
		switch {
		case err != nil:
			return err
		case t.State == wire.TaskDone:
			return nil
		case t.State.Final():
			return fmt.Errorf("a person has decided: the task is %s", t.State)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// description returns the text of a task, for the developer and the reviewer.
func description(t *wire.Task) string {
	parts := []string{t.Name, t.Description}
	if t.Details != nil && len(t.StructuredSpec) > 0 {
		parts = append(parts, "Specification:\n"+string(t.StructuredSpec))
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

func criteria(t *wire.Task) []string {
	if t.Details == nil {
		return []string{}
	}
	return append([]string{}, t.AcceptanceCriteria...)
}

// choose returns the developer and the reviewer that have the fewest tasks, unless the developer is
// given. Without a reviewer in the session, the second is "".
func (l *leader) choose(ctx context.Context, given string) (developer, reviewer string, err error) {
	var answer wire.SessionView
	if err := l.conn.Ask(ctx, "get-session", wire.GetSession{SessionID: l.session, Limit: 1}, &answer); err != nil {
		return "", "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	least := func(kind string) (name string) {
		for _, m := range answer.Members {
			if m.AgentType == kind && (name == "" || l.busy[m.AgentID] < l.busy[name]) {
				name = m.AgentID
			}
		}
		l.busy[name]++
		return name
	}
	if developer = given; given != "" {
		l.busy[given]++
	} else if developer = least(session.AgentDeveloper); developer == "" {
		return "", "", fmt.Errorf("session %s has no developer", l.session)
	}
	return developer, least(session.AgentReviewer), nil
}

func (l *leader) free(members ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range members {
		l.busy[m]--
	}
}

// heard reports the progress of the work as progress of the leader's task.
func (l *leader) heard(said *agents.Said) {
	var words, id string
	switch body := said.Body.(type) {
	case *session.Progress:
		words, id = body.Step, body.TaskID
	case *session.ReviewResult:
		words, id = body.Verdict+": "+body.Summary, body.TaskID
		if body.Verdict == session.VerdictApproved { // its task ends
			return
		}
	default:
		return
	}
	l.mu.Lock()
	outer := l.task[id]
	l.mu.Unlock()
	if outer == "" {
		return
	}
	words = said.From.AgentID + ": " + words
	go func() { // it must not block the messages behind it
		ctx, stop := context.WithTimeout(context.Background(), requestTimeout)
		defer stop()
		_ = l.conn.Ask(ctx, "report-progress", wire.ReportProgress{TaskID: outer, Message: words}, nil)
	}()
}
