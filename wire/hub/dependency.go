package hub

import (
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// DependencyTypes are the types that a request may name.
var DependencyTypes = []string{DependsBlocks, DependsInput, DependsRelated}

// DependenciesIn reads an optional list of dependencies: ids, and objects with more members. It
// returns nil for a missing list, and not for an empty one.
func DependenciesIn(o *object.Reader, key string) []Dependency {
	items, ok := o.Items(key)
	if !ok {
		return nil
	}
	found := newDependencies(len(items))
	for i, item := range items {
		switch item[0] {
		case '{':
			found.add(readDependency(o, key, i, item))
		case '"':
			on := object.CanonicalID(string(object.Unquote(item)))
			if object.IsBlank(on) {
				o.RefuseItem(key, i, "must not be empty")
			}
			found.add(Dependency{On: on, Type: DependsBlocks})
		default:
			o.RefuseItem(key, i, "must be an id or an object")
		}
	}
	return found.list
}

// DependencyIDsIn reads an optional list of ids of tasks that must be done first.
func DependencyIDsIn(o *object.Reader, key string) []Dependency {
	ids := o.Texts(key)
	if ids == nil {
		return nil
	}
	list := make([]Dependency, 0, len(ids))
	for _, id := range ids {
		list = append(list, Dependency{On: object.CanonicalID(id), Type: DependsBlocks})
	}
	return list
}

// readDependency reads an item that is an object.
func readDependency(o *object.Reader, key string, i int, item []byte) Dependency {
	var room [4]object.Member
	in, err := object.Open(item, object.AnyDepth, o.BelowItem(key, i), room[:0])
	o.Fail(err)
	d := NewDependency(&in, "depends_on_task_id", "dependency_type", "contract_key")
	o.Fail(in.Err())
	return d
}

// NewDependency reads a dependency from members with the given keys. Two protocols use different
// keys.
func NewDependency(o *object.Reader, on, kind, contract string) Dependency {
	d := Dependency{On: object.CanonicalID(o.NeedText(on)), Type: o.OneOf(kind, DependencyTypes...)}
	if o.Find(kind) == nil {
		d.Type = DependsBlocks
	}
	switch {
	case d.Type == DependsInput:
		d.Contract = o.NeedText(contract)
		if d.Contract != "" && !isContractKey(d.Contract) {
			o.Refuse(contract, "must have "+keyForm)
		}
	case o.Find(contract) != nil:
		mayText(o, contract)
		d.Oddities = []Oddity{{
			Kind: events.DocumentOdd, Pointer: o.Below(contract),
			Text: "a " + contract + " has no effect on a dependency that is not an input",
		}}
	}
	return d
}

// dependencies is a list without duplicates, in the order of insertion.
type dependencies struct {
	list []Dependency
	at   map[dependencyKey]int // avoids a search: a list may be as long as a line
}

// dependencyKey identifies a dependency.
type dependencyKey struct{ on, kind, contract string }

func newDependencies(most int) *dependencies {
	return &dependencies{list: make([]Dependency, 0, most), at: make(map[dependencyKey]int, most)}
}

func (l *dependencies) add(d Dependency) {
	key := dependencyKey{on: d.On, kind: d.Type, contract: d.Contract}
	if at, known := l.at[key]; known {
		l.list[at].Oddities = append(l.list[at].Oddities, d.Oddities...)
		return
	}
	l.at[key] = len(l.list)
	l.list = append(l.list, d)
}
