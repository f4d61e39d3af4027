package agents

import "orchestrator/wire"

// Assignment is a task as an architect gives it to a developer.
type Assignment struct {
	Task          TaskInput        `json:"task"`
	Priority      string           `json:"priority"`                // wire.PriorityHigh and so on; medium when it is ""
	Deadline      string           `json:"deadline,omitzero"`       // a wish: an ISO 8601 time
	MaxIterations int64            `json:"max_iterations,omitzero"` // of reviews; 0: as the session has it
	Dependencies  []TaskDependency `json:"dependencies,omitzero"`
}

// TaskInput is what there is to do.
type TaskInput struct {
	TaskID             string      `json:"task_id"`
	Description        string      `json:"task_description"`
	Context            TaskContext `json:"context"`
	Constraints        Constraints `json:"constraints"`
	AcceptanceCriteria []string    `json:"acceptance_criteria"`
}

// TaskContext is what there is to read before the work begins.
type TaskContext struct {
	Specs            []ContextFile `json:"specs"`
	ReferenceFiles   []ContextFile `json:"reference_files"`
	PreviousAttempts []Attempt     `json:"previous_attempts,omitzero"`
}

// ContextFile is a file to read, and why.
type ContextFile struct {
	Path     string   `json:"path"`
	Reason   string   `json:"reason"`
	Sections []string `json:"sections,omitzero"` // what matters of it; all, when there are none
}

// Attempt is what came of an earlier attempt at a task.
type Attempt struct {
	Number   int64  `json:"attempt_number"`
	Outcome  string `json:"outcome"`
	Feedback string `json:"feedback"`
}

// Constraints are what the work must keep to.
type Constraints struct {
	Scope           []string `json:"scope"` // patterns of the files that may be changed; without any, none may
	TestingRequired bool     `json:"testing_required"`
	MustNotBreak    []string `json:"must_not_break"`
	StyleGuide      string   `json:"style_guide,omitzero"` // the path of one
}

// TaskDependency is what a task waits for.
type TaskDependency struct {
	TaskID    string   `json:"task_id,omitzero"` // that waits; the assigned one when it is ""
	DependsOn []string `json:"depends_on"`
	Type      string   `json:"dependency_type"` // wire.DependsHard, or "soft" for one that holds nothing up
}

// After are dependencies on tasks that must be done first.
func After(tasks ...string) []TaskDependency {
	if len(tasks) == 0 {
		return nil
	}
	return []TaskDependency{{DependsOn: tasks, Type: wire.DependsHard}}
}

// Progress is how far a developer is.
type Progress struct {
	TaskID    string   `json:"task_id"`
	Percent   float64  `json:"progress_percent"` // from 0 to 100
	Step      string   `json:"current_step"`
	Files     []string `json:"files_modified_so_far"`
	Remaining string   `json:"estimated_remaining,omitzero"` // how long it takes yet, in any words
	Blockers  []string `json:"blockers,omitzero"`
}

// Completion is what came of a task.
type Completion struct {
	TaskID      string                   `json:"task_id"` // that of the assignment when it is ""
	Status      string                   `json:"status"`  // wire.OutcomeCompleted when it is ""
	Changes     FileChanges              `json:"changes"`
	Summary     string                   `json:"summary"`
	Notes       string                   `json:"implementation_notes,omitzero"`
	SelfReview  SelfReview               `json:"self_review"`
	Blockers    []string                 `json:"blockers,omitzero"` // why it is not completed
	Suggestions []string                 `json:"suggestions,omitzero"`
	Error       *wire.TaskExecutionError `json:"error,omitzero"` // how it went wrong: an extension
}

// FileChanges are the files that a developer has changed.
type FileChanges struct {
	Created  []FileChange `json:"files_created"`
	Modified []FileChange `json:"files_modified"`
	Deleted  []string     `json:"files_deleted"`
}

// FileChange is one of them.
type FileChange struct {
	Path         string `json:"path"`
	Type         string `json:"change_type"` // as the list has it in which it stands, when it is ""
	LinesAdded   int64  `json:"lines_added,omitzero"`
	LinesRemoved int64  `json:"lines_removed,omitzero"`
	Description  string `json:"description,omitzero"`
}

// SelfReview is what a developer has looked at before saying that it is done.
type SelfReview struct {
	TestsRun        bool     `json:"tests_run"`
	TestsPassed     bool     `json:"tests_passed"`
	TypeCheckPassed bool     `json:"type_check_passed"`
	KnownIssues     []string `json:"known_issues,omitzero"`
}

// Touched are all files of the changes.
func (c FileChanges) Touched() []string {
	files := make([]string, 0, len(c.Created)+len(c.Modified)+len(c.Deleted))
	for _, list := range [][]FileChange{c.Created, c.Modified} {
		for _, file := range list {
			files = append(files, file.Path)
		}
	}
	return append(files, c.Deleted...)
}

// typed says of each file what was done to it, where the caller has not.
func (c FileChanges) typed() FileChanges {
	return FileChanges{Created: typed(c.Created, wire.ChangeCreated), Modified: typed(c.Modified, wire.ChangeModified), Deleted: c.Deleted}
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
