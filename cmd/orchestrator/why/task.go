package why

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/session"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	wiresession "orchestrator/wire/session"
)

// taskCauses explains the state of a task. It is also the JSON answer.
type taskCauses struct {
	FormatVersion string                   `json:"format_version"`
	Task          whyTask                  `json:"task"`
	WaitsFor      []whyTask                `json:"waits_for"`      // directly
	HeldUpBy      []whyTask                `json:"held_up_by"`     // direct or indirect dependencies that could move
	Parts         []whyTask                `json:"parts,omitzero"` // open tasks that its agent has submitted for it
	Asks          string                   `json:"asks"`
	Agents        []whyFit                 `json:"agents"` // for a pending task, the best fit first
	Attempts      int                      `json:"attempts"`
	Tried         []tried                  `json:"tried"`
	Reviews       []wiresession.ReviewView `json:"reviews,omitzero"`       // for a task in review
	Questions     []string                 `json:"questions,omitzero"`     // ids of the questions that it and its parts wait for
	LimitedUntil  string                   `json:"limited_until,omitzero"` // its agent does not work before
	After         string                   `json:"after,omitzero"`         // it is not given out before
	ChangedBy     string                   `json:"changed_by,omitzero"`    // who has changed its text last
	Next          []string                 `json:"next"`                   // the next steps of the orchestrator, and the options of a person
	task          *task.Seen               // in full
	lost          *task.Seen               // the task that caused its cancellation
	status        *control.Status          // status of the orchestrator
	brought       bool                     // the task request was forwarded to its agent
	asked         []wire.Question          // open questions of its agent about it
	ofParts       []wire.Question          // open questions about its parts
	merge         *wire.Event              // the latest event about the merge of its branch
}

// A whyTask is a task in an explanation.
type whyTask struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	State      wire.TaskState `json:"state"`
	Since      string         `json:"since,omitzero"`
	AssignedTo string         `json:"assigned_to,omitzero"`
	Progress   float64        `json:"progress"`
}

// A whyFit is an agent in an explanation.
type whyFit struct {
	Agent string `json:"agent"`
	Fits  bool   `json:"fits"`
	Idle  bool   `json:"idle"`
	Score int    `json:"score,omitzero"`
	Words string `json:"words"`

	up bool // the agent runs or is online
}

func explainTask(ctx context.Context, a *cli.App, d *client.Client, find *task.Finder, status *control.Status, id string) error {
	t, _, err := task.GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	tasks, err := find.List(ctx)
	if err != nil {
		return err
	}
	found, err := readable(ctx, d, url.Values{"task": {id}}, func(e *wire.Event) bool { return e.Kind != events.TaskProgress })
	if err != nil {
		return err
	}
	c := &taskCauses{
		FormatVersion: wire.FormatVersion, Task: inStory(&t), Asks: askWords(&t.Task), Attempts: t.Attempts,
		Tried: triedOf(found, events.TaskRequeued, events.TaskRetried, events.TaskReopened, events.TaskUnverified, events.TaskFailed, events.TaskTrouble, events.TaskBlocked),
		task:  &t, status: status, brought: task.WasBrought(found), merge: task.LastMerge(found),
	}
	if t.Details != nil {
		c.After, c.ChangedBy = t.After, t.ChangedBy
	}
	c.Task.Since = movedAt(&t.Task, found)
	c.holdups(task.ByID(tasks))
	c.lost = lostNeed(&t, task.ByID(tasks))
	if t.State == wire.TaskPending && !task.HandedOn(&t.Task) {
		if err := weighAgents(ctx, a, d, c); err != nil {
			return err
		}
	}
	if err := reviewsOf(ctx, a, d, c); err != nil {
		return err
	}
	if err := holdersOf(ctx, a, d, c); err != nil {
		return err
	}
	if err := partsOf(ctx, a, d, c, tasks); err != nil {
		return err
	}
	c.Next = append(c.next(), c.nextOfParts()...)
	if a.FromRecord() && !c.Task.State.Final() {
		c.Next = whenDown(c.Next)
	}
	if a.Flags.JSON {
		return a.Document(c)
	}
	return a.Print("%s", c.text(a.Paint(a.Stdout), time.Now()))
}

