package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// next returns the next steps of the orchestrator, and the options of a person.
func (c *taskCauses) next() []string {
	id, t := term.ID(c.Task.ID), c.task
	switch {
	case t.State.Final():
		next := []string{ended(t)}
		if name := t.AssignedTo; t.State == wire.TaskFailed && c.status != nil && slices.ContainsFunc(c.status.Agents, func(a control.AgentView) bool { return a.Name == name }) {
			next = append(next, "The output of its agent: orchestrator logs "+term.OneLine(name))
		}
		switch {
		case t.State == wire.TaskDone:
		case c.lost != nil:
			lost := term.ID(c.lost.ID)
			next = append(next, fmt.Sprintf("It needs %s %q, which is %s. Why: orchestrator why %s", lost, term.OneLine(c.lost.Name), c.lost.State, lost),
				"Retry that task, and this one is retried with it: orchestrator task retry "+lost)
		default:
			next = append(next, "Retry it: orchestrator task retry "+id)
		}
		return append(next, c.nextOfMerge()...)
	case len(c.WaitsFor) > 0:
		return c.nextOfBlocked(id)
	case task.HandedOn(&t.Task) && (t.State == wire.TaskPending || t.State == wire.TaskAssigned):
		return c.nextOfHandedOn(id)
	}
	switch t.State {
	case wire.TaskPending:
		return append(c.nextOfPending(id), c.lastHolder()...)
	case wire.TaskAssigned:
		return c.nextOfHeld("has it but has not started it", "Start it yourself: orchestrator task start "+id)
	case wire.TaskPlanning:
		next := c.nextOfHeld("has to submit a plan for it", "Submit the plan yourself: orchestrator task plan "+id+" TEXT")
		if t.Details != nil && t.PlanFeedback != "" {
			next = append([]string{"Its plan was sent back: " + term.Clip(term.OneLine(t.PlanFeedback), 100)}, next...)
		}
		return next
	case wire.TaskPlanReview:
		return []string{
			"Its plan waits for approval. Read it: orchestrator task show " + id,
			"Then: orchestrator task approve-plan " + id + "     or: orchestrator task revise-plan " + id + " -m TEXT",
		}
	case wire.TaskNeedsHuman:
		return c.nextOfQuestion(id)
	case wire.TaskInReview:
		return c.nextOfReview(id)
	case wire.TaskVerifying:
		return []string{"The verify commands of its agent are running. If one fails, the agent continues"}
	}
	return c.nextOfHeld("works on it", "Its events: orchestrator events --task "+id)
}

// ended returns how a task ended.
func ended(t *task.Seen) string {
	switch t.State {
	case wire.TaskFailed:
		class := ""
		if t.Details != nil && t.FailureClass != "" {
			class = " (" + term.OneLine(t.FailureClass) + ")"
		}
		return "It failed" + class + term.Colon(term.Clip(term.OneLine(t.Error), 200))
	case wire.TaskCancelled:
		return "It was cancelled" + term.Colon(term.Clip(term.OneLine(t.Reason), 200))
	}
	return "It is done. See the result: orchestrator task show " + term.ID(t.ID)
}

// nextOfMerge returns the state of the branch of a task that has ended.
func (c *taskCauses) nextOfMerge() []string {
	if c.merge != nil {
		return []string{"Its branch " + term.OneLine(task.MergeWords(c.merge))}
	}
	if c.task.Details != nil && c.task.Workspace != nil && c.task.Workspace.Merge == hub.MergeWaiting {
		return []string{"Its branch waits for the merge queue."}
	}
	return nil
}

