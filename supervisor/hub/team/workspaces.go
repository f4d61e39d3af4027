package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/workspace"
)

// Workspaces returns the configuration of workspaces and of the verification of tasks.
func Workspaces(c *config.Config, base []string) workspace.Team {
	t := workspace.Team{Queue: c.Merge.Queue, Agents: make(map[string]*workspace.Agent), Sessions: make(map[string]*workspace.Group), Blocks: make(map[string]*workspace.Group)}
	for i := range c.Agents {
		a := worker(c, &c.Agents[i], base)
		t.Agents[a.Name], t.Verifies = a, t.Verifies || len(a.Verify)+len(a.Outputs) > 0 || a.Repository != ""
	}
	for i := range c.Sessions {
		s := &c.Sessions[i]
		g := group("session "+s.ID, c.Place("session."+s.ID), &s.Work)
		for _, m := range s.Members {
			if t.Agents[m.AgentID] != nil && (g.Agent == "" || m.AgentType == "developer") {
				g.Agent = m.AgentID
			}
		}
		t.Sessions[s.ID], t.Shared, t.Verifies = g, t.Shared || g.Repository != "", t.Verifies || g.Repository != ""
	}
	for i := range c.Tasks {
		b := &c.Tasks[i]
		g := group("task "+b.Name, c.Place("task."+b.Name), &b.Work)
		for i := range c.Agents {
			if a := &c.Agents[i]; g.Agent == "" && (a.Name == b.Agent || b.Agent == "" && a.Role == cmp.Or(b.Role, a.Role)) {
				g.Agent = a.Name
			}
		}
		t.Blocks[b.Name], t.Shared, t.Verifies = g, t.Shared || g.Repository != "", t.Verifies || g.Repository != ""
	}
	return t
}

// group returns the configuration of a session or a task block.
func group(name, place string, w *config.Work) *workspace.Group {
	return &workspace.Group{Name: name, Place: place, Trees: trees(w.Workspace), Verify: w.Verify}
}

// worker returns the configuration for the tasks of an agent.
func worker(c *config.Config, a *config.Agent, base []string) *workspace.Agent {
	env := environment(func(ctx context.Context) ([]string, error) { return c.VerifyEnviron(ctx, a, base) })
	w := &workspace.Agent{
		Name: a.Name, Role: a.Role, Place: a.Place, Placed: a.Placement != nil, Dir: a.Dir, Wrapped: len(a.Wrap) > 0, Trees: trees(a.Workspace), Verify: a.Verify, Attempts: c.Scheduler.VerifyAttempts,
		Fill: func(ctx context.Context, spec *child.Spec) (err error) {
			if spec.User, err = child.FindUser(a.User); err != nil {
				return err
			}
			spec.Env, err = env(ctx)
			spec.Wrap, spec.Confine = a.Wrap, Confinement(c, a)
			spec.Limits = a.Limits
			return err
		},
	}
	for i := range a.Outputs {
		o := &a.Outputs[i]
		if schema, err := o.Compile(); err == nil { // it was compiled before
			if w.Outputs == nil {
				w.Outputs = make(map[string]func([]byte) error)
			}
			w.Outputs[o.Capability] = matches(schema)
		}
	}
	return w
}

// trees returns where the worktrees of tasks are.
func trees(o *config.Workspace) (t workspace.Trees) {
	if o == nil {
		return t
	}
	top, err := filepath.EvalSymlinks(o.Worktree) // below a link, package workspace would not recognize its worktrees
	if err != nil {
		top = o.Worktree // it is checked later
	}
	return workspace.Trees{
		Repository: top, Base: o.Base, KeepAll: o.Keep == "all", Setup: o.Setup, Filters: o.Filters,
		Branch: func(task string) string {
			id, short := task, workspace.Name(task)
			if !strings.HasPrefix(id, short) {
				id = short // it may have characters that a branch must not have
			}
			return strings.NewReplacer(config.TaskID, id, config.TaskShort, short).Replace(o.Branch)
		},
	}
}

// environment returns a function that calls read at most once in 10 seconds. Git runs several times for one task, and
// read runs the commands of secrets.
func environment(read func(context.Context) ([]string, error)) func(context.Context) ([]string, error) {
	const fresh = 10 * time.Second
	var mu sync.Mutex
	var last []string
	var at time.Time
	return func(ctx context.Context) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) > fresh {
			env, err := read(ctx)
			if err != nil {
				return nil, err
			}
			last, at = env, time.Now()
		}
		return slices.Clone(last), nil
	}
}

// matches returns a function that returns why a document does not match a schema, with the place in the schema.
func matches(schema *jsonschema.Resolved) func(document []byte) error {
	return func(document []byte) error {
		var value any
		if err := json.Unmarshal(document, &value); err != nil {
			return err
		}
		err := schema.Validate(value)
		if err == nil {
			return nil
		}
		places := strings.Split(err.Error(), "validating ") // the last one is the innermost
		return errors.New(places[len(places)-1])
	}
}
