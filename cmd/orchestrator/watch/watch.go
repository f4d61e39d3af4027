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
)

// Orchestrator is what is watched: how it is asked, and what is done by verbs of the
// command line. Each may be called by several at a time, and ends with its context.
type Orchestrator struct {
	// Ask calls an operation. An error says, in words for people, why not.
	Ask func(ctx context.Context, operation string, request any) ([]byte, error)
	// Follow reads a list, line by line, and goes on with what comes.
	Follow func(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error]
	// Answer answers a question and says what came of it.
	Answer func(ctx context.Context, question, answer string) (string, error)
	// Run runs a command line, without the program's name, and returns what it
	// printed, for a screen with so many columns.
	Run func(ctx context.Context, words []string, columns int) (text string, exit int)
	// Tree draws which tasks depend on which: those that have not ended and their
	// neighbours, or all. It also says how many there was no room for.
	Tree func(tasks []wire.Task, all bool) (rows []Row, left int)
}

// Row is a row of a tree of tasks.
type Row struct {
	Task  string // its id
	State wire.TaskState
	Text  string // what stands there, without anything that a terminal would obey
}

// Terminal is where the watch is shown.
type Terminal struct {
	In      io.Reader
	Out     io.Writer
	Environ []string
	Color   bool
}

// redraws is how often the screen is drawn at most, a second.
const redraws = 10

// Run shows an orchestrator until the user leaves or ctx is over, and leaves the
// terminal as it was. status is what was heard of it last.
func Run(ctx context.Context, o Orchestrator, status *wire.Status, t Terminal) error {
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
	if ctx.Err() != nil { // it was to end
		return nil
	}
	return err
}
