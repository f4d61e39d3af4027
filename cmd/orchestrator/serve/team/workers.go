package team

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

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

// matches returns a function that returns why a document does not match a schema, with the places in it.
func matches(schema *jsonschema.Schema) func(document []byte) error {
	return func(document []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return err
		}
		wrong, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(value))
		if !ok {
			return nil
		}
		const maxReasons = 5
		var reasons []string
		for _, unit := range wrong.BasicOutput().Errors {
			if unit.Error != nil && len(reasons) < maxReasons {
				reasons = append(reasons, fmt.Sprintf("%s: %s", cmp.Or(unit.InstanceLocation, "/"), unit.Error))
			}
		}
		return errors.New(strings.Join(reasons, "; "))
	}
}