func inStory(t *task.Seen) whyTask {
	return whyTask{ID: t.ID, Name: t.Name, State: t.State, AssignedTo: t.AssignedTo, Progress: t.Progress}
}

// movedAt returns when a task entered its state.
func movedAt(t *wire.Task, found []wire.Event) string {
	moves := []string{
		events.TaskCreated, events.TaskAssigned, events.TaskStarted, events.TaskRequeued, events.TaskRetried, events.TaskReopened, events.TaskPlanned,
		events.TaskPlanReturned, events.TaskHelpWanted, events.TaskDone, events.TaskFailed, events.TaskCancelled,
	}
	for _, e := range slices.Backward(found) {
		if slices.Contains(moves, e.Kind) {
			return e.At
		}
	}
	for _, stamp := range []string{t.EndedAt, t.StartedAt, t.AssignedAt} {
		if stamp != "" {
			return stamp
		}
	}
	return t.CreatedAt
}

// askWords returns the requirements of a task on an agent, or "".
func askWords(t *wire.Task) string {
	if !task.AsksByName(t) && !task.Requires(t) {
		return ""
	}
	return task.Requirements(t)
}

// holdups adds the dependencies of a task, and the tasks at the end of the chains of
// dependencies, which could move.
func (c *taskCauses) holdups(tasks map[string]*task.Seen) {
	been := map[string]bool{c.task.ID: true}
	open := c.task.WaitsFor
	for first := true; len(open) > 0; first = false {
		var deeper []string
		for _, id := range open {
			t := tasks[id]
			if been[id] || t == nil {
				continue
			}
			been[id] = true
			if first {
				c.WaitsFor = append(c.WaitsFor, inStory(t))
			}
			if len(t.WaitsFor) == 0 {
				c.HeldUpBy = append(c.HeldUpBy, inStory(t))
			}
			deeper = append(deeper, t.WaitsFor...)
		}
		open = deeper
	}
}

// lostNeed returns the task that caused the cancellations down to t, or nil.
func lostNeed(t *task.Seen, tasks map[string]*task.Seen) (lost *task.Seen) {
	for t.State == wire.TaskCancelled && t.Reason == wire.DependencyFailed {
		i := slices.IndexFunc(t.Dependencies, func(id string) bool {
			need := tasks[id]
			return need != nil && (need.State == wire.TaskFailed || need.State == wire.TaskCancelled)
		})
		if i < 0 {
			break
		}
		t = tasks[t.Dependencies[i]]
		lost = t
	}
	return lost
}

// weighAgents adds how each agent fits the task.
func weighAgents(ctx context.Context, a *cli.App, d *client.Client, c *taskCauses) error {
	fits, err := task.Fits(ctx, a, d, c.task)
	if err != nil {
		return err
	}
	for i := range fits {
		c.Agents = append(c.Agents, c.inStory(&fits[i]))
	}
	return nil
}

// inStory returns the fit of an agent, with its activity if that matters.
func (c *taskCauses) inStory(f *task.Fit) whyFit {
	doing, idle := f.Status, f.Status == "idle"
	up := idle || f.Status == "busy"
	for i := range c.status.Agents {
		if v := &c.status.Agents[i]; v.Name == f.Agent {
			doing, idle = standing(v), v.State == control.StateRunning && len(v.Tasks) == 0 && term.HeldUp(v.Activity, time.Now()) == ""
		}
	}
	w := whyFit{Agent: f.Agent, Fits: f.Good() || f.Full, Idle: idle && f.Good(), Score: f.Score, up: up}
	switch {
	case f.Full:
		w.Words = "fits, " + strings.Join(f.Lacks, ", ") + ", " + doing
	case f.Good():
		w.Words = "fits, " + doing
	default:
		w.Words = f.Words()
	}
	return w
}

// reviewsOf adds the reviews of a task that is in review.
func reviewsOf(ctx context.Context, a *cli.App, d *client.Client, c *taskCauses) error {
	if c.task.State != wire.TaskInReview {
		return nil
	}
	all, err := session.ListReviews(ctx, a, d, wire.ListReviews{})
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].TaskID == c.Task.ID {
			c.Reviews = append(c.Reviews, all[i].ReviewView)
		}
	}
	return nil
}