// nextOfBlocked returns the next steps for a task that waits for other tasks. Failed and cancelled
// tasks never become done by themselves.
func (c *taskCauses) nextOfBlocked(id string) []string {
	var lost, open, unmerged []string
	for _, t := range c.HeldUpBy {
		switch {
		case t.State == wire.TaskDone:
			unmerged = append(unmerged, t.ID)
		case t.State.Final():
			lost = append(lost, t.ID)
		default:
			open = append(open, t.ID)
		}
	}
	if len(unmerged) > 0 {
		return []string{
			fmt.Sprintf("%s is done, but its branch is not merged yet. This task continues after the merge. Why it waits: orchestrator why %s", task.ShortIDs(unmerged), term.ID(unmerged[0])),
			"Or merge it yourself: orchestrator task merge " + term.ID(unmerged[0]),
		}
	}
	if len(lost) > 0 {
		return []string{
			fmt.Sprintf("%s is not done, so this task waits for ever. Retry that one: orchestrator task retry %s", task.ShortIDs(lost), term.ID(lost[0])),
			fmt.Sprintf("Or remove the dependency: orchestrator task deps %s --rm %s", c.waiter(lost[0]), term.ID(lost[0])),
			"Or cancel it: orchestrator task cancel " + id,
		}
	}
	next := "It continues when the tasks that it needs are done."
	if len(open) > 0 {
		next += " Why " + term.ID(open[0]) + " is not done: orchestrator why " + term.ID(open[0])
	}
	return []string{next}
}

// waiter returns the id of the task that directly waits for another one, or ID if it is not
// known.
func (c *taskCauses) waiter(id string) string {
	for _, t := range c.WaitsFor {
		if t.ID == id {
			return term.ID(c.Task.ID)
		}
	}
	return "ID"
}

// nextOfPending returns the next steps for a task that only waits for an agent.
func (c *taskCauses) nextOfPending(id string) []string {
	give := "Assign it: orchestrator task assign " + id + " AGENT"
	if after := c.notBefore(); after != "" {
		return []string{after, give}
	}
	if lines := c.comesBack(); lines != nil {
		return append(lines, "Or assign it to another agent: orchestrator task assign "+id+" AGENT")
	}
	if c.Asks == "" {
		return []string{"It requires no role or capability, so no agent is matched: an agent has to take it.", give}
	}
	var fitting, idle, up []string
	for _, f := range c.Agents {
		if f.Fits {
			fitting = append(fitting, term.OneLine(f.Agent))
		}
		if f.Fits && f.up {
			up = append(up, term.OneLine(f.Agent))
		}
		if f.Idle {
			idle = append(idle, term.OneLine(f.Agent))
		}
	}
	if len(fitting) == 0 {
		return []string{"No agent fits. It waits for one that does. Change the file, then: orchestrator reload", give + ", whether it fits or not"}
	}
	var next []string
	switch matched := task.IsMatched(&c.task.Task); {
	case matched && len(idle) > 0:
		next = []string{"It would go to " + idle[0] + " now: orchestrator task assign --auto " + id}
	case matched:
		next = []string{"It goes to " + goesTo(fitting, "joins or has room") + ". At once: orchestrator task assign --auto " + id}
	default:
		next = []string{"It goes to " + goesTo(fitting, "is idle") + "."}
	}
	for i := range c.status.Agents {
		if v := &c.status.Agents[i]; slices.Contains(up, term.OneLine(v.Name)) {
			next = append(next, limitLines(v, time.Now())...)
		}
	}
	if len(up) == 0 {
		return []string{"It goes to " + goesTo(fitting, "runs") + ". Start it: orchestrator agent start " + fitting[0], "Why it does not run: orchestrator why " + fitting[0]}
	}
	return next
}

// notBefore returns until when the task was given back, or "".
func (c *taskCauses) notBefore() string {
	after := term.NotBefore(&c.task.Task, time.Now(), time.TimeOnly)
	if after == "" {
		return ""
	}
	return "Its agent has returned it until " + after + ". It is not assigned before then."
}

// lastHolder returns where to look when the task came back from an agent. The why command
// does not know external servers.
func (c *taskCauses) lastHolder() []string {
	if n := len(c.Tried); n > 0 && c.Tried[n-1].Kind == events.TaskRequeued && c.Tried[n-1].Agent != "" {
		name := term.OneLine(c.Tried[n-1].Agent)
		if c.status != nil && !slices.ContainsFunc(c.status.Agents, func(a control.AgentView) bool { return a.Name == c.Tried[n-1].Agent }) {
			return []string{"It was assigned to the server " + name + ". See whether that is online: orchestrator agent servers"}
		}
		return []string{"Why " + name + " no longer has it: orchestrator why " + name}
	}
	return nil
}

