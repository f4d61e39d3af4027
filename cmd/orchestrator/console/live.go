package console

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/live"
	"orchestrator/cmd/orchestrator/term"
)

const (
	// lookAgain is the minimum time between two reads of the team's state.
	lookAgain = 200 * time.Millisecond
	// maxAtOnce is the maximum number of tasks, and of questions, that are read. No
	// terminal shows more.
	maxAtOnce = 40
)

// liveRows are the rows at the bottom of the terminal of up: the work of every agent, and
// open questions. They read the state of the team after events.
type liveRows struct {
	region *live.Region
	beside *beside
	team   Team
	paint  term.Paint
	news   chan struct{}
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// hasRows reports whether a console may keep rows at the bottom of the terminal.
func hasRows(a *cli.App, json bool) bool {
	return term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stdout) && !a.Flags.Quiet && !a.Flags.JSON &&
		!json && a.Getenv("TERM") != "dumb"
}

// openRows opens the rows at the bottom of the terminal, or returns nil without a terminal.
// Its goroutines end with close.
func openRows(a *cli.App, o Options) *liveRows {
	in, isFile := a.Stdin.(*os.File)
	out, isToo := a.Stdout.(*os.File)
	if !isFile || !isToo || !hasRows(a, o.JSON) {
		return nil
	}
	region, err := live.Open(in, out)
	if err != nil {
		o.Log.Warn("the bottom of the terminal shows nothing", "error", err)
		return nil
	}
	p := &liveRows{region: region, team: o.Team, paint: a.Paint(a.Stdout), news: make(chan struct{}, 1)}
	if p.beside, _ = a.Stderr.(*beside); p.beside != nil {
		p.beside.region.Store(region)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.group.Go(func() { p.follow(ctx) })
	a.AtEnd(p.close)
	return p
}

// close erases the rows and restores the terminal. It has no effect on nil.
func (l *liveRows) close() {
	if l == nil {
		return
	}
	l.cancel()
	taken := l.region.Close()
	if l.beside != nil {
		l.beside.lost.Store(!taken)
		l.beside.region.Store(nil)
	}
	l.group.Wait()
}

// happened notes that the state may have changed. It never blocks.
func (l *liveRows) happened() {
	if l == nil {
		return
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// follow reads the state of the team after events, at most once each lookAgain.
func (l *liveRows) follow(ctx context.Context) {
	for {
		if scene, err := l.team.Scene(ctx, maxAtOnce, maxAtOnce); err == nil {
			l.show(rowsData{Dashboard: scene, at: time.Now(), paint: l.paint})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
		}
		select {
		case <-ctx.Done():
			return
		case <-l.news:
		}
	}
}

func (l *liveRows) show(v rowsData) {
	l.region.Show(live.Picture{
		Rows:  func(columns, most int) []string { return v.rows(columns, most, time.Now()) },
		Asked: len(v.Questions) > 0,
		Hint:  v.hint(),
	})
}

// beside is stderr on the terminal with the rows. It writes above them.
type beside struct {
	*os.File
	region atomic.Pointer[live.Region]
	lost   atomic.Bool // the terminal accepts nothing, and a write would block forever
}

func (b *beside) Write(text []byte) (int, error) {
	if b.lost.Load() {
		return len(text), nil
	}
	if region := b.region.Load(); region != nil {
		return region.Write(text)
	}
	return b.File.Write(text)
}

// Prepare makes stderr write above the rows of a console, if it will have rows and stdout is
// the same terminal. It is called before the first write to stderr.
func Prepare(a *cli.App, json bool) {
	if !hasRows(a, json) {
		return
	}
	out, isFile := a.Stdout.(*os.File)
	err, isToo := a.Stderr.(*os.File)
	if !isFile || !isToo || !term.IsTerminal(err) {
		return
	}
	one, failed := out.Stat()
	other, failedToo := err.Stat()
	if failed == nil && failedToo == nil && os.SameFile(one, other) {
		a.RedirectStderr(&beside{File: err})
	}
}
