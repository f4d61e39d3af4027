package wire

import "math"

// Capabilities reads an optional capabilities document.
func (o *Object) Capabilities(key string) *Capabilities {
	var room [8]member
	kept, in, ok := o.document(key, room[:0])
	if !ok {
		return nil
	}
	full, odd := in.schema(SchemaCapabilities, false)
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
		o.take(in.Err())
	}
	return c
}

func readRepos(o *Object) (repos []Repo) {
	var room [8]member
	in, ok := o.inside("repos", room[:0])
	if !ok {
		return nil
	}
	in.Each(func(name string, value []byte) {
		var room [4]member
		r, ok := in.open(name, value, room[:0])
		if !ok {
			return
		}
		repo := Repo{Name: name, Path: r.Text("path"), Languages: r.Texts("languages"), Tools: r.Texts("tools")}
		if r.Err() == nil {
			repos = append(repos, repo)
		}
		in.take(r.Err())
	})
	o.take(in.Err())
	return repos
}

// readCapacity is 1 by default, and 0 only when that is said: then no
// task is ever given out.
func readCapacity(o *Object) int {
	const key = "max_concurrent_tasks"
	alone := Object{pointer: o.pointer, members: o.members} // what is wrong with others is not wrong with it
	capacity := alone.Whole(key, 0)
	if alone.Err() != nil || alone.find(key) == nil {
		o.take(alone.Err())
		return 1
	}
	return int(min(capacity, math.MaxInt32))
}
