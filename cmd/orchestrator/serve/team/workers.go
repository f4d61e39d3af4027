package team

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/workspace"
)

// Workers returns what is configured for the tasks of agents.
func Workers(c *config.Config, base []string) (all []workspace.Agent) {
	for i := range c.Agents {
		a := &c.Agents[i]
		if a.Workspace == nil && len(a.Verify)+len(a.Capabilities.Outputs) == 0 {
			continue
		}
		env := environment(func(ctx context.Context) ([]string, error) { return c.Environ(ctx, a, base) })
		w := workspace.Agent{
			Name: a.Name, Place: a.Place, Dir: a.Dir, Verify: a.Verify, Attempts: c.Scheduler.VerifyAttempts,
			Fill: func(ctx context.Context, spec *child.Spec) (err error) {
				if spec.User, err = child.FindUser(a.User); err != nil {
					return err
				}
				spec.Env, err = env(ctx)
				spec.Wrap, spec.Confine = a.Wrap, Confinement(&a.Confine)
				spec.Limits = limits(a)
				return err
			},
		}
		if o := a.Workspace; o != nil {
			w.Repository, w.Base, w.KeepAll, w.Setup = o.Worktree, o.Base, o.Keep == "all", o.Setup
			w.Branch = func(task string) string {
				id, short := task, workspace.Name(task)
				if !strings.HasPrefix(id, short) {
					id = short // it may have characters that a branch must not have
				}
				return strings.NewReplacer(config.TaskID, id, config.TaskShort, short).Replace(o.Branch)
			}
		}
		for i := range a.Capabilities.Outputs {
			o := &a.Capabilities.Outputs[i]
			if schema, err := o.Compile(); err == nil { // it was compiled before
				if w.Outputs == nil {
					w.Outputs = make(map[string]func([]byte) error)
				}
				w.Outputs[o.Capability] = matches(schema)
			}
		}
		all = append(all, w)
	}
	return all
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
