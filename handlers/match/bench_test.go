package match

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The crowd: each agent knows 60 of 200 languages and has as many of the tools
// and tags, is in one of 50 repos and in one of three environments.
const skills = 200

func crowd(n int) (names []string, offers []Offer) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(prefix string) (texts []string) {
		for _, i := range r.Perm(skills)[:60] {
			texts = append(texts, fmt.Sprint(prefix, i))
		}
		return texts
	}
	for _, i := range r.Perm(n) {
		names = append(names, fmt.Sprintf("agent-%06d", i))
		offers = append(offers, Offer{
			Repos:        []Repo{{Name: fmt.Sprint("r", r.IntN(50))}},
			Languages:    some("l"),
			Environments: []string{[]string{"linux", "macos", "windows"}[r.IntN(3)]},
			Tools:        some("t"), Tags: some("g"),
		})
	}
	return names, offers
}

func indexed(names []string, offers []Offer) *Index {
	x := New()
	for i, name := range names {
		x.Put(name, offers[i], Standing{Online: true, Capacity: 4, Load: i % 3})
	}
	return x
}

// maps is the obvious implementation: a set of texts for each kind and agent, and a scan of all
// agents.
type maps []mapsAgent

type mapsAgent struct {
	name                                        string
	load                                        int
	repos, languages, environments, tools, tags map[string]struct{}
}

func mapped(names []string, offers []Offer) maps {
	set := func(texts []string) map[string]struct{} {
		s := make(map[string]struct{}, len(texts))
		for _, text := range texts {
			s[text] = struct{}{}
		}
		return s
	}
	all := make(maps, 0, len(names))
	for i, o := range offers {
		all = append(all, mapsAgent{
			name: names[i], load: i % 3, repos: set([]string{o.Repos[0].Name}), languages: set(o.Languages),
			environments: set(o.Environments), tools: set(o.Tools), tags: set(o.Tags),
		})
	}
	return all
}

func (m maps) best(d *Demand) (best *mapsAgent, score int) {
	for i := range m {
		a := &m[i]
		s := a.score(d)
		if s < 0 || s < score {
			continue
		}
		if best == nil || s > score || a.load < best.load || a.load == best.load && a.name < best.name {
			best, score = a, s
		}
	}
	return best, score
}

func (a *mapsAgent) score(d *Demand) int {
	count := func(texts []string, set map[string]struct{}) (n int) {
		for _, text := range texts {
			if _, there := set[text]; there {
				n++
			}
		}
		return n
	}
	if _, there := a.repos[d.Repo]; d.Repo != "" && !there {
		return -1
	}
	for _, text := range d.Languages {
		if _, there := a.languages[text]; !there {
			return -1
		}
	}
	if len(d.Environments) > 0 && count(d.Environments, a.environments) == 0 {
		return -1
	}
	return d.base() + onlinePoints + toolPoints*count(d.Tools, a.tools) + tagPoints*count(d.Tags, a.tags)
}

var demands = []struct {
	name   string
	demand Demand
}{
	{"3 of 200 languages", Demand{Languages: []string{"l3", "l77", "l142"}}},
	{"3 languages and 5 soft", Demand{Languages: []string{"l3", "l77", "l142"}, Tools: []string{"t1", "t2", "t3"}, Tags: []string{"g1", "g2"}}},
	{"repo and all else", Demand{
		Repo: "r7", Languages: []string{"l3"}, Environments: []string{"linux", "macos"},
		Tools: []string{"t1", "t2", "t3"}, Tags: []string{"g1", "g2"}, Prefer: "agent-000007",
	}},
	{"nothing hard, 5 soft", Demand{Tools: []string{"t1", "t2", "t3"}, Tags: []string{"g1", "g2"}, Prefer: "agent-000007"}},
	{"nothing hard, 5 that nobody has", Demand{Tools: []string{"no1", "no2", "no3"}, Tags: []string{"no1", "no2"}}},
}

// BenchmarkBest compares one search with the same search over maps. The ratio is the time over
// maps divided by the time of the Index.
func BenchmarkBest(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		names, offers := crowd(n)
		x, m := indexed(names, offers), mapped(names, offers)
		for _, test := range demands {
			var long float64
			b.Run(fmt.Sprintf("maps/agents=%d/%s", n, test.name), func(b *testing.B) {
				for b.Loop() {
					m.best(&test.demand)
				}
				long = float64(b.Elapsed()) / float64(b.N)
			})
			b.Run(fmt.Sprintf("index/agents=%d/%s", n, test.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x.Best(&test.demand, Conditions{})
				}
				b.ReportMetric(long/(float64(b.Elapsed())/float64(b.N)), "times")
			})
		}
	}
}

// BenchmarkBestTied searches among agents with equal scores, each added after one that it beats
// by name.
func BenchmarkBestTied(b *testing.B) {
	x := New()
	for i := range 10_000 {
		x.Put(fmt.Sprintf("agent-%06d", 10_000-i), Offer{Tools: []string{"t1", "t2", "t3"}, Tags: []string{"g1", "g2"}}, idle)
	}
	d := &Demand{Tools: []string{"t1", "t2", "t3"}, Tags: []string{"g1", "g2"}}
	for b.Loop() {
		x.Best(d, Conditions{})
	}
}

// BenchmarkChanges measures how long it takes to add, update and remove agents.
func BenchmarkChanges(b *testing.B) {
	names, offers := crowd(10_000)
	x := indexed(names, offers)
	d := &Demand{Repo: "r7"}
	b.Run("stand", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			x.Stand(names[i%len(names)], Standing{Online: true, Running: i % 2, Capacity: 4, Load: i % 4})
		}
	})
	b.Run("put again", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			x.Put(names[i%len(names)], offers[i%len(names)], idle)
		}
	})
	b.Run("remove, put, best", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			x.Remove(names[i%len(names)])
			x.Put(names[i%len(names)], offers[i%len(names)], idle)
			x.Best(d, Conditions{})
		}
	})
	b.Run("fits", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			x.Fits(&demands[2].demand, names[i%len(names)], Conditions{})
		}
	})
	b.Run("verdicts", func(b *testing.B) {
		for b.Loop() {
			x.Verdicts(&demands[2].demand)
		}
	})
}
