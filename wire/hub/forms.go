package hub

import (
	"orchestrator/wire/object"
)

// The types of this file are documents in their written form: each declares all members. The
// readers fill Spec, Result, Requirements and Capabilities, which have only the members that
// decisions need.

// A SpecDocument is a task spec in its written form.
type SpecDocument struct {
	// The kind and the version of the document.
	Schema string `json:"$schema" schema:"const=orchestratia/task-spec/v1"`
	// The parts of the work.
	Requirements []SpecRequirement `json:"requirements" schema:"minitems=1"`
	// Background for the task.
	InputContext SpecContext `json:"input_context,omitzero"`
	// The constraints of the work. Only the agent checks them, except max_files_changed.
	Constraints SpecConstraints `json:"constraints,omitzero"`
	// The demands on the result.
	OutputExpectations SpecExpectations `json:"output_expectations,omitzero"`
}

// A SpecRequirement is a part of the work.
type SpecRequirement struct {
	// The work to do.
	Description string `json:"description" schema:"nonblank"`
	// must: required. should: leave it out only for a good reason. could: if time permits.
	Priority string `json:"priority" schema:"enum=hub.SpecPriorities"`
	// The category, in free words.
	Category string `json:"category,omitzero"`
}

// A SpecContext is background for a task.
type SpecContext struct {
	// The references to read first.
	References []SpecReference `json:"references,omitzero"`
}

// A SpecReference is a task, a file or a page to read.
type SpecReference struct {
	// The type of the reference.
	Type string `json:"type" schema:"enum=hub.SpecReferences"`
	// The id of the task or the name of the file, which need it. An id of a task that is not a UUID
	// causes a warning.
	ID string `json:"id,omitzero"`
	// The URL; required for the type url.
	URL string `json:"url,omitzero"`
	// A description of the reference.
	Description string `json:"description,omitzero"`
}

// SpecConstraints are the constraints of the work on a task.
type SpecConstraints struct {
	// The languages to use.
	Languages []string `json:"languages,omitzero" schema:"each:nonblank"`
	// The frameworks to use.
	Frameworks []string `json:"frameworks,omitzero" schema:"each:nonblank"`
	// Whether tests are required.
	Testing string `json:"testing,omitzero" schema:"enum=hub.SpecTesting"`
	// Whether everything that depends on the work must continue to work.
	NoBreakingChanges bool `json:"no_breaking_changes,omitzero"`
	// The maximum number of changed files; 0 means no limit. A result with more is accepted with a
	// warning.
	MaxFilesChanged int64 `json:"max_files_changed,omitzero" schema:"whole=0"`
	// Other constraints.
	Custom object.Raw `json:"custom,omitzero" schema:"type=object"`
}

// SpecExpectations are the demands on the result of a task.
type SpecExpectations struct {
	// The contracts that the task delivers to other tasks. A key has letters from a to z, digits and
	// underscores. A contract has a description, and may have a format and the member required.
	Contracts map[string]SpecContract `json:"contracts,omitzero" schema:"keys=word"`
	// The names of other expected products. A missing product has no consequence.
	Artifacts []string `json:"artifacts,omitzero" schema:"each:nonblank"`
}

// A SpecContract is a contract that a task spec declares.
type SpecContract struct {
	// The description of the contract.
	Description string `json:"description" schema:"nonblank"`
	// The format of the data. It is only a hint and is not checked.
	Format string `json:"format,omitzero"`
	// Whether a result without this contract causes a warning; false when it is missing.
	Required bool `json:"required,omitzero"`
}

// A ResultDocument is a structured result in its written form. Its contracts are delivered to the
// tasks that depend on them.
type ResultDocument struct {
	// The kind and the version of the document.
	Schema string `json:"$schema" schema:"const=orchestratia/task-result/v1"` // "": this version
	// A summary in one line.
	Summary string `json:"summary" schema:"nonblank"`
	// The changes to files.
	Changes ResultChanges `json:"changes,omitzero"`
	// The delivered contracts, by the keys of the task spec; other keys are delivered too. Each
	// contract has a status and data. The data goes unchanged to the tasks that need it, and should
	// be an object. The data of a skipped contract has the reason.
	Contracts map[string]ResultContract `json:"contracts,omitzero"`
	// The results of the tests. The numbers need not add up.
	Tests ResultTests `json:"tests,omitzero"`
	// Other products of the task, by name.
	Artifacts map[string]any `json:"artifacts,omitzero" schema:"type=object"`
}

