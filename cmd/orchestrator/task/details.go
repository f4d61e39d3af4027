package task

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
)

// detailFlags are the parts of a task that few tasks have.
type detailFlags struct {
	spec       string
	targetRepo string
	criteria   []string
	project    string
}

func (f *detailFlags) addTo(verb *cobra.Command) {
	set := verb.Flags()
	set.StringVar(&f.spec, "structured-spec", "", "what is to be done, for programs: a `JSON` object, @FILE or -")
	set.StringVar(&f.targetRepo, "target-repo", "", "the `REPO`sitory that it is about")
	set.StringArrayVar(&f.criteria, "criterion", nil, "what must be true of the result: `TEXT`, may be repeated")
	set.StringVar(&f.project, "project", "", "the project that it belongs to: an `ID` of yours")
	for _, name := range []string{"target-repo", "criterion", "project"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// readInto adds what was given to a new task.
func (f *detailFlags) readInto(a *cli.App, d *wire.Details) (err error) {
	d.TargetRepo, d.AcceptanceCriteria, d.ProjectID = f.targetRepo, f.criteria, f.project
	d.StructuredSpec, err = a.GivenDocument("structured-spec", f.spec)
	return err
}

// oneFromStdin refuses a second flag that wants to read stdin: names and values
// by turns.
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

// priorityWords are the names of priorities, the most urgent first.
var priorityWords = []string{"critical", "high", "normal", "low"}

// priorityOf reads a --priority: a number, or one of the words.
func priorityOf(text string) (wire.Raw, error) {
	if text == "" {
		return nil, nil
	}
	for _, word := range priorityWords {
		if text == word {
			return wire.Raw(wire.Quote(text)), nil
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
