package session

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"orchestrator/wire/object"
)

// Progress reports how far a developer is with a task.
type Progress struct {
	// The id of the task.
	TaskID string `json:"task_id" schema:"id"`
	// The progress, from 0 to 100; 1 is one percent.
	Percent float64 `json:"progress_percent" schema:"min=0,max=100"`
	// The current step of the developer.
	Step string `json:"current_step"`
	// The files that were changed so far.
	Files []string `json:"files_modified_so_far" schema:"each:nonblank"`
	// The estimated remaining time, in free words.
	Remaining string `json:"estimated_remaining,omitzero"`
	// The obstacles to the work.
	Blockers []string `json:"blockers,omitzero"`
}

// Completion reports the outcome of a task.
type Completion struct {
	// The id of the task.
	TaskID string `json:"task_id" schema:"id"`
	// Whether all of the work is done (completed), part of it (partial), or nothing useful (failed).
	Status string `json:"status" schema:"enum=session.Outcomes"`
	// The changed files.
	Changes FileChanges `json:"changes"`
	// A summary of the work.
	Summary string `json:"summary"`
	// Notes on the implementation.
	Notes string `json:"implementation_notes,omitzero"`
	// The developer's own checks.
	SelfReview SelfReview `json:"self_review"`
	// Why the task is not completed.
	Blockers []string `json:"blockers,omitzero"`
	// Suggestions for improvements.
	Suggestions []string `json:"suggestions,omitzero"`
	// The failure of the work. An extension of the published protocol. An invalid error is ignored
	// with a note.
	Error *ExecutionError `json:"error,omitzero" schema:"loose"`

	// Changed are the files that have really changed, if the task has a workspace. Refused is why the work was not
	// verified.
	Changed []string      `json:"-"`
	Refused *object.Error `json:"-"`
}

// FileChanges are the files that a developer has changed.
type FileChanges struct {
	// The new files.
	Created []FileChange `json:"files_created"`
	// The modified files.
	Modified []FileChange `json:"files_modified"`
	// The deleted files.
	Deleted []string `json:"files_deleted" schema:"each:nonblank"`
}

// FileChange describes the change of one file.
type FileChange struct {
	// The path of the file.
	Path string `json:"path" schema:"nonblank"`
	// The kind of change. A kind that does not match its list causes a warning.
	Type string `json:"change_type" schema:"enum=session.ChangeTypes"`
	// The number of added lines.
	LinesAdded int64 `json:"lines_added,omitzero" schema:"whole=0"`
	// The number of removed lines.
	LinesRemoved int64 `json:"lines_removed,omitzero" schema:"whole=0"`
	// The change in the file.
	Description string `json:"description,omitzero"`
}

// SelfReview records the checks of a developer before completing a task.
type SelfReview struct {
	// Whether the tests ran.
	TestsRun bool `json:"tests_run"`
	// Whether they passed.
	TestsPassed bool `json:"tests_passed"`
	// Whether the type check passed.
	TypeCheckPassed bool `json:"type_check_passed"`
	// The known problems.
	KnownIssues []string `json:"known_issues,omitzero"`
}

// Touched returns the paths of all files in the changes.
func (c FileChanges) Touched() []string {
	files := make([]string, 0, len(c.Created)+len(c.Modified)+len(c.Deleted))
	for _, list := range [][]FileChange{c.Created, c.Modified} {
		for _, file := range list {
			files = append(files, file.Path)
		}
	}
	return append(files, c.Deleted...)
}

// Files returns the files that a completion names and the files that really changed. The notes list
// the differences.
func (c *Completion) Files() (files, notes []string) {
	files = c.Changes.Touched()
	if c.Changed == nil {
		return files, nil
	}
	said := make(map[string]bool, len(files))
	for _, file := range files {
		said[path.Clean(file)] = true
	}
	var missing, wrong []string
	for _, file := range c.Changed {
		if !said[file] {
			missing, files = append(missing, file), append(files, file)
		}
		delete(said, file)
	}
	wrong = slices.Sorted(maps.Keys(said))
	if n := len(missing); n > 0 {
		notes = append(notes, fmt.Sprintf("/payload/changes: changed files that it does not name: %d, for example %.200q", n, missing[0]))
	}
	if n := len(wrong); n > 0 {
		notes = append(notes, fmt.Sprintf("/payload/changes: named files that did not change: %d, for example %.200q", n, wrong[0]))
	}
	return files, notes
}

func readProgress(p *object.Decoder) *Progress {
	return &Progress{
		TaskID: p.ID("task_id", object.Required), Percent: p.Percent("progress_percent"), Step: p.Text("current_step", object.Required),
		Files: p.Names("files_modified_so_far", object.Required), Remaining: p.Text("estimated_remaining", object.Optional), Blockers: p.Texts("blockers", object.Optional),
	}
}

