package hub

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire/events"
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

// Within returns the common part of c and most. If c has no more than that, the result is c itself;
// otherwise an oddity lists the members that were left out.
func (c *Capabilities) Within(most *Capabilities) *Capabilities {
	common := &Capabilities{Oddities: c.Oddities, Capacity: min(c.Capacity, most.Capacity)}
	var left []string
	if c.Capacity > most.Capacity {
		left = append(left, "max_concurrent_tasks")
	}
	keep := func(prefix string, said, may []string) (both []string) {
		for _, text := range said {
			if slices.Contains(may, text) {
				both = append(both, text)
			} else {
				left = append(left, prefix+strconv.Quote(text))
			}
		}
		return both
	}
	common.Languages = keep("language ", c.Languages, most.Languages)
	common.Environments = keep("environment ", c.Environments, most.Environments)
	common.Tools = keep("tool ", c.Tools, most.Tools)
	common.Tags = keep("tag ", c.Tags, most.Tags)
	for _, r := range c.Repos {
		i := slices.IndexFunc(most.Repos, func(m Repo) bool { return m.Name == r.Name })
		if i < 0 {
			left = append(left, "repo "+strconv.Quote(r.Name))
			continue
		}
		m, of := most.Repos[i], " of repo "+strconv.Quote(r.Name)
		if r.Path != "" && r.Path != m.Path {
			left = append(left, "path"+of)
		}
		common.Repos = append(common.Repos, Repo{
			Name: m.Name, Path: m.Path, Languages: keep("language"+of+": ", r.Languages, m.Languages), Tools: keep("tool"+of+": ", r.Tools, m.Tools),
		})
	}
	if left == nil {
		return c
	}
	common.Document = common.spell()
	if over := len(left) - mostNamed; over > 0 {
		left = append(left[:mostNamed], strconv.Itoa(over)+" more")
	}
	common.Oddities = append(slices.Clone(c.Oddities), Oddity{
		Kind: events.DocumentOdd, Pointer: "/payload/capabilities",
		Text: "the configuration fixes its capabilities; ignored: " + strings.Join(left, ", "),
	})
	return common
}

// mostNamed is how many of the texts that were left out are named.
const mostNamed = 5
