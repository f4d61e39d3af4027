package tools

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A WorkItem is the request of a session message to its recipient: the work on a task, or a review.
type WorkItem struct {
	Asked      *session.Message
	Assignment *session.Assignment    // nil for a review
	Review     *session.ReviewRequest // nil for a task
}

// WorkItemOf returns the request of a session message, or nil.
func WorkItemOf(m *session.Message) *WorkItem {
	w := &WorkItem{Asked: m}
	w.Assignment, _ = m.Body.(*session.Assignment)
	w.Review, _ = m.Body.(*session.ReviewRequest)
	if w.Assignment == nil && w.Review == nil {
		return nil
	}
	return w
}

// ID returns the id of the task or of the review.
func (w *WorkItem) ID() string {
	if w.Review != nil {
		return w.Review.ReviewID
	}
	return w.Assignment.Task.TaskID
}

// Report returns the type and the payload of the session message that the call of a tool makes.
// The type is "" for other tools. The error is for the model.
func (w *WorkItem) Report(tool string, args wire.Raw) (kind string, body any, err error) {
	switch {
	case tool == ForReviews && w.Review != nil:
		body, err = review(args, w.Review)
		return session.TypeReviewResult, body, err
	case tool == "task_complete" && w.Review != nil:
		return "", nil, errors.New("you are asked for a review: report with the tool review")
	case tool == "task_complete", tool == "task_fail" && w.Assignment != nil:
		body, err = completion(tool, args, w.Assignment.Task.TaskID)
		return session.TypeTaskCompletion, body, err
	case tool == "task_fail":
		a, err := argumentsOf(args)
		return session.TypeFeedback, w.CannotReview(a.Reason), err
	}
	return "", nil, nil
}

// CannotReview returns the feedback that a review cannot be made.
func (w *WorkItem) CannotReview(why string) session.Feedback {
	return session.Feedback{
		Type: session.FeedbackClarification, TaskID: w.Review.TaskID, ActionRequired: true,
		Subject: "the review cannot be made", Content: cmp.Or(strings.TrimSpace(why), "the reviewer gave no reason"),
	}
}

// Progress returns the progress that a call of task_progress reports, after that from before. The error is
// for the model.
func (w *WorkItem) Progress(args wire.Raw, before float64) (session.Progress, error) {
	a, err := argumentsOf(args)
	p := session.Progress{TaskID: w.ID(), Step: Clip(a.Message, 200), Percent: before, Files: []string{}}
	if a.Progress != nil {
		p.Percent = min(max(*a.Progress*100, 0), 100)
	}
	return p, err
}

// Reported reports whether the log of a session has the report that ends the work item. A report
// that was refused does not count.
func (w *WorkItem) Reported(log []session.Entry) bool {
	return slices.ContainsFunc(log, func(e session.Entry) bool {
		ends := e.Type == session.TypeTaskCompletion
		if w.Review != nil {
			ends = e.Type == session.TypeReviewResult || e.Type == session.TypeFeedback
		}
		answers, _ := object.TextOf(e.Document, "reply_to")
		return ends && e.Refused == "" && e.From == w.Asked.To.AgentID && answers == w.Asked.MessageID
	})
}

// Reply returns the request that sends a session message in answer to another.
func Reply(to *session.Message, id string, at time.Time, number int64, kind string, body any) wire.SaySession {
	head := session.Head{
		MessageID: id, At: at, SequenceNumber: number, From: to.To, To: to.From,
		CorrelationID: to.CorrelationID, ReplyTo: to.MessageID, SessionID: to.SessionID,
	}
	return wire.SaySession{SessionID: to.SessionID, Session: wire.Session{Document: head.Say(kind, object.Spell(body), nil).Document}}
}

// Prompt returns the text that gives the work to a model.
func (w *WorkItem) Prompt() string {
	if w.Review != nil {
		return reviewPrompt(w.Review)
	}
	return assignmentPrompt(w.Assignment)
}

func assignmentPrompt(a *session.Assignment) string {
	var b strings.Builder
	t := &a.Task
	fmt.Fprintf(&b, "Your task %s: %s\n", t.TaskID, Clip(t.Description, MaxText))
	points(&b, "It counts as done when", t.AcceptanceCriteria)
	var files []string
	for _, f := range append(slices.Clone(t.Context.Specs), t.Context.ReferenceFiles...) {
		files = append(files, f.Path+": "+f.Reason)
	}
	points(&b, "Read first", files)
	points(&b, "You may only change files that match", t.Constraints.Scope)
	points(&b, "This must go on working", t.Constraints.MustNotBreak)
	if t.Constraints.TestingRequired {
		b.WriteString("\nRun the tests, and name the commands as evidence.\n")
	}
	for _, p := range t.Context.PreviousAttempts {
		fmt.Fprintf(&b, "\nAttempt %d was %s:\n%s\n", p.Number, p.Outcome, Clip(p.Feedback, MaxText))
	}
	b.WriteString("\nCall task_complete with a summary and the files that you changed when it is done, or task_fail with the reason if it cannot be done.")
	return b.String()
}

func reviewPrompt(r *session.ReviewRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Review %s: judge the work on task %s.\n\nThe task was: %s\n", r.ReviewID, r.TaskID, Clip(r.Context.TaskDescription, MaxText))
	points(&b, "It counts as done when", r.Context.AcceptanceCriteria)
	points(&b, "Files", r.Scope.Files)
	points(&b, "Look for", r.Scope.FocusAreas)
	points(&b, "Ignore", r.Scope.IgnorePatterns)
	var wanted []string
	for _, c := range []struct {
		name string
		want bool
	}{{"the tests pass", r.Criteria.MustPassTests}, {"it compiles", r.Criteria.MustPassTypeCheck}, {"the linter finds nothing", r.Criteria.MustPassLint}} {
		if c.want {
			wanted = append(wanted, c.name)
		}
	}
	for _, c := range r.Criteria.CustomChecks {
		wanted = append(wanted, fmt.Sprintf("%s (suggested command: %s)", c.Name, c.Command))
	}
	points(&b, "Find out whether", wanted)
	for _, p := range r.Context.PreviousReviews {
		points(&b, fmt.Sprintf("Review %d: %s", p.Number, p.Verdict), p.KeyFindings)
	}
	b.WriteString("\nChange nothing. Call review with your verdict when you are done.")
	return b.String()
}

// points adds a list to a prompt, unless it is empty.
func points(b *strings.Builder, title string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, p := range list {
		fmt.Fprintf(b, "- %s\n", Clip(p, 2000))
	}
}