// reviewLines returns the latest reviews of the task.
func (c *taskCauses) reviewLines(now time.Time) []string {
	var lines []string
	for i := range c.Reviews[max(0, len(c.Reviews)-maxTried):] {
		r := &c.Reviews[max(0, len(c.Reviews)-maxTried)+i]
		line := fmt.Sprintf("round %d by %s: %s", r.Iteration, term.OneLine(r.Reviewer), term.VerdictWord(r))
		if r.Verdict == "" {
			line += agoWords(r.RequestedAt, now)
		} else {
			line += ", " + term.Count(len(r.Findings), "finding")
		}
		lines = append(lines, line)
	}
	return lines
}

// nextOfReview returns the next steps for a task in review.
func (c *taskCauses) nextOfReview(id string) []string {
	if len(c.Reviews) == 0 {
		return []string{"Its work is in review. Its events: orchestrator events --task " + id}
	}
	last := &c.Reviews[len(c.Reviews)-1]
	show := "The request and the findings: orchestrator review show " + wire.Visible(last.ReviewID)
	reviewer := term.OneLine(last.Reviewer)
	if last.Verdict != "" {
		return []string{"Round " + strconv.Itoa(last.Iteration) + " is decided: " + term.OneLine(last.Verdict) + ".", show}
	}
	for i := range c.status.Agents {
		if v := &c.status.Agents[i]; v.Name == last.Reviewer && v.State != control.StateRunning {
			return []string{fmt.Sprintf("%s has to review it but is %s. Why: orchestrator why %s", reviewer, standing(v), reviewer), show}
		}
	}
	return []string{fmt.Sprintf("%s reviews its work (round %d). Why it is not finished: orchestrator why %s", reviewer, last.Iteration, reviewer), show}
}

// text returns the explanation for people.
func (c *taskCauses) text(p term.Paint, now time.Time) string {
	t := &c.Task
	head := fmt.Sprintf("%s is %s%s\n", p.Strong(term.TaskLabel(t.ID, t.Name)), p.Task(t.State, task.HeldWords(&c.task.Task)), since(t.Since, now))
	card := term.Card{}
	card.Rows("waits for", storyLines(c.WaitsFor))
	if behind := c.behind(); len(behind) > 0 {
		card.Rows("held up by", storyLines(behind))
	}
	card.Rows("parts", storyLines(c.Parts))
	card.Row("requires", c.Asks)
	card.Row("changed", task.ChangedBy(&c.task.Task))
	c.agentRows(&card)
	if c.Attempts > 1 {
		card.Row("attempts", fmt.Sprint(c.Attempts))
	}
	card.Rows("reviews", c.reviewLines(now))
	addTried(&card, "tried", c.Tried, now)
	card.Rows("next", c.Next)
	return head + term.Table(card.Lines)
}

// behind returns the tasks in HeldUpBy that are not direct dependencies.
func (c *taskCauses) behind() []whyTask {
	var behind []whyTask
	for _, t := range c.HeldUpBy {
		direct := false
		for _, w := range c.WaitsFor {
			direct = direct || w.ID == t.ID
		}
		if !direct {
			behind = append(behind, t)
		}
	}
	return behind
}

// maxTold is how many tasks or agents are listed.
const maxTold = 12

func storyLines(tasks []whyTask) []string {
	var lines []string
	for _, t := range tasks[:min(maxTold, len(tasks))] {
		lines = append(lines, term.TaskLabel(t.ID, t.Name)+" ("+t.far()+")")
	}
	if len(tasks) > maxTold {
		lines = append(lines, fmt.Sprintf("and %d more", len(tasks)-maxTold))
	}
	return lines
}

// far returns the state of a task and its progress.
func (t *whyTask) far() string {
	return task.FarWords(&wire.Task{State: t.State, AssignedTo: t.AssignedTo, Progress: t.Progress})
}

func (c *taskCauses) agentRows(card *term.Card) {
	if c.Asks == "" {
		return // any agent fits, so none is listed
	}
	for _, f := range c.Agents[:min(maxTold, len(c.Agents))] {
		card.Row(term.OneLine(f.Agent), f.Words)
	}
	if len(c.Agents) > maxTold {
		card.Row("…", fmt.Sprintf("and %s more: orchestrator task match %s", term.Count(len(c.Agents)-maxTold, "agent"), term.ID(c.Task.ID)))
	}
}
