package wire

import (
	"orchestrator/wire/object"
)

// The documents that a task or an agent may bring besides plain words. Each is
// kept as it came, digit for digit and with keys that are not known here; what is
// read out of it is what decisions need.

// The families of documents: the part of $schema before the version.
const (
	SchemaSpec         = "orchestratia/task-spec/"
	SchemaResult       = "orchestratia/task-result/"
	SchemaCapabilities = "orchestratia/capabilities/"
	SchemaRequirements = "orchestratia/requirements/"
)

// Oddity is what is worth a warning about a document that is accepted.
type Oddity struct {
	Kind    string `json:"kind"` // of the event that says it: EventSchemaUnknown or EventDocumentOdd
	Pointer string `json:"pointer"`
	Text    string `json:"text"`
}

// Spec is a task spec: what a task asks for, for programs.
type Spec struct {
	Document Raw
	Promises []Promise // in the order of their keys
	MaxFiles int64     // that a result may touch without a warning; 0: as many as it likes
	Oddities []Oddity
}

// Promise is a contract that a spec declares.
type Promise struct {
	Key      string `json:"key"`
	Required bool   `json:"required,omitzero"`
}

// Result is what a task came to.
type Result struct {
	Document   Raw        // an object or a text
	Structured bool       // it has a $schema, and so contracts count
	Contracts  []Contract // in the order of their keys
	Files      int        // that it says it touched
	Oddities   []Oddity
	Breach     *Error // why it is not what it says it is
}

// Contract is what a result delivers under a key.
type Contract struct {
	Key    string
	Status string // fulfilled | partial | skipped
	Data   Raw    // nil when there is none
	Reason string // of one that was skipped
}

// Requirements are what a task asks of its agent.
type Requirements struct {
	Document     Raw
	Repo         string   // must be there
	Languages    []string // all must be there
	Environments []string // one must be there
	Tools        []string // the more the better
	Tags         []string // the more the better
	Prefer       string   // the name of an agent
	Oddities     []Oddity
}

// Empty reports whether they ask for nothing.
func (r *Requirements) Empty() bool {
	return r == nil || r.Repo == "" && len(r.Languages) == 0 && len(r.Environments) == 0 &&
		len(r.Tools) == 0 && len(r.Tags) == 0 && r.Prefer == ""
}

// Capabilities are what an agent can do.
type Capabilities struct {
	Document     Raw
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

// Empty reports whether they offer nothing that could be asked for.
func (c *Capabilities) Empty() bool {
	return c == nil || len(c.Repos) == 0 && len(c.Languages) == 0 && len(c.Environments) == 0 &&
		len(c.Tools) == 0 && len(c.Tags) == 0
}

// The kinds of Dependency.
const (
	DependsBlocks  = "blocks"  // the other must be done first
	DependsInput   = "input"   // and something of its result is needed
	DependsRelated = "related" // it is worth knowing, no more
	DependsSoft    = "soft"    // whatever becomes of the other, it does not wait for it
)

// Dependency is what a task is to depend on.
type Dependency struct {
	On       string   `json:"depends_on_task_id"`
	Type     string   `json:"dependency_type"`
	Contract string   `json:"contract_key,omitzero"` // of an input
	Private  bool     `json:"private,omitzero"`      // the dependant does not show the result of the other
	Oddities []Oddity `json:"-"`
}

// ResultOf is a result to be said: an object or a text, or none.
func ResultOf(document Raw) *Result {
	if document == nil {
		return nil
	}
	return &Result{Document: document}
}

// After are dependencies on tasks that must be done first.
func After(ids ...string) []Dependency {
	var needs []Dependency
	for _, id := range ids {
		needs = append(needs, Dependency{On: id, Type: DependsBlocks})
	}
	return needs
}

// What the log holds was accepted once. These read it again; nil when there is
// none.

// ReadSpec reads a Spec that was accepted.
func ReadSpec(document Raw) *Spec { return stored(document, readSpecMember) }

// ReadResult reads a Result that was accepted.
func ReadResult(document Raw) *Result { return stored(document, ReadResultMember) }

// ReadRequirements reads Requirements that were accepted.
func ReadRequirements(document Raw) *Requirements { return stored(document, readRequirements) }

// ReadCapabilities reads Capabilities that were accepted.
func ReadCapabilities(document Raw) *Capabilities { return stored(document, readCapabilities) }

func stored[T any](document Raw, read func(*object.Reader, string) *T) *T {
	if document == nil {
		return nil
	}
	o := object.Reader{Members: []object.Member{{Key: []byte("document"), Value: document}}}
	return read(&o, "document")
}

// MemberOf is a member of a document, as it stands there; nil when there is
// none.
func MemberOf(document Raw, key string) Raw {
	if document == nil {
		return nil
	}
	var o object.Reader
	if o.Read(document, object.AnyDepth, "") != nil {
		return nil
	}
	return o.Value(key)
}

// TextOf returns a member of a document that is a string.
func TextOf(document Raw, key string) (value string, ok bool) {
	if v := MemberOf(document, key); v != nil {
		return object.Text(v)
	}
	return "", false
}

// Merge returns the members of a document, and those of another that replace or follow
// them.
func Merge(document, changes Raw) Raw {
	var before, after object.Reader
	if document == nil || before.Read(document, object.AnyDepth, "") != nil || after.Read(changes, object.AnyDepth, "") != nil {
		return changes
	}
	var merged []byte
	add := func(m *object.Member) {
		merged = append(append(object.AppendText(append(merged, ','), string(m.Key)), ':'), m.Value...)
	}
	for i := range before.Members {
		if rawMember(&after, string(before.Members[i].Key)) == nil {
			add(&before.Members[i])
		}
	}
	for i := range after.Members {
		add(&after.Members[i])
	}
	if merged == nil {
		return Raw("{}")
	}
	merged[0] = '{'
	return append(merged, '}')
}

// rawMember returns the value of a member, null included. It is nil if the member is missing.
func rawMember(o *object.Reader, key string) []byte {
	for i := range o.Members {
		if string(o.Members[i].Key) == key {
			return o.Members[i].Value
		}
	}
	return nil
}

// Spell makes the document of capabilities that came in another way; nil when
// they offer nothing.
func (c *Capabilities) Spell() Raw {
	if c.Empty() {
		return nil
	}
	type repo struct {
		Path      string   `json:"path,omitzero"`
		Languages []string `json:"languages,omitzero"`
		Tools     []string `json:"tools,omitzero"`
	}
	document := struct {
		Schema       string          `json:"$schema"`
		Repos        map[string]repo `json:"repos,omitzero"`
		Languages    []string        `json:"languages,omitzero"`
		Tools        []string        `json:"tools,omitzero"`
		Environments []string        `json:"environments,omitzero"`
		Tags         []string        `json:"tags,omitzero"`
		Capacity     int             `json:"max_concurrent_tasks"`
	}{
		Schema: SchemaCapabilities + schemaKnown, Languages: c.Languages, Tools: c.Tools, Environments: c.Environments,
		Tags: c.Tags, Capacity: c.Capacity,
	}
	for _, r := range c.Repos {
		if document.Repos == nil {
			document.Repos = make(map[string]repo)
		}
		document.Repos[r.Name] = repo{Path: r.Path, Languages: r.Languages, Tools: r.Tools}
	}
	text, err := object.Encode(document)
	if err != nil {
		return nil // texts and numbers can be spelled
	}
	return text
}
