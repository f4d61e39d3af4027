package session

import (
	"fmt"

	"orchestrator/wire/object"
)

// Assignment is the payload of task_assignment.
type Assignment struct {
	Task          DeveloperInput
	Priority      string // Priority… above
	Deadline      string // advisory; "" if there is none
	MaxIterations int64  // 0: not set; see DefaultIterations
	Dependencies  []Dependency
}

// DeveloperInput is a task as its developer receives it. The reading list and the results of
// earlier attempts are only for the developer and are not read here.
type DeveloperInput struct {
	TaskID             string
	Description        string
	Scope              []string // patterns of the files that may be changed
	TestingRequired    bool
	MustNotBreak       []string
	AcceptanceCriteria []string
	Attempts           int // number of earlier attempts that it lists
}

// A Dependency names tasks that a task waits for. It is an extension: the protocol knows
// dependencies, but no message for them.
type Dependency struct {
	TaskID    string // the waiting task; by default the one that is assigned
	DependsOn []string
	Type      string // DependsHard or DependsOptional
}

func readAssignment(p *object.Decoder) *Assignment {
	a := new(Assignment)
	p.Inside("task", object.Required, func(in *object.Decoder) { a.Task = readDeveloperInput(in) })
	a.Priority = p.OneOf("priority", object.Required, Priorities)
	a.Deadline = p.Time("deadline", object.Optional)
	a.MaxIterations, _ = p.Whole("max_iterations", object.Optional, 1)
	p.Objects("dependencies", object.Optional, func(in *object.Decoder) {
		d := Dependency{
			TaskID: in.ID("task_id", object.Optional), DependsOn: in.Names("depends_on", object.Required),
			Type: in.OneOf("dependency_type", object.Required, DependencyTypes),
		}
		if d.TaskID == "" {
			d.TaskID = a.Task.TaskID
		}
		a.Dependencies = append(a.Dependencies, d)
	})
	return a
}

func readDeveloperInput(p *object.Decoder) DeveloperInput {
	t := DeveloperInput{TaskID: p.ID("task_id", object.Required), Description: p.Text("task_description", object.Required)}
	p.Inside("context", object.Required, func(in *object.Decoder) {
		in.Objects("specs", object.Required, checkContextFile)
		in.Objects("reference_files", object.Required, checkContextFile)
		in.Objects("previous_attempts", object.Optional, func(attempt *object.Decoder) {
			t.Attempts++
			attempt.Whole("attempt_number", object.Required, 0)
			attempt.Text("outcome", object.Required)
			attempt.Text("feedback", object.Required)
		})
	})
	p.Inside("constraints", object.Required, func(in *object.Decoder) {
		t.Scope = in.Names("scope", object.Required)
		t.TestingRequired = in.Bool("testing_required", object.Required)
		t.MustNotBreak = in.Texts("must_not_break", object.Forgivable)
		in.Text("style_guide", object.Optional)
	})
	t.AcceptanceCriteria = p.Texts("acceptance_criteria", object.Required)
	return t
}

func checkContextFile(p *object.Decoder) {
	p.Name("path", object.Required)
	p.Text("reason", object.Required)
	p.Texts("sections", object.Optional)
}

// Progress is the payload of task_progress.
type Progress struct {
	TaskID    string
	Percent   float64 // from 0 to 100; 1 is one percent
	Step      string  // what the developer does now
	Files     []string
	Remaining string // the remaining time, as free text
	Blockers  []string
}

func readSessionProgress(p *object.Decoder) *Progress {
	return &Progress{
		TaskID: p.ID("task_id", object.Required), Percent: p.Percent("progress_percent"), Step: p.Text("current_step", object.Required),
		Files: p.Names("files_modified_so_far", object.Required), Remaining: p.Text("estimated_remaining", object.Optional), Blockers: p.Texts("blockers", object.Optional),
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

	TestsRun, TestsPassed, TypeCheckPassed bool // as reported by the developer

	Error *ExecutionError // an extension: what went wrong; nil if missing or not valid
}

// FileChange is a file that a developer created or modified.
type FileChange struct {
	Path         string
	LinesAdded   *int64 // nil: not counted
	LinesRemoved *int64
}

// Touched returns the files of a completion: created, modified and deleted.
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

func readCompletion(p *object.Decoder) *Completion {
	c := &Completion{TaskID: p.ID("task_id", object.Required), Status: p.OneOf("status", object.Required, Outcomes)}
	p.Inside("changes", object.Required, func(in *object.Decoder) {
		c.Created = readFileChanges(in, "files_created", ChangeCreated)
		c.Modified = readFileChanges(in, "files_modified", ChangeModified)
		c.Deleted = in.Names("files_deleted", object.Required)
	})
	c.Summary = p.Text("summary", object.Required)
	p.Text("implementation_notes", object.Optional)
	p.Inside("self_review", object.Required, func(in *object.Decoder) {
		c.TestsRun, c.TestsPassed = in.Bool("tests_run", object.Required), in.Bool("tests_passed", object.Required)
		c.TypeCheckPassed = in.Bool("type_check_passed", object.Required)
		in.Texts("known_issues", object.Optional)
		if c.TestsPassed && !c.TestsRun {
			in.Note("tests_passed", "is true, and tests_run is false: they cannot have passed")
		}
	})
	c.Blockers = p.Texts("blockers", object.Optional)
	p.Texts("suggestions", object.Optional)
	if len(c.Blockers) == 0 && (c.Status == OutcomePartial || c.Status == OutcomeFailed) {
		p.Note("blockers", "says nothing: it should say why the status is "+c.Status)
	}
	c.Error = readExecutionError(p, "error", c.TaskID)
	return c
}

// readExecutionError reads what went wrong with the work on a task. It is an extension, so an
// error in it does not refuse the message.
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
		f := FileChange{Path: in.Name("path", object.Required), LinesAdded: in.Count("lines_added"), LinesRemoved: in.Count("lines_removed")}
		in.Text("description", object.Optional)
		if is := in.OneOf("change_type", object.Required, ChangeTypes); is != kind {
			in.Note("change_type", fmt.Sprintf("is %.80q, and it stands among %s", is, key))
		}
		files = append(files, f)
	})
	return files
}