// goesTo returns "coder-0, as soon as it is idle", or "the first of coder-0, coder-1 that
// is idle".
func goesTo(names []string, does string) string {
	const few = 5
	if len(names) == 1 {
		return names[0] + ", as soon as it " + does
	}
	words := "the first of " + strings.Join(names[:min(few, len(names))], ", ")
	if len(names) > few {
		words += fmt.Sprintf(" and %d more", len(names)-few)
	}
	return words + " that " + does
}

// nextOfHeld returns the next steps for a task with an agent.
func (c *taskCauses) nextOfHeld(does, instead string) []string {
	name := term.OneLine(c.task.AssignedTo)
	for i := range c.status.Agents {
		v := &c.status.Agents[i]
		switch n := len(v.Tasks); {
		case v.Name != c.task.AssignedTo:
		case v.State == control.StateRunning && v.Mailbox.TaskUnread && n > 0 && v.Tasks[n-1].ID == c.Task.ID:
			return []string{unreadTask(v), "Why: orchestrator why " + name}
		case v.State != control.StateRunning:
			next := []string{fmt.Sprintf("%s has it, and is %s. Why: orchestrator why %s", name, standing(v), name)}
			if v.State == control.StateStopped {
				next[0] = fmt.Sprintf("%s has it, and is stopped. Start it: orchestrator agent start %s", name, name)
			}
			if c.task.State != wire.TaskAssigned { // nobody can begin it while its agent does not run
				next = append(next, instead)
			}
			return next
		}
	}
	if held := c.heldUp(); len(held) > 0 {
		return append(held, instead)
	}
	doing := name + " " + does
	if c.task.Message != "" && c.task.State == wire.TaskRunning {
		doing += ": " + term.Clip(term.OneLine(c.task.Message), 100)
	}
	return []string{doing + ".", instead}
}

func (c *taskCauses) nextOfQuestion(id string) []string {
	if len(c.asked) > 0 {
		return questionLines(c.asked, func(*wire.Question) string { return "Its agent" })
	}
	if c.task.Details == nil || c.task.Help == nil {
		return []string{"It continues after a person has helped: orchestrator task start " + id}
	}
	h := c.task.Help
	return []string{
		fmt.Sprintf("Its agent asks: %s", term.Clip(term.OneLine(h.Question), 200)),
		fmt.Sprintf("Answer it: orchestrator inbox answer %s VALUE", wire.Visible(h.QuestionID)),
	}
}

// nextOfHandedOn returns the next steps for a delegated task that is not started.
func (c *taskCauses) nextOfHandedOn(id string) []string {
	give := "Cancel it: orchestrator task cancel " + id
	switch after := c.notBefore(); {
	case after != "":
		return []string{after, give}
	case c.task.State == wire.TaskPending:
		return []string{"It failed and is retried in a moment.", give}
	case c.brought:
		return c.nextOfHeld("has received it but has not reported a start", give)
	}
	return c.nextOfHeld("gets it when it has room", give)
}

// offlineCommands matches commands that need no running team.
var offlineCommands = regexp.MustCompile(`orchestrator (logs|events|why|graph|task (ls|show|response))\b`)

// whenDown returns the next steps when a part of a team is down: without the sentences that have a
// command that needs a running one.
func whenDown(next []string) []string {
	kept := []string{"The team is down: all tasks wait until it is up again."}
	for _, line := range next {
		var sentences []string
		for _, s := range strings.SplitAfter(line, ". ") {
			if !strings.Contains(s, "orchestrator ") || offlineCommands.MatchString(s) {
				sentences = append(sentences, s)
			}
		}
		if len(sentences) > 0 {
			kept = append(kept, strings.TrimSpace(strings.Join(sentences, "")))
		}
	}
	return kept
}
