package session

import (
	"strings"

	"orchestrator/wire/object"
)

// Assignment is a task as an architect gives it to a developer.
type Assignment struct {
	// The task.
	Task TaskInput `json:"task"`
	// The priority of the task.
	Priority string `json:"priority" schema:"enum=session.Priorities"`
	// When the task should be done: an ISO 8601 time. It is advisory: the work continues after it.
	Deadline string `json:"deadline,omitzero" schema:"time"`
	// The maximum number of reviews of the task. The default is the maximum of the session.
	MaxIterations int64 `json:"max_iterations,omitzero" schema:"whole=1"`
	// The tasks that the task waits for. An extension of the published protocol.
	Dependencies []Dependency `json:"dependencies,omitzero" schema:"each:about=A dependency of a task."`
}

// TaskInput describes the work to do.
type TaskInput struct {
	// The id of the task, unique among all tasks.
	TaskID string `json:"task_id" schema:"id"`
	// The work to do, for people.
	Description string `json:"task_description"`
	// The context of the task.
	Context TaskContext `json:"context"`
	// The constraints of the work.
	Constraints Constraints `json:"constraints"`
	// The conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptance_criteria"`
}

// TaskContext lists the material to read before the work begins.
type TaskContext struct {
	// The specifications of the task.
	Specs []ContextFile `json:"specs"`
	// Files to read before the work begins.
	ReferenceFiles []ContextFile `json:"reference_files"`
	// The previous attempts.
	PreviousAttempts []Attempt `json:"previous_attempts,omitzero" schema:"each:about=An attempt."`
}

// ContextFile is a file to read, and why.
type ContextFile struct {
	// The path of the file.
	Path string `json:"path" schema:"nonblank"`
	// Why the file is worth reading.
	Reason string `json:"reason"`
	// The relevant parts of the file; all of it when they are missing.
	Sections []string `json:"sections,omitzero"`
}

// Attempt records the outcome of an earlier attempt at a task.
type Attempt struct {
	// The number of the attempt.
	Number int64 `json:"attempt_number" schema:"whole=0"`
	// The outcome of the attempt.
	Outcome string `json:"outcome"`
	// The feedback on the attempt.
	Feedback string `json:"feedback"`
}

// Constraints are the limits of the work.
type Constraints struct {
	// Patterns of the files that may be created, modified or deleted. With an empty list no file may
	// be changed.
	Scope []string `json:"scope" schema:"each:nonblank"`
	// Whether the tests must be run.
	TestingRequired bool `json:"testing_required"`
	// The features that must continue to work. Unless the session is strict, the member may be
	// missing.
	MustNotBreak []string `json:"must_not_break"`
	// Where the style guide is.
	StyleGuide string `json:"style_guide,omitzero"`
}

// Dependency lists the tasks that a task waits for.
type Dependency struct {
	// The task that waits; the assigned task when it is missing.
	TaskID string `json:"task_id,omitzero" schema:"id"`
	// The tasks that it waits for.
	DependsOn []string `json:"depends_on" schema:"each:nonblank"`
	// hard: the task waits until they are done. soft: the task does not wait, and its developer gets
	// their results later.
	Type string `json:"dependency_type" schema:"enum=session.DependencyTypes"`
}

func readAssignment(p *object.Decoder) *Assignment {
	a := new(Assignment)
	p.Inside("task", object.Required, func(in *object.Decoder) { a.Task = readTaskInput(in) })
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

func readTaskInput(p *object.Decoder) TaskInput {
	t := TaskInput{TaskID: p.ID("task_id", object.Required), Description: p.Text("task_description", object.Required)}
	p.Inside("context", object.Required, func(in *object.Decoder) {
		t.Context.Specs = readContextFiles(in, "specs")
		t.Context.ReferenceFiles = readContextFiles(in, "reference_files")
		in.Objects("previous_attempts", object.Optional, func(attempt *object.Decoder) {
			number, _ := attempt.Whole("attempt_number", object.Required, 0)
			t.Context.PreviousAttempts = append(t.Context.PreviousAttempts, Attempt{
				Number: number, Outcome: attempt.Text("outcome", object.Required), Feedback: attempt.Text("feedback", object.Required),
			})
		})
	})
	p.Inside("constraints", object.Required, func(in *object.Decoder) {
		t.Constraints = Constraints{
			Scope: in.Names("scope", object.Required), TestingRequired: in.Bool("testing_required", object.Required),
			MustNotBreak: in.Texts("must_not_break", object.Forgivable), StyleGuide: in.Text("style_guide", object.Optional),
		}
	})
	t.AcceptanceCriteria = p.Texts("acceptance_criteria", object.Required)
	return t
}

func readContextFiles(p *object.Decoder, key string) (files []ContextFile) {
	p.Objects(key, object.Required, func(in *object.Decoder) {
		files = append(files, ContextFile{
			Path: in.Name("path", object.Required), Reason: in.Text("reason", object.Required), Sections: in.Texts("sections", object.Optional),
		})
	})
	return files
}

// maxName is the maximum length of a task name that is taken from its description, in
// characters.
const maxName = 80

// FirstWords returns the first line of a text, cut to maxName.
func FirstWords(text, otherwise string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > maxName {
		line = string(runes[:maxName-1]) + "…"
	}
	if line == "" {
		return otherwise
	}
	return line
}
