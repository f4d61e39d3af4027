package task

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// detailFlags are the flags for parts that few tasks have.
type detailFlags struct {
	spec       string
	targetRepo string
	criteria   []string
	project    string
}

func (f *detailFlags) addTo(verb *cobra.Command) {
	set := verb.Flags()
	set.StringVar(&f.spec, "structured-spec", "", "machine-readable spec: a `JSON` object, @FILE or -")
	set.StringVar(&f.targetRepo, "target-repo", "", "`REPO`sitory of the task")
	set.StringArrayVar(&f.criteria, "criterion", nil, "acceptance criterion: `TEXT`, may be repeated")
	set.StringVar(&f.project, "project", "", "project of the task: an `ID` of your choice")
	for _, name := range []string{"target-repo", "criterion", "project"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// readInto adds the flags to the details of a new task.
func (f *detailFlags) readInto(a *cli.App, d *wire.Details) (err error) {
	d.TargetRepo, d.AcceptanceCriteria, d.ProjectID = f.targetRepo, f.criteria, f.project
	d.StructuredSpec, err = cli.GivenDocument(a, "structured-spec", f.spec)
	return err
}

// oneFromStdin returns an error if two flags read stdin. Its arguments alternate between
// names and values.
func oneFromStdin(flags ...string) error {
	first := ""
	for i := 0; i < len(flags); i += 2 {
		switch {
		case flags[i+1] != "-":
		case first != "":
			return cli.UsageError(fmt.Sprintf("--%s and --%s cannot both come from stdin", first, flags[i]), "Give one of them as @FILE")
		default:
			first = flags[i]
		}
	}
	return nil
}

// priorityWords lists the names of priorities, the most urgent first.
var priorityWords = []string{"critical", "high", "normal", "low"}

// priorityOf parses a --priority: a number, or one of the words.
func priorityOf(text string) (wire.Raw, error) {
	if text == "" {
		return nil, nil
	}
	for _, word := range priorityWords {
		if text == word {
			return wire.Raw(object.Quote(text)), nil
		}
	}
	number := wire.Raw(text)
	if !number.IsValid() || number.Kind() != '0' {
		return nil, cli.UsageError(
			fmt.Sprintf("--priority cannot be %q%s", text, cli.DidYouMean(text, priorityWords)),
			"It is a number, of which 1 comes first and 3 is what a task has without one, or "+strings.Join(priorityWords, ", "),
		)
	}
	return number, nil
}
