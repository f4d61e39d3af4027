package agents

import (
	"orchestrator/wire/session"
)

// Assignment is a task as an architect gives it to a developer.
type Assignment struct {
	Task          TaskInput        `json:"task"`
	Priority      string           `json:"priority"`                // wire.PriorityHigh and so on; medium when it is ""
	Deadline      string           `json:"deadline,omitzero"`       // advisory; an ISO 8601 time
	MaxIterations int64            `json:"max_iterations,omitzero"` // of reviews; 0: the default of the session
	Dependencies  []TaskDependency `json:"dependencies,omitzero"`
}

// TaskInput describes the work to do.
type TaskInput struct {
	TaskID             string      `json:"task_id"`
	Description        string      `json:"task_description"`
	Context            TaskContext `json:"context"`
	Constraints        Constraints `json:"constraints"`
	AcceptanceCriteria []string    `json:"acceptance_criteria"`
}

// TaskContext lists what to read before the work begins.
type TaskContext struct {
	Specs            []ContextFile `json:"specs"`
	ReferenceFiles   []ContextFile `json:"reference_files"`
	PreviousAttempts []Attempt     `json:"previous_attempts,omitzero"`
}

// ContextFile is a file to read, and why.
type ContextFile struct {
	Path     string   `json:"path"`
	Reason   string   `json:"reason"`
	Sections []string `json:"sections,omitzero"` // the relevant ones; none means the whole file
}

// Attempt records the outcome of an earlier attempt at a task.
type Attempt struct {
	Number   int64  `json:"attempt_number"`
	Outcome  string `json:"outcome"`
	Feedback string `json:"feedback"`
}

// Constraints are what the work must keep to.
type Constraints struct {
	Scope           []string `json:"scope"` // patterns of the files that may change; if empty, none may
	TestingRequired bool     `json:"testing_required"`
	MustNotBreak    []string `json:"must_not_break"`
	StyleGuide      string   `json:"style_guide,omitzero"` // the path of one
}

// TaskDependency lists the tasks that a task waits for.
type TaskDependency struct {
	TaskID    string   `json:"task_id,omitzero"` // the task that waits; "" means the assigned one
	DependsOn []string `json:"depends_on"`
	Type      string   `json:"dependency_type"` // wire.DependsHard, or "soft" for one that does not block
}

// After returns dependencies on tasks that must be done first.
func After(tasks ...string) []TaskDependency {
	if len(tasks) == 0 {
		return nil
	}
	return []TaskDependency{{DependsOn: tasks, Type: session.DependsHard}}
}

// Progress reports how far a developer is with a task.
type Progress struct {
	TaskID    string   `json:"task_id"`
	Percent   float64  `json:"progress_percent"` // from 0 to 100
	Step      string   `json:"current_step"`
	Files     []string `json:"files_modified_so_far"`
	Remaining string   `json:"estimated_remaining,omitzero"` // in free text
	Blockers  []string `json:"blockers,omitzero"`
}

// Completion reports the outcome of a task.
type Completion struct {
	TaskID      string                  `json:"task_id"` // "" means the id of the assignment
	Status      string                  `json:"status"`  // "" means wire.OutcomeCompleted
	Changes     FileChanges             `json:"changes"`
	Summary     string                  `json:"summary"`
	Notes       string                  `json:"implementation_notes,omitzero"`
	SelfReview  SelfReview              `json:"self_review"`
	Blockers    []string                `json:"blockers,omitzero"` // why it is not completed
	Suggestions []string                `json:"suggestions,omitzero"`
	Error       *session.ExecutionError `json:"error,omitzero"` // details of the failure: an extension
}

// FileChanges are the files that a developer has changed.
type FileChanges struct {
	Created  []FileChange `json:"files_created"`
	Modified []FileChange `json:"files_modified"`
	Deleted  []string     `json:"files_deleted"`
}

// FileChange describes the change of one file.
type FileChange struct {
	Path         string `json:"path"`
	Type         string `json:"change_type"` // "" means the type of the list that holds it
	LinesAdded   int64  `json:"lines_added,omitzero"`
	LinesRemoved int64  `json:"lines_removed,omitzero"`
	Description  string `json:"description,omitzero"`
}

// SelfReview records what a developer has checked before completing a task.
type SelfReview struct {
	TestsRun        bool     `json:"tests_run"`
	TestsPassed     bool     `json:"tests_passed"`
	TypeCheckPassed bool     `json:"type_check_passed"`
	KnownIssues     []string `json:"known_issues,omitzero"`
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

// typed fills in the change type of each file that has none.
func (c FileChanges) typed() FileChanges {
	return FileChanges{Created: typed(c.Created, session.ChangeCreated), Modified: typed(c.Modified, session.ChangeModified), Deleted: c.Deleted}
}

func typed(files []FileChange, change string) []FileChange {
	all := make([]FileChange, 0, len(files))
	for _, file := range files {
		if file.Type == "" {
			file.Type = change
		}
		all = append(all, file)
	}
	return all
}
