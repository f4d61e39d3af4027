package hub

import (
	"math"

	"orchestrator/wire/object"
)

// CapabilitiesIn reads an optional capabilities document.
func CapabilitiesIn(o *object.Reader, key string) *Capabilities {
	var room [8]object.Member
	kept, in, ok := readDocument(o, key, room[:0])
	if !ok {
		return nil
	}
	full, odd := readSchema(&in, SchemaCapabilities, false)
	c := &Capabilities{
		Document:     kept,
		Repos:        readRepos(&in),
		Languages:    in.Texts("languages"),
		Environments: in.Texts("environments"),
		Tools:        in.Texts("tools"),
		Tags:         in.Texts("tags"),
		Capacity:     readCapacity(&in),
		Oddities:     odd,
	}
	if full {
		o.Fail(in.Err())
	}
	return c
}

func readRepos(o *object.Reader) (repos []Repo) {
	var room [8]object.Member
	in, ok := openDocument(o, "repos", room[:0])
	if !ok {
		return nil
	}
	in.Each(func(name string, value []byte) {
		var room [4]object.Member
		r, ok := openValue(&in, name, value, room[:0])
		if !ok {
			return
		}
		repo := Repo{Name: name, Path: r.Text("path"), Languages: r.Texts("languages"), Tools: r.Texts("tools")}
		if r.Err() == nil {
			repos = append(repos, repo)
		}
		in.Fail(r.Err())
	})
	o.Fail(in.Err())
	return repos
}

// readCapacity returns max_concurrent_tasks, 1 by default. Only an explicit 0 yields 0: the
// agent then never gets a task.
func readCapacity(o *object.Reader) int {
	const key = "max_concurrent_tasks"
	alone := object.Reader{Pointer: o.Pointer, Members: o.Members} // without the errors of other members
	capacity := alone.Whole(key, 0)
	if alone.Err() != nil || alone.Find(key) == nil {
		o.Fail(alone.Err())
		return 1
	}
	return int(min(capacity, math.MaxInt32))
}
