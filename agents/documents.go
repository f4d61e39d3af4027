package agents

import (
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// The payloads of session messages, and their parts. Members that are usually the same may be left
// out: the priority of an assignment is medium, a completion has the task of its assignment and the
// status completed, a file change has the type of its list, and a review result has the ids of its
// request.
type (
	Assignment     = session.Assignment
	TaskInput      = session.TaskInput
	TaskContext    = session.TaskContext
	ContextFile    = session.ContextFile
	Attempt        = session.Attempt
	Constraints    = session.Constraints
	TaskDependency = session.Dependency
	Progress       = session.Progress
	Completion     = session.Completion
	FileChanges    = session.FileChanges
	FileChange     = session.FileChange
	SelfReview     = session.SelfReview

	ReviewRequest  = session.ReviewRequest
	ReviewScope    = session.ReviewScope
	ReviewCriteria = session.ReviewCriteria
	CustomCheck    = session.CustomCheck
	ReviewContext  = session.ReviewContext
	ReviewSummary  = session.ReviewSummary
	ReviewResult   = session.ReviewResult
	Finding        = session.Finding
	Location       = session.Location
	Verification   = session.Verification
	CheckResult    = session.CheckResult
	RequiredChange = session.RequiredChange

	Feedback    = session.Feedback
	StatusQuery = session.StatusQuery
	Abort       = session.Abort
)

// After returns dependencies on tasks that must be done first.
func After(tasks ...string) []TaskDependency {
	if len(tasks) == 0 {
		return nil
	}
	return []TaskDependency{{DependsOn: tasks, Type: session.DependsHard}}
}

// withTypes fills in the change type of each file that has none.
func withTypes(c FileChanges) FileChanges {
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

// Result is a structured result. Its contracts are delivered to the tasks that depend on them.
// A handler returns it like any other result:
//
//	return agents.Result{
//		Summary:   "The form keeps the name",
//		Contracts: map[string]agents.Contract{"form_fields": agents.Fulfilled(fields)},
//	}, nil
type Result = hub.ResultDocument

// Types of the parts of a Result.
type (
	Contract = hub.ResultContract
	Changes  = hub.ResultChanges
	Tests    = hub.ResultTests
)

// Fulfilled returns a contract that is delivered completely. The data is usually an object.
func Fulfilled(data any) Contract { return Contract{Status: hub.ContractFulfilled, Data: data} }

// Partial returns a contract that is delivered in part.
func Partial(data any) Contract { return Contract{Status: hub.ContractPartial, Data: data} }

// Skipped returns a contract that is not delivered, with the reason.
func Skipped(reason string) Contract {
	return Contract{Status: hub.ContractSkipped, Data: map[string]string{"reason": reason}}
}
