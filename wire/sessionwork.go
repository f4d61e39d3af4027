package wire

import "fmt"

// SessionAssignment is the payload of task_assignment.
type SessionAssignment struct {
	Task          DeveloperInput
	Priority      string // Priority… above
	Deadline      string // a wish; "" when there is none
	MaxIterations int64  // 0: not said; see SessionIterations
	Dependencies  []SessionDependency
}

// DeveloperInput is a task as a developer is given it. What there is to read
// first, and what came of earlier attempts, is only for the developer.
type DeveloperInput struct {
	TaskID             string
	Description        string
	Scope              []string // patterns of the files that may be changed
	TestingRequired    bool
	MustNotBreak       []string
	AcceptanceCriteria []string
	Attempts           int // that were made before, as far as it says
}

// SessionDependency is what a task waits for: an extension, for the protocol
// knows dependencies and no message that says them.
type SessionDependency struct {
	TaskID    string // that waits; the one that is assigned, by default
	DependsOn []string
	Type      string // DependsHard or DependsSoft
}

func (p *decoder) assignment() *SessionAssignment {
	a := new(SessionAssignment)
	p.inside("task", needed, func(in *decoder) { a.Task = in.developerInput() })
	a.Priority = p.word("priority", needed, sessionPriorities)
	a.Deadline = p.moment("deadline", optional)
	a.MaxIterations, _ = p.whole("max_iterations", optional, 1)
	p.each("dependencies", optional, func(in *decoder) {
		d := SessionDependency{
			TaskID: in.id("task_id", optional), DependsOn: in.names("depends_on", needed),
			Type: in.word("dependency_type", needed, sessionDependencies),
		}
		if d.TaskID == "" {
			d.TaskID = a.Task.TaskID
		}
		a.Dependencies = append(a.Dependencies, d)
	})
	return a
}

func (p *decoder) developerInput() DeveloperInput {
	t := DeveloperInput{TaskID: p.id("task_id", needed), Description: p.text("task_description", needed)}
	p.inside("context", needed, func(in *decoder) {
		in.each("specs", needed, (*decoder).contextFile)
		in.each("reference_files", needed, (*decoder).contextFile)
		in.each("previous_attempts", optional, func(attempt *decoder) {
			t.Attempts++
			attempt.whole("attempt_number", needed, 0)
			attempt.text("outcome", needed)
			attempt.text("feedback", needed)
		})
	})
	p.inside("constraints", needed, func(in *decoder) {
		t.Scope = in.names("scope", needed)
		t.TestingRequired = in.truth("testing_required", needed)
		t.MustNotBreak = in.texts("must_not_break", excusable)
		in.text("style_guide", optional)
	})
	t.AcceptanceCriteria = p.texts("acceptance_criteria", needed)
	return t
}

func (p *decoder) contextFile() {
	p.name("path", needed)
	p.text("reason", needed)
	p.texts("sections", optional)
}

// SessionProgress is the payload of task_progress.
type SessionProgress struct {
	TaskID    string
	Percent   float64 // from 0 to 100: 1 is one percent, not all of it
	Step      string  // what the developer is at
	Files     []string
	Remaining string // how long it takes yet, in the developer's words
	Blockers  []string
}

func (p *decoder) progress() *SessionProgress {
	return &SessionProgress{
		TaskID: p.id("task_id", needed), Percent: p.percent("progress_percent"), Step: p.text("current_step", needed),
		Files: p.names("files_modified_so_far", needed), Remaining: p.text("estimated_remaining", optional), Blockers: p.texts("blockers", optional),
	}
}

// Completion is the payload of task_completion.
type Completion struct {
	TaskID   string
	Status   string // Outcome… above
	Created  []FileChange
	Modified []FileChange
	Deleted  []string
	Summary  string
	Blockers []string // why it is not completed

	TestsRun, TestsPassed, TypeCheckPassed bool // as the developer says

	Error *TaskExecutionError // an extension: how it went wrong; nil: not said, or not so that it makes sense
}

// FileChange is a file that a developer created or modified.
type FileChange struct {
	Path         string
	LinesAdded   *int64 // nil: not counted
	LinesRemoved *int64
}

// Touched are the files of a completion: created, modified and deleted.
func (c *Completion) Touched() []string {
	files := make([]string, 0, len(c.Created)+len(c.Modified)+len(c.Deleted))
	for _, f := range c.Created {
		files = append(files, f.Path)
	}
	for _, f := range c.Modified {
		files = append(files, f.Path)
	}
	return append(files, c.Deleted...)
}

func (p *decoder) completion() *Completion {
	c := &Completion{TaskID: p.id("task_id", needed), Status: p.word("status", needed, outcomes)}
	p.inside("changes", needed, func(in *decoder) {
		c.Created = in.fileChanges("files_created", ChangeCreated)
		c.Modified = in.fileChanges("files_modified", ChangeModified)
		c.Deleted = in.names("files_deleted", needed)
	})
	c.Summary = p.text("summary", needed)
	p.text("implementation_notes", optional)
	p.inside("self_review", needed, func(in *decoder) {
		c.TestsRun, c.TestsPassed = in.truth("tests_run", needed), in.truth("tests_passed", needed)
		c.TypeCheckPassed = in.truth("type_check_passed", needed)
		in.texts("known_issues", optional)
		if c.TestsPassed && !c.TestsRun {
			in.odd("tests_passed", "is true, and tests_run is false: they cannot have passed")
		}
	})
	c.Blockers = p.texts("blockers", optional)
	p.texts("suggestions", optional)
	if len(c.Blockers) == 0 && (c.Status == OutcomePartial || c.Status == OutcomeFailed) {
		p.odd("blockers", "says nothing: it should say why the status is "+c.Status)
	}
	c.Error = p.executionError("error", c.TaskID)
	return c
}

// executionError reads how the work on a task went wrong. The protocol does not know
// it, and no message is refused for what stands there.
func (p *decoder) executionError(key, task string) *TaskExecutionError {
	var e *TaskExecutionError
	aside := decoder{Object: p.Object, all: new(judgement)}
	aside.inside(key, optional, func(in *decoder) {
		e = &TaskExecutionError{
			TaskID: task, ErrorType: in.word("error_type", needed, executionErrors), ErrorMessage: in.text("error_message", needed),
			Recoverable: in.truth("recoverable", optional), SuggestedAction: in.word("suggested_action", optional, suggestions),
		}
	})
	if problems := aside.all.problems; len(problems) > 0 {
		p.all.note(problems[0].Pointer, problems[0].Message+"; the "+key+" is passed over")
		return nil
	}
	return e
}

// fileChanges reads a list of changes that should all be of one kind.
func (p *decoder) fileChanges(key, kind string) (files []FileChange) {
	p.each(key, needed, func(in *decoder) {
		f := FileChange{Path: in.name("path", needed), LinesAdded: in.count("lines_added"), LinesRemoved: in.count("lines_removed")}
		in.text("description", optional)
		if is := in.word("change_type", needed, changeTypes); is != kind {
			in.odd("change_type", fmt.Sprintf("is %.80q, and it stands among %s", is, key))
		}
		files = append(files, f)
	})
	return files
}

// count is an optional number of things, nil if not said.
func (p *decoder) count(key string) *int64 {
	n, there := p.whole(key, optional, 0)
	if !there {
		return nil
	}
	return &n
}
