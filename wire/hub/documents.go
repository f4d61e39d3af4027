package hub

import (
	"orchestrator/wire/object"
)

// This file declares the documents that a task or an agent may have. A document is stored
// unchanged, digit for digit and with unknown keys. The types hold only the members that
// decisions need.

// The families of documents: the part of $schema before the version.
const (
	SchemaSpec         = "orchestratia/task-spec/"
	SchemaResult       = "orchestratia/task-result/"
	SchemaCapabilities = "orchestratia/capabilities/"
	SchemaRequirements = "orchestratia/requirements/"
)

// An Oddity is a warning about a document that is accepted.
type Oddity struct {
	Kind    string `json:"kind"` // of the event that reports it: EventSchemaUnknown or EventDocumentOdd
	Pointer string `json:"pointer"`
	Text    string `json:"text"`
}

// A Spec is a task spec: a description of a task for programs.
type Spec struct {
	Document object.Raw
	Promises []Promise // in the order of their keys
	MaxFiles int64     // that a result may touch without a warning; 0: no limit
	Oddities []Oddity
}

// Promise is a contract that a spec declares.
type Promise struct {
	Key      string `json:"key"`
	Required bool   `json:"required,omitzero"`
}

// A Result is the outcome of a task.
type Result struct {
	Document   object.Raw // any value
	Structured bool       // it has a $schema, and so contracts count
	Contracts  []Contract // in the order of their keys
	Files      int        // number of files that it claims to have touched
	Oddities   []Oddity
	Breach     *object.Error // why it does not conform to its $schema
}

// A Contract is the part of a result under one key.
type Contract struct {
	Key    string
	Status string     // fulfilled | partial | skipped
	Data   object.Raw // nil if absent
	Reason string     // why it was skipped
}

// Requirements are the demands of a task on its agent.
type Requirements struct {
	Document     object.Raw
	Repo         string   // must be there
	Languages    []string // all must be there
	Environments []string // one must be there
	Tools        []string // the more the better
	Tags         []string // the more the better
	Prefer       string   // the name of an agent
	Oddities     []Oddity
}

// Empty reports whether r is without demands.
func (r *Requirements) Empty() bool {
	return r == nil || r.Repo == "" && len(r.Languages) == 0 && len(r.Environments) == 0 &&
		len(r.Tools) == 0 && len(r.Tags) == 0 && r.Prefer == ""
}

// Capabilities are the skills and the capacity of an agent.
type Capabilities struct {
	Document     object.Raw
	Repos        []Repo // in the order of their names
	Languages    []string
	Environments []string
	Tools        []string
	Tags         []string
	Capacity     int // tasks that may run at a time: 1 by default
	Oddities     []Oddity
}

// Repo is a repository that an agent has.
type Repo struct {
	Name      string
	Path      string
	Languages []string
	Tools     []string
}

// Empty reports whether c has no value that requirements can name.
func (c *Capabilities) Empty() bool {
	return c == nil || len(c.Repos) == 0 && len(c.Languages) == 0 && len(c.Environments) == 0 &&
		len(c.Tools) == 0 && len(c.Tags) == 0
}

// The kinds of Dependency.
const (
	DependsBlocks  = "blocks"  // the other must be done first
	DependsInput   = "input"   // and a part of its result is needed
	DependsRelated = "related" // for information only
	DependsSoft    = "soft"    // the task does not wait; resolved when the other ends
)

// A Dependency names a task that another task depends on.
type Dependency struct {
	// The id of the other task.
	On string `json:"depends_on_task_id" schema:"nonblank"`
	// blocks: the other task must be done first; the default. input: part of its result is needed as
	// well. related: for information only.
	Type string `json:"dependency_type" schema:"enum=hub.DependencyTypes,optional"`
	// The part of the result that an input needs. With another type it has no meaning and causes a
	// warning.
	Contract string   `json:"contract_key,omitzero"`
	Private  bool     `json:"private,omitzero" schema:"-"` // the dependant does not show the result of the other
	Oddities []Oddity `json:"-"`
}

// ResultOf returns a Result with the document, which is any value. It returns nil for a nil
// document.
func ResultOf(document object.Raw) *Result {
	if document == nil {
		return nil
	}
	return &Result{Document: document}
}

// After returns dependencies on tasks that must be done first.
func After(ids ...string) []Dependency {
	var needs []Dependency
	for _, id := range ids {
		needs = append(needs, Dependency{On: id, Type: DependsBlocks})
	}
	return needs
}

// The following functions read documents from the log, which were accepted before. They return nil
// for a missing document.

// ReadSpec reads a Spec that was accepted.
func ReadSpec(document object.Raw) *Spec { return stored(document, SpecIn) }

// ReadResult reads a Result that was accepted.
func ReadResult(document object.Raw) *Result { return stored(document, ResultIn) }

// ReadRequirements reads Requirements that were accepted.
func ReadRequirements(document object.Raw) *Requirements { return stored(document, RequirementsIn) }

// ReadCapabilities reads Capabilities that were accepted.
func ReadCapabilities(document object.Raw) *Capabilities { return stored(document, CapabilitiesIn) }

func stored[T any](document object.Raw, read func(*object.Reader, string) *T) *T {
	if document == nil {
		return nil
	}
	o := object.Reader{Members: []object.Member{{Key: []byte("document"), Value: document}}}
	return read(&o, "document")
}

// Spell returns c as a capabilities document, or nil if c is empty. It is for capabilities that
// did not come as a document.
func (c *Capabilities) Spell() object.Raw {
	if c.Empty() {
		return nil
	}
	return c.spell()
}

func (c *Capabilities) spell() object.Raw {
	document := CapabilitiesDocument{
		Schema: SchemaCapabilities + schemaKnown, Languages: c.Languages, Tools: c.Tools, Environments: c.Environments,
		Tags: c.Tags, Capacity: c.Capacity,
	}
	for _, r := range c.Repos {
		if document.Repos == nil {
			document.Repos = make(map[string]RepoDocument)
		}
		document.Repos[r.Name] = RepoDocument{Path: r.Path, Languages: r.Languages, Tools: r.Tools}
	}
	text, err := object.Encode(document)
	if err != nil {
		return nil // strings and numbers can always be encoded
	}
	return text
}
