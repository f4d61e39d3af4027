package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/hub"
)

// needFlags are the flags for the dependencies of a task.
type needFlags struct {
	needs   []string
	inputs  []string
	related []string
}

func (f *needFlags) addTo(a *cli.App, verb *cobra.Command) {
	set := verb.Flags()
	set.StringSliceVar(&f.needs, "needs", nil, "tasks that must be done first: comma-separated `IDS`; may be repeated")
	set.StringSliceVar(&f.inputs, "input", nil, "tasks that must deliver an input first: comma-separated `ID:CONTRACT`; may be repeated")
	set.StringSliceVar(&f.related, "related", nil, "related tasks, which do not block: comma-separated `IDS`; may be repeated")
	for _, name := range []string{"needs", "input", "related"} {
		_ = verb.RegisterFlagCompletionFunc(name, CompleteTasks(a, true))
	}
}

// read returns the dependencies for the flags, without duplicates.
func (f *needFlags) read(ctx context.Context, find *Finder) ([]hub.Dependency, error) {
	var all []hub.Dependency
	add := func(words []string, kind string) error {
		for _, word := range words {
			d, err := find.dependency(ctx, word, kind)
			if err != nil {
				return err
			}
			same := func(o hub.Dependency) bool { return o.On == d.On && o.Type == d.Type && o.Contract == d.Contract }
			if !slices.ContainsFunc(all, same) {
				all = append(all, d)
			}
		}
		return nil
	}
	if err := add(f.needs, hub.DependsBlocks); err != nil {
		return nil, err
	}
	if err := add(f.inputs, hub.DependsInput); err != nil {
		return nil, err
	}
	return all, add(f.related, hub.DependsRelated)
}

// dependency parses ID, or ID:CONTRACT for an input.
func (f *Finder) dependency(ctx context.Context, word, kind string) (hub.Dependency, error) {
	id, contract, named := strings.Cut(word, ":")
	switch {
	case kind == hub.DependsInput && contract == "":
		return hub.Dependency{}, cli.UsageError(fmt.Sprintf("%q does not say what is wanted of that task", word), "Name it as the task's spec does: --input ID:CONTRACT")
	case kind != hub.DependsInput && named:
		return hub.Dependency{}, cli.UsageError(fmt.Sprintf("%q names a contract, which only an input has", word), "Write the id alone")
	}
	whole, err := f.ID(ctx, id)
	return hub.Dependency{On: whole, Type: kind, Contract: contract}, err
}
