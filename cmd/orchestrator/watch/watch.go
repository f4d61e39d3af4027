package watch

import (
	"context"
	"io"
	"iter"
	"net/url"
	"slices"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// An Orchestrator is the access of the screen to what it watches. Its functions may be
// called concurrently, and return when their context is done.
type Orchestrator struct {
	// Ask calls an operation. Its errors are text for people.
	Ask func(ctx context.Context, operation string, request any) ([]byte, error)
	// Follow yields the lines of a list and then new ones.
	Follow func(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error]
	// Answer answers a question and returns a sentence on the effect.
	Answer func(ctx context.Context, question, answer string) (string, error)
	// Run runs a command line without the program's name. It returns the output for a
	// screen of that width, and the exit code.
	Run func(ctx context.Context, words []string, columns int) (text string, exit int)
	// Tree returns the rows of the dependency tree: of tasks that have not ended and their
	// neighbors, or of all. It also returns how many tasks were omitted.
	Tree func(tasks []wire.Task, all bool) (rows []Row, left int)
}

// A Row is a row of a tree of tasks.
type Row struct {
	Task  string // its id
	State wire.TaskState
	Text  string // escaped for a terminal
}

// A Terminal is where the watch is shown.
type Terminal struct {
	In      io.Reader
	Out     io.Writer
	Environ []string
	Color   bool
}

// redraws is the maximum number of redraws in a second.
const redraws = 10

// Run shows an orchestrator until the user quits or ctx is done, and then restores the
// terminal. The status is the last known one.
func Run(ctx context.Context, o Orchestrator, status *control.Status, t Terminal) error {
	within, leave := context.WithCancel(ctx)
	f := newFeed(o)
	m := newModel(o, f, within.Done(), t.Color)
	m.hearStatus(statusNews{status: *status})
	f.begin(within)
	profile := colorprofile.Ascii
	if t.Color {
		profile = colorprofile.ANSI
	}
	_, err := tea.NewProgram(m,
		tea.WithContext(within), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithEnvironment(slices.Clone(t.Environ)),
		tea.WithColorProfile(profile), tea.WithFPS(redraws), tea.WithoutSignalHandler(), // the caller handles signals
	).Run()
	leave()
	f.group.Wait()
	if ctx.Err() != nil { // ended by the caller
		return nil
	}
	return err
}
