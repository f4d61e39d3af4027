package check

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"orchestrator/cmd/orchestrator/checkup"
	"orchestrator/wire"
)

// steps tests the program with each step, in as few lives as possible.
func (c *checking) steps(ctx context.Context, works bool, first checkup.Findings) error {
	if works {
		had := len(c.found)
		if _, err := c.life(ctx, []checkup.Step{checkup.Again}, true, first); err != nil || ctx.Err() != nil {
			return err
		}
		works = c.found[had:].Count(checkup.Fail) == 0
	}
	steps := []checkup.Step{checkup.Unknown, checkup.Long}
	if works {
		steps = append(steps, checkup.Cancelled)
	}
	if c.full {
		steps = append(steps, checkup.Pieces)
	}
	if c.full && works {
		steps = append(steps, checkup.Many)
	}
	for len(steps) > 0 && ctx.Err() == nil {
		most := len(steps)
		if !works { // a crash is noticed only at the end of a life
			most = 1
		}
		taken, err := c.life(ctx, steps[:most], works, first)
		if err != nil {
			return err
		}
		steps = steps[taken:]
	}
	if c.full && works && ctx.Err() == nil {
		return c.killed(ctx)
	}
	return nil
}

// life makes steps until the program does not continue, and returns their number.
func (c *checking) life(ctx context.Context, steps []checkup.Step, works bool, first checkup.Findings) (taken int, err error) {
	t, err := beginTrial(c.app, c.command, c.terms, false)
	if err != nil {
		return 0, err
	}
	enough := t.answering(ctx)
	outcome, last := checkup.WentOn, checkup.Step{}
	if t.started(ctx) {
		for taken < len(steps) && outcome == checkup.WentOn && ctx.Err() == nil {
			if taken > 0 {
				c.found = append(c.found, checkup.After(last, outcome, t.run, works))
			}
			last = steps[taken]
			outcome = t.take(ctx, last, works)
			taken++
		}
	}
	enough()
	if err := t.end(ctx); err != nil || ctx.Err() != nil {
		return taken, err
	}
	later := checkup.Later(t.run, c.terms)
	news := first.News(later)
	crashed := !works && outcome == checkup.WentOn && t.run.Crashed()
	if crashed && len(news) > 0 { // the input that it read caused the crash
		outcome = checkup.Died
	}
	if taken > 0 && (!crashed || outcome == checkup.Died) {
		c.found = append(c.found, checkup.After(last, outcome, t.run, works))
	}
	if outcome == checkup.WentOn {
		c.found = append(c.found, news...)
	}
	return max(taken, 1), nil
}

// take makes one step and returns its outcome.
func (c *checkRun) take(ctx context.Context, step checkup.Step, works bool) checkup.Outcome {
	if err := c.do(ctx, step); err != nil {
		return c.fallen()
	}
	if works {
		return c.next(ctx)
	}
	if !c.read(ctx) {
		if o := c.fallen(); o == checkup.Died {
			return o
		}
		return checkup.Unread
	}
	return checkup.WentOn
}

// next gives the program a task and returns whether it does it.
func (c *checkRun) next(ctx context.Context) checkup.Outcome {
	task, err := c.give(ctx, "Say hello again")
	if err == nil {
		c.finish(ctx, task)
	}
	c.clear(ctx, task)
	answered := false
	c.run.Await(ctx, func() bool {
		answered = err == nil && c.run.Over(task) && !c.run.Tasks[task].ByExit
		return true
	})
	if answered {
		return checkup.WentOn
	}
	return c.fallen()
}

// heardBy is how long clear waits for the end of the program.
const heardBy = 2 * time.Second

// clear waits for the end of the program if that may have ended the task.
func (c *checkRun) clear(ctx context.Context, task string) {
	ctx, stop := context.WithTimeout(ctx, heardBy)
	defer stop()
	c.run.Await(ctx, func() bool { return !c.run.Unclear(task) || c.run.Gone() })
}

// fallen returns the outcome for a program that did not continue.
func (c *checkRun) fallen() (o checkup.Outcome) {
	o = checkup.Fell
	c.run.Await(context.Background(), func() bool {
		if c.run.Gone() {
			o = checkup.Died
		}
		return true
	})
	return o
}