// MarshalJSON adds the $schema of the document if it is missing.
func (r ResultDocument) MarshalJSON() ([]byte, error) {
	type plain ResultDocument // without this method
	if r.Schema == "" {
		r.Schema = SchemaResult + schemaKnown
	}
	return object.Encode(plain(r))
}

// ResultChanges are the files that were changed for a task.
type ResultChanges struct {
	// The modified files.
	Modified []string `json:"files_modified,omitzero" schema:"each:nonblank"`
	// The new files.
	Created []string `json:"files_created,omitzero" schema:"each:nonblank"`
	// The deleted files.
	Deleted []string `json:"files_deleted,omitzero" schema:"each:nonblank"`
	// The number of added lines.
	LinesAdded int64 `json:"lines_added,omitzero" schema:"whole=0"`
	// The number of removed lines.
	LinesRemoved int64 `json:"lines_removed,omitzero" schema:"whole=0"`
}

// A ResultContract is one delivery of a result.
type ResultContract struct {
	// Whether data is everything that was promised (fulfilled), a part of it (partial), or only the
	// reason for its absence (skipped).
	Status string `json:"status" schema:"enum=hub.ContractStatuses"`
	// The delivered data.
	Data any `json:"data,omitzero"`
}

// ResultTests summarizes a test run.
type ResultTests struct {
	// The test framework.
	Framework string `json:"framework,omitzero"`
	// The number of tests.
	Total int64 `json:"total" schema:"whole=0,optional"`
	// The number of tests that passed.
	Passed int64 `json:"passed" schema:"whole=0,optional"`
	// The number of tests that failed.
	Failed int64 `json:"failed" schema:"whole=0,optional"`
	// The number of tests that did not run.
	Skipped int64 `json:"skipped" schema:"whole=0,optional"`
	// The coverage, in percent.
	Coverage float64 `json:"coverage_percent,omitzero"`
}

// A RequirementsDocument is a requirements document in its written form.
type RequirementsDocument struct {
	// The kind and the version of the document; this version when it is missing.
	Schema string `json:"$schema" schema:"const=orchestratia/requirements/v1,optional"`
	// The agent must have this repository.
	Repo string `json:"repo,omitzero"`
	// The agent must know all of these.
	Languages []string `json:"languages,omitzero" schema:"each:nonblank"`
	// The agent must run in one of these.
	Environments []string `json:"environments,omitzero" schema:"each:nonblank"`
	// Agents that have more of these are preferred.
	Tools []string `json:"tools,omitzero" schema:"each:nonblank"`
	// Agents with more of these tags are preferred.
	Tags []string `json:"tags,omitzero" schema:"each:nonblank"`
	// The name of the preferred agent.
	Prefer string `json:"prefer_server,omitzero"`
}

// A CapabilitiesDocument is a capabilities document in its written form.
type CapabilitiesDocument struct {
	// The kind and the version of the document; this version when it is missing.
	Schema string `json:"$schema" schema:"const=orchestratia/capabilities/v1,optional"`
	// The repositories of the agent, by name. Each may have a path, languages and tools.
	Repos map[string]RepoDocument `json:"repos,omitzero" schema:"each:null"`
	// The languages that the agent can write.
	Languages []string `json:"languages,omitzero" schema:"each:nonblank"`
	// The tools that the agent has.
	Tools []string `json:"tools,omitzero" schema:"each:nonblank"`
	// The environments that the agent runs in, such as linux.
	Environments []string `json:"environments,omitzero" schema:"each:nonblank"`
	// The strengths of the agent, in free words.
	Tags []string `json:"tags,omitzero" schema:"each:nonblank"`
	// The maximum number of tasks at a time; 1 when it is missing. With 0 the agent gets no tasks.
	Capacity int `json:"max_concurrent_tasks" schema:"whole=0,optional"`
}

// A RepoDocument is a repository in a capabilities document.
type RepoDocument struct {
	// The path of the repository.
	Path string `json:"path,omitzero"`
	// The languages of the repository.
	Languages []string `json:"languages,omitzero" schema:"each:nonblank"`
	// The tools for working on the repository.
	Tools []string `json:"tools,omitzero" schema:"each:nonblank"`
}
