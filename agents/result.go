package agents

import (
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// Result is a structured result. Its contracts are delivered to the tasks that depend on them.
// A handler returns it like any other result:
//
//	return agents.Result{
//		Summary:   "The form keeps the name",
//		Contracts: map[string]agents.Contract{"form_fields": agents.Fulfilled(fields)},
//	}, nil
type Result struct {
	Summary   string              `json:"summary"` // what was done, in a line
	Changes   Changes             `json:"changes,omitzero"`
	Contracts map[string]Contract `json:"contracts,omitzero"` // by the keys that the task spec names
	Tests     Tests               `json:"tests,omitzero"`
	Artifacts map[string]any      `json:"artifacts,omitzero"` // what else there is, by name
}

// MarshalJSON adds the $schema of the document.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result // without this method
	return object.Encode(struct {
		Schema string `json:"$schema"`
		Plain  plain  `json:",embed"`
	}{Schema: hub.SchemaResult + "v1", Plain: plain(r)})
}

// Contract is one delivery of a result.
type Contract struct {
	Status string `json:"status"` // wire.ContractFulfilled and so on
	Data   any    `json:"data,omitzero"`
}

// Fulfilled returns a contract that is delivered completely. The data is usually an object.
func Fulfilled(data any) Contract { return Contract{Status: hub.ContractFulfilled, Data: data} }

// Partial returns a contract that is delivered in part.
func Partial(data any) Contract { return Contract{Status: hub.ContractPartial, Data: data} }

// Skipped returns a contract that is not delivered, with the reason.
func Skipped(reason string) Contract {
	return Contract{Status: hub.ContractSkipped, Data: map[string]string{"reason": reason}}
}

// Changes lists the files changed for a task.
type Changes struct {
	Modified     []string `json:"files_modified,omitzero"`
	Created      []string `json:"files_created,omitzero"`
	Deleted      []string `json:"files_deleted,omitzero"`
	LinesAdded   int64    `json:"lines_added,omitzero"`
	LinesRemoved int64    `json:"lines_removed,omitzero"`
}

// Tests summarizes a test run.
type Tests struct {
	Framework string  `json:"framework,omitzero"`
	Total     int64   `json:"total"`
	Passed    int64   `json:"passed"`
	Failed    int64   `json:"failed"`
	Skipped   int64   `json:"skipped"`
	Coverage  float64 `json:"coverage_percent,omitzero"`
}
