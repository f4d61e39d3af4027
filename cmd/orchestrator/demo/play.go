package demo

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"path/filepath"
	"time"

	"orchestrator/agents"
)

// member is common to all roles.
type member struct {
	site site
	pace float64
	out  *log.Logger // a whole line at a time
}

var errPart = errors.New("usage: lighthouse architect|developer|reviewer [FLAG…]")

// Play plays a role until it is over. The first word is the role of the process:
//
//	architect    plans the tasks, gives them out, and ends when the site is approved
//	developer    outlines, paints and writes pages, and puts the site together
//	reviewer     reads every page and follows every link
//
// Further words are flags. The roles use no model, so -pace sets how long the work takes: -pace 0.1
// is ten times as fast.
func Play(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return errPart
	}
	m := member{out: log.New(os.Stdout, "", 0)}
	a, d, r := architect{member: &m}, developer{member: &m, exit: os.Exit}, reviewer{member: &m}
	flags := flag.NewFlagSet("lighthouse "+words[0], flag.ExitOnError)
	flags.Float64Var(&m.pace, "pace", 1, "scale of all times; 0.1 is ten times as fast")
	folder := flags.String("out", "", "folder for the site only; default: a folder in $ORC_STATE_DIR")
	var part func(context.Context, *agents.Session) error
	switch words[0] {
	case "architect":
		flags.StringVar(&a.developer, "developer", "writer", "agent that assembles the site, and is preferred for the page about the tides")
		flags.StringVar(&a.reviewer, "reviewer", "reviewer", "agent that reviews the site")
		part = a.play
	case "developer":
		flags.DurationVar(&d.patience, "patience", 5*time.Second, "how long to wait for a person's answer")
		flags.BoolVar(&d.stumbles, "stumble", false, "crash once, in the middle of a page")
		part = d.play
	case "reviewer":
		flags.BoolVar(&r.harsh, "harsh", false, "always reject")
		part = r.play
	default:
		return errPart
	}
	if err := flags.Parse(words[1:]); err != nil {
		return err
	}
	m.site.folder = cmp.Or(*folder, filepath.Join(os.Getenv("ORC_STATE_DIR"), "site"))
	joined, err := agents.Stdio().OpenSession(agents.Identity{})
	if err != nil {
		return err
	}
	return part(ctx, joined)
}

// say prints a line.
func (m *member) say(format string, values ...any) { m.out.Printf(format, values...) }

// take waits as long as a step takes.
func (m *member) take(ctx context.Context, whole time.Duration) error {
	select {
	case <-time.After(time.Duration(float64(whole) * m.pace)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
