package supervisor

import (
	"context"
	"slices"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// GiveOut submits the tasks of task blocks that were not submitted before. Each follows the tasks that it needs. A
// block that has changed since its task failed or was cancelled is given out again, with the blocks that need it.
func (s *Supervisor) GiveOut(ctx context.Context, tasks []wire.SubmitTask) error {
	_, err := ask(ctx, s, func() (struct{}, error) {
		s.life.giveOut(ctx, tasks)
		return struct{}{}, nil
	})
	return err
}

// giveOut is GiveOut, on the goroutine of Run. No other goroutine submits tasks of blocks.
func (l *lifecycle) giveOut(ctx context.Context, tasks []wire.SubmitTask) {
	anew := make(map[string]bool)
	for i := range tasks {
		block := tasks[i].Block
		var id string
		var state wire.TaskState
		var sum uint64
		l.dispatcher.Look(func(s *handlers.State) { id, state, sum = s.OfBlock(block.Name) })
		needsAnew := slices.ContainsFunc(block.Needs, func(need string) bool { return anew[need] })
		if block.Again = (state == wire.TaskFailed || state == wire.TaskCancelled) && (sum != block.Sum || needsAnew); block.Again {
			anew[block.Name] = true
			l.options.Log.Info("a task block is submitted again, because its task had failed or was cancelled", "block", block.Name, "before", wire.ShortID(id))
		}
		switch {
		case id == "", block.Again:
			if _, err := l.dispatcher.Requests().Do(ctx, handlers.Actor{}, "submit-task", &tasks[i]); err != nil {
				l.options.Log.Warn("a task block is not submitted", "block", block.Name, "error", err)
				l.idle.tally.given(false)
			}
			continue
		case sum != block.Sum:
			l.options.Log.Warn("a task block has changed since its task was submitted; the task stays unchanged",
				"block", block.Name, "task", wire.ShortID(id), "hint", "a block with another name is a new task")
		}
		if state.Final() {
			l.idle.tally.given(state == wire.TaskDone)
		}
	}
}

// given adds a task of the configuration that has ended before.
func (i *idleCounter) given(done bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tasks++
	if !done {
		i.undone++
	}
}