// do performs a step.
func (c *checkRun) do(ctx context.Context, step checkup.Step) error {
	switch step.Check {
	case checkup.Again.Check:
		task, err := c.give(ctx, "Say hello once")
		c.finish(ctx, task)
		return err
	case checkup.Unknown.Check:
		return c.tell(ctx, strangeNotice("blue"))
	case checkup.Long.Check:
		return c.tell(ctx, strangeNotice(strings.Repeat("blue ", 1<<20/len("blue "))))
	case checkup.Pieces.Check:
		line := strangeNotice("blue and then grey")
		for _, piece := range []string{line[:1], line[1:40], line[40 : len(line)-1], line[len(line)-1:]} {
			if err := c.tell(ctx, piece); err != nil {
				return err
			}
			c.read(ctx)
		}
		return nil
	case checkup.Cancelled.Check:
		return c.cancelled(ctx)
	case checkup.Many.Check:
		return c.many(ctx)
	}
	return fmt.Errorf("there is no step %q", step.Check)
}

func (c *checkRun) tell(ctx context.Context, text string) error {
	return c.Super.TellWaiting(ctx, c.run.Agent, []byte(text))
}

// strangeNotice returns a notification of an unknown type.
func strangeNotice(sky string) string {
	return fmt.Sprintf(`{"type":"notify:weather","id":%q,"timestamp":"2026-01-01T00:00:00.000Z","payload":{"sky":%q}}`+"\n", uuid.NewString(), sky)
}

// cancelled gives the program a task, cancels it, and gives it another one. When that is
// done, the program has received the messages about the first.
func (c *checkRun) cancelled(ctx context.Context) error {
	err := c.takeAway(ctx)
	c.signal(syscall.SIGCONT)
	if err != nil {
		return err
	}
	task, err := c.give(ctx, "Say hello after all")
	c.finish(ctx, task)
	c.finish(ctx, task) // it may have worked on the cancelled one first
	return err
}

// takeAway cancels a task while the program is stopped. The program cannot have done the
// task by then, and its later messages about it are rejected.
func (c *checkRun) takeAway(ctx context.Context) error {
	c.signal(syscall.SIGSTOP)
	task, err := c.give(ctx, "Say hello, or rather not")
	if err != nil {
		return err
	}
	c.await(ctx, func() bool { return c.run.Begun(task) })
	_, err = c.ask.Ask(ctx, "cancel-task", wire.CancelTask{TaskID: task, Reason: "the check wants to see this"})
	return err
}

// signal sends a signal to the process group of the program.
func (c *checkRun) signal(sig syscall.Signal) {
	c.run.Await(context.Background(), func() bool {
		if !c.run.Gone() && c.run.PID > 0 {
			_ = syscall.Kill(-c.run.PID, sig) // it may have exited
		}
		return true
	})
}

// many gives ten tasks and waits for their ends.
func (c *checkRun) many(ctx context.Context) error {
	var tasks []string
	for i := range 10 {
		task, err := c.give(ctx, fmt.Sprintf("Say hello %d", i+1))
		if err != nil {
			return err
		}
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		c.finish(ctx, task)
	}
	return nil
}

// killed kills the program while it has a task, and checks whether it does that task after
// a restart. The program is stopped first, so that it cannot complete the task.
func (c *checking) killed(ctx context.Context) error {
	t, err := beginTrial(c.app, c.command, c.terms, true)
	if err != nil {
		return err
	}
	outcome := checkup.Fell
	if t.started(ctx) {
		t.signal(syscall.SIGSTOP)
		task, err := t.give(ctx, "Say hello, twice started")
		if err == nil && t.await(ctx, func() bool { return t.run.Begun(task) }) {
			t.signal(syscall.SIGKILL)
			t.await(ctx, func() bool { return t.run.Starts > 1 || t.run.Over(task) })
			t.finish(ctx, task)
		}
		t.run.Await(ctx, func() bool {
			if t.run.Done(task) {
				outcome = checkup.WentOn
			}
			return true
		})
	}
	if err := t.end(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	c.found = append(c.found, checkup.After(checkup.Killed, outcome, t.run, true))
	return nil
}