func readCompletion(p *object.Decoder) *Completion {
	c := &Completion{TaskID: p.ID("task_id", object.Required), Status: p.OneOf("status", object.Required, Outcomes)}
	p.Inside("changes", object.Required, func(in *object.Decoder) {
		c.Changes = FileChanges{
			Created: readFileChanges(in, "files_created", ChangeCreated), Modified: readFileChanges(in, "files_modified", ChangeModified),
			Deleted: in.Names("files_deleted", object.Required),
		}
	})
	c.Summary = p.Text("summary", object.Required)
	c.Notes = p.Text("implementation_notes", object.Optional)
	p.Inside("self_review", object.Required, func(in *object.Decoder) {
		c.SelfReview = SelfReview{
			TestsRun: in.Bool("tests_run", object.Required), TestsPassed: in.Bool("tests_passed", object.Required),
			TypeCheckPassed: in.Bool("type_check_passed", object.Required), KnownIssues: in.Texts("known_issues", object.Optional),
		}
		if c.SelfReview.TestsPassed && !c.SelfReview.TestsRun {
			in.Note("tests_passed", "is true, and tests_run is false: they cannot have passed")
		}
	})
	c.Blockers = p.Texts("blockers", object.Optional)
	c.Suggestions = p.Texts("suggestions", object.Optional)
	if len(c.Blockers) == 0 && (c.Status == OutcomePartial || c.Status == OutcomeFailed) {
		p.Note("blockers", "is empty: it should give the reason for the status "+c.Status)
	}
	c.Error = readExecutionError(p, "error", c.TaskID)
	return c
}

// readExecutionError reads the failure of the work on a task. It is an extension, so an error in it
// does not refuse the message.
func readExecutionError(p *object.Decoder, key, task string) *ExecutionError {
	var e *ExecutionError
	aside := object.Decoder{Reader: p.Reader, Issues: new(object.Issues)}
	aside.Inside(key, object.Optional, func(in *object.Decoder) {
		e = &ExecutionError{
			TaskID: task, ErrorType: in.OneOf("error_type", object.Required, ExecutionErrors), ErrorMessage: in.Text("error_message", object.Required),
			Recoverable: in.Bool("recoverable", object.Optional), SuggestedAction: in.OneOf("suggested_action", object.Optional, Suggestions),
		}
	})
	if problems := aside.Issues.Problems; len(problems) > 0 {
		p.Issues.Note(problems[0].Pointer, problems[0].Message+"; the "+key+" is passed over")
		return nil
	}
	return e
}

// readFileChanges reads a list of changes that should all be of one kind.
func readFileChanges(p *object.Decoder, key, kind string) (files []FileChange) {
	p.Objects(key, object.Required, func(in *object.Decoder) {
		f := FileChange{Path: in.Name("path", object.Required)}
		f.LinesAdded, _ = in.Whole("lines_added", object.Optional, 0)
		f.LinesRemoved, _ = in.Whole("lines_removed", object.Optional, 0)
		f.Description = in.Text("description", object.Optional)
		if f.Type = in.OneOf("change_type", object.Required, ChangeTypes); f.Type != kind {
			in.Note("change_type", fmt.Sprintf("is %.80q, but is listed in %s", f.Type, key))
		}
		files = append(files, f)
	})
	return files
}

// Feedback is the payload of feedback, which any agent may send to any other.
type Feedback struct {
	// The kind of feedback.
	Type string `json:"feedback_type" schema:"enum=session.FeedbackTypes"`
	// The subject.
	Subject string `json:"subject"`
	// The text of the feedback.
	Content string `json:"content"`
	// Whether an action is required.
	ActionRequired bool `json:"action_required"`
	// The id of the task that the feedback is about.
	TaskID string `json:"related_task_id,omitzero" schema:"id"`
}

func readFeedback(p *object.Decoder) *Feedback {
	return &Feedback{
		Type: p.OneOf("feedback_type", object.Required, FeedbackTypes), Subject: p.Text("subject", object.Required), Content: p.Text("content", object.Required),
		ActionRequired: p.Bool("action_required", object.Required), TaskID: p.ID("related_task_id", object.Optional),
	}
}

// StatusQuery is the payload of status_query.
type StatusQuery struct {
	// The id of the task; all tasks when it is missing.
	TaskID string `json:"task_id,omitzero" schema:"id"`
}

// StatusResponse is the payload of status_response: any object. It is not read here.
type StatusResponse struct{}

// Abort is the payload of abort.
type Abort struct {
	// Whether it ends a task or the session.
	Scope string `json:"scope" schema:"enum=session.AbortScopes"`
	// The id of the task, or of the session.
	TargetID string `json:"target_id" schema:"id"`
	// The reason.
	Reason string `json:"reason"`
	// Whether the agent that did the work must clean up.
	CleanupRequired bool `json:"cleanup_required"`
}

func readAbort(p *object.Decoder) *Abort {
	return &Abort{
		Scope: p.OneOf("scope", object.Required, AbortScopes), TargetID: p.ID("target_id", object.Required), Reason: p.Text("reason", object.Required),
		CleanupRequired: p.Bool("cleanup_required", object.Required),
	}
}

// Acknowledgment is the payload of acknowledgment: any object.
type Acknowledgment struct{}
