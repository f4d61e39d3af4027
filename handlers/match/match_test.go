package match

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// devBackend is the agent of the worked example.
func devBackend() Offer {
	return Offer{
		Repos: []Repo{
			{Name: "api-gateway", Languages: []string{"rust"}, Tools: []string{"cargo"}},
			{Name: "web-dashboard", Languages: []string{"typescript"}, Tools: []string{"npm", "playwright"}},
		},
		Languages:    []string{"rust", "python"},
		Tools:        []string{"docker", "git", "cargo"},
		Environments: []string{"linux"},
		Tags:         []string{"backend", "systems", "frontend"},
	}
}

// idle is the standing of an online agent without work.
var idle = Standing{Online: true, Capacity: 2}

// TestWorkedExample checks that the points add up to 475. Of these 30 are for environments, and
// only there if environments are demanded.
// Rows, T-09.
func TestWorkedExample(t *testing.T) {
	x := New()
	x.Put("dev-desktop", Offer{Languages: []string{"rust"}, Environments: []string{"linux"}}, Standing{Capacity: 1})
	x.Put("dev-backend", devBackend(), idle)
	d := &Demand{
		Repo: "api-gateway", Languages: []string{"rust"}, Environments: []string{"linux"},
		Tools: []string{"cargo", "docker"}, Prefer: "dev-backend",
	}
	require.Equal(t, []Verdict{
		{Name: "dev-backend", Score: 475, Online: true, Reasons: []string{
			"repo match: api-gateway (+100)",
			"language match: rust (+50)",
			"environment match: linux (+30)",
			"tools match: cargo, docker (+20)",
			"preferred server (+200)",
			"online (+25)",
			"has capacity (+50)",
		}},
		{Name: "dev-desktop", Score: -1, Reasons: []string{"missing repo: api-gateway (disqualified)"}},
	}, x.Verdicts(d))
	requireBest(t, x, d, "dev-backend", 475)
	d.Environments = nil
	requireBest(t, x, d, "dev-backend", 445)
}

func requireBest(t *testing.T, x *Index, d *Demand, name string, score int) {
	t.Helper()
	gotName, gotScore, ok := x.Best(d, Conditions{})
	require.True(t, ok)
	require.Equal(t, name, gotName)
	require.Equal(t, score, gotScore)
}

func requireNone(t *testing.T, x *Index, d *Demand, c Conditions) {
	t.Helper()
	name, score, ok := x.Best(d, c)
	require.False(t, ok)
	require.Empty(t, name)
	require.Zero(t, score)
}

// TestRules checks each rule separately, on the agent of the worked example.
// Rows: ..A-124, A-126..A-130, A-132, A-134, T-10..T-12, T-14, T-62.
func TestRules(t *testing.T) {
	offline := Standing{Capacity: 1}
	for _, test := range []struct {
		name     string
		demand   Demand
		offer    Offer
		standing Standing
		score    int
		reasons  []string
	}{
		{
			name: "nothing demanded", offer: devBackend(), standing: idle,
			score: 75, reasons: []string{"online (+25)", "has capacity (+50)"},
		},
		{
			name: "offline is only without its points", offer: devBackend(), standing: offline,
			score: 50, reasons: []string{"has capacity (+50)"},
		},
		{
			name: "a language alone", demand: Demand{Languages: []string{"rust"}}, offer: devBackend(), standing: idle,
			score: 125, reasons: []string{"language match: rust (+50)", "online (+25)", "has capacity (+50)"},
		},
		{
			name:   "all languages once, one of them of a repo not demanded",
			demand: Demand{Languages: []string{"typescript", "rust", "typescript"}}, offer: devBackend(), standing: offline,
			score: 100, reasons: []string{"language match: typescript, rust (+50)", "has capacity (+50)"},
		},
		{
			name: "each language that is missing", demand: Demand{Languages: []string{"go", "rust", "zig", "go"}}, offer: devBackend(), standing: idle,
			score: -1, reasons: []string{"missing language: go (disqualified)", "missing language: zig (disqualified)"},
		},
		{
			name: "texts are equal or not", demand: Demand{Repo: "API-gateway", Languages: []string{"Rust"}}, offer: devBackend(), standing: idle,
			score: -1, reasons: []string{"missing repo: API-gateway (disqualified)", "missing language: Rust (disqualified)"},
		},
		{
			name: "a tool is no tag and a tag no tool", demand: Demand{Tools: []string{"backend"}, Tags: []string{"docker"}}, offer: devBackend(), standing: offline,
			score: 50, reasons: []string{"has capacity (+50)"},
		},
		{
			name: "one environment is enough", demand: Demand{Environments: []string{"windows", "linux"}}, offer: devBackend(), standing: offline,
			score: 80, reasons: []string{"environment match: linux (+30)", "has capacity (+50)"},
		},
		{
			name:   "more environments give no more",
			demand: Demand{Environments: []string{"macos", "windows", "linux", "macos"}}, offer: Offer{Environments: []string{"linux", "macos"}}, standing: offline,
			score: 80, reasons: []string{"environment match: macos, linux (+30)", "has capacity (+50)"},
		},
		{
			name: "no environment", demand: Demand{Environments: []string{"macos", "windows"}}, offer: devBackend(), standing: idle,
			score: -1, reasons: []string{"no matching environment: macos, windows (disqualified)"},
		},
		{
			name: "tools one by one", demand: Demand{Tools: []string{"git", "docker", "make", "git"}}, offer: devBackend(), standing: offline,
			score: 70, reasons: []string{"tools match: git, docker (+20)", "has capacity (+50)"},
		},
		{
			name: "tools of the repo", demand: Demand{Repo: "web-dashboard", Tools: []string{"playwright", "cargo"}}, offer: devBackend(), standing: offline,
			score: 170, reasons: []string{"repo match: web-dashboard (+100)", "tools match: playwright, cargo (+20)", "has capacity (+50)"},
		},
		{
			name: "a tool there and here counts once", demand: Demand{Repo: "api-gateway", Tools: []string{"cargo"}}, offer: devBackend(), standing: offline,
			score: 160, reasons: []string{"repo match: api-gateway (+100)", "tools match: cargo (+10)", "has capacity (+50)"},
		},
		{
			name: "tools of another repo are not there", demand: Demand{Repo: "api-gateway", Tools: []string{"playwright"}}, offer: devBackend(), standing: offline,
			score: 150, reasons: []string{"repo match: api-gateway (+100)", "has capacity (+50)"},
		},
		{
			name: "tools of repos are not there without a repo", demand: Demand{Tools: []string{"playwright"}}, offer: devBackend(), standing: offline,
			score: 50, reasons: []string{"has capacity (+50)"},
		},
		{
			name: "tags one by one", demand: Demand{Tags: []string{"frontend", "backend", "infra", "systems", "backend"}}, offer: devBackend(), standing: offline,
			score: 65, reasons: []string{"tags match: frontend, backend, systems (+15)", "has capacity (+50)"},
		},
		{
			name: "preferred", demand: Demand{Prefer: "it"}, offer: devBackend(), standing: idle,
			score: 275, reasons: []string{"preferred server (+200)", "online (+25)", "has capacity (+50)"},
		},
		{
			name: "another is preferred", demand: Demand{Prefer: "It"}, offer: devBackend(), standing: idle,
			score: 75, reasons: []string{"online (+25)", "has capacity (+50)"},
		},
		{
			name: "preferred and full", demand: Demand{Prefer: "it", Repo: "api-gateway"}, offer: devBackend(), standing: Standing{Online: true, Running: 2, Capacity: 2, Load: 2},
			score: -1, reasons: []string{"at capacity: 2/2 (disqualified)"},
		},
		{
			name: "no capacity at all", offer: devBackend(), standing: Standing{Online: true},
			score: -1, reasons: []string{"at capacity: 0/0 (disqualified)"},
		},
		{
			name: "what is assigned does not run", offer: devBackend(), standing: Standing{Capacity: 1, Load: 5},
			score: 50, reasons: []string{"has capacity (+50)"},
		},
		{
			name: "preferred without an offer", demand: Demand{Prefer: "it"}, standing: idle,
			score: -1, reasons: []string{"no capabilities defined (disqualified)"},
		},
		{
			name: "without an offer that is all there is to say", demand: Demand{Repo: "r", Languages: []string{"go"}}, standing: Standing{Running: 1},
			score: -1, reasons: []string{"no capabilities defined (disqualified)"},
		},
		{
			name:   "everything is missing",
			demand: Demand{Repo: "r", Languages: []string{"b", "a"}, Environments: []string{"e", "d", "e"}, Prefer: "it"}, offer: Offer{Tags: []string{"t"}}, standing: Standing{Running: 3, Capacity: 2},
			score: -1, reasons: []string{
				"missing repo: r (disqualified)", "missing language: b (disqualified)", "missing language: a (disqualified)",
				"no matching environment: e, d (disqualified)", "at capacity: 3/2 (disqualified)",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := New()
			x.Put("it", test.offer, test.standing)
			v := x.Verdict(&test.demand, "it")
			require.Equal(t, Verdict{Name: "it", Score: test.score, Online: test.standing.Online, Reasons: test.reasons}, v)
			require.Equal(t, []Verdict{v}, x.Verdicts(&test.demand))
			require.Equal(t, test.score >= 0, x.Fits(&test.demand, "it", Conditions{}))
			if test.score >= 0 {
				requireBest(t, x, &test.demand, "it", test.score)
			} else {
				requireNone(t, x, &test.demand, Conditions{})
			}
		})
	}
}

// TestPreferenceAlone checks a demand without hard conditions. Every agent that offers anything
// qualifies; a preferred agent without an offer does not.
// Rows, T-62.
func TestPreferenceAlone(t *testing.T) {
	x := New()
	x.Put("x", Offer{Tags: []string{"t"}}, idle)
	x.Put("y", Offer{Tags: []string{"t"}}, idle)
	d := &Demand{Prefer: "x"}
	requireBest(t, x, d, "x", 275)
	require.Equal(t, 75, x.Verdict(d, "y").Score)
	x.Put("x", Offer{}, idle)
	requireBest(t, x, d, "y", 75)
	require.Equal(t, -1, x.Verdict(d, "x").Score)
}

// TestFullAgents checks that the preferred agent at capacity loses to any other agent. If it is
// the only one, none is found.
// Rows, T-10, T-47.
func TestFullAgents(t *testing.T) {
	x := New()
	x.Put("preferred", devBackend(), Standing{Online: true, Running: 2, Capacity: 2, Load: 2})
	d := &Demand{Repo: "api-gateway", Languages: []string{"rust"}, Prefer: "preferred"}
	requireNone(t, x, d, Conditions{})
	x.Put("other", devBackend(), Standing{Capacity: 1})
	requireBest(t, x, d, "other", 200)
	x.Stand("preferred", Standing{Online: true, Running: 1, Capacity: 2, Load: 2})
	requireBest(t, x, d, "preferred", 425)
}

// TestOffline checks that an offline agent only lacks 25 points, unless the search is limited to
// online agents.
// Rows, T-12.
func TestOffline(t *testing.T) {
	x := New()
	x.Put("near", devBackend(), idle)
	x.Put("far", devBackend(), Standing{Capacity: 1})
	d := &Demand{Repo: "api-gateway", Languages: []string{"rust"}, Prefer: "far"}
	requireBest(t, x, d, "far", 400)
	name, score, ok := x.Best(d, Conditions{Online: true})
	require.True(t, ok)
	require.Equal(t, "near", name)
	require.Equal(t, 225, score)
	require.True(t, x.Fits(d, "far", Conditions{}))
	require.False(t, x.Fits(d, "far", Conditions{Online: true}))
}

// TestTies checks that the load decides between equals, then the name, byte by byte.
// Rows: A-139, T-11.
func TestTies(t *testing.T) {
	x := New()
	d := &Demand{}
	for _, name := range []string{"b", "a", "Z", "ab"} {
		x.Put(name, devBackend(), Standing{Online: true, Capacity: 9, Load: 1})
	}
	requireBest(t, x, d, "Z", 75)
	x.Stand("Z", Standing{Online: true, Capacity: 9, Load: 2})
	requireBest(t, x, d, "a", 75)
	x.Stand("b", Standing{Online: true, Capacity: 9})
	requireBest(t, x, d, "b", 75)
	x.Remove("b")
	x.Remove("a")
	requireBest(t, x, d, "ab", 75)
	x.Put("aa", devBackend(), Standing{Online: true, Capacity: 9, Load: 1})
	requireBest(t, x, d, "aa", 75)
	x.Put("busy but online", devBackend(), Standing{Online: true, Capacity: 9, Load: 8})
	for _, name := range []string{"Z", "ab", "aa"} {
		x.Stand(name, Standing{Capacity: 9})
	}
	requireBest(t, x, d, "busy but online", 75)
}

// TestFlood checks that an assigned task that does not run yet disqualifies no agent, except in
// a search for free agents.
// Rows, T-11.
func TestFlood(t *testing.T) {
	x := New()
	x.Put("a", devBackend(), Standing{Online: true, Capacity: 1, Load: 1})
	d := &Demand{Languages: []string{"rust"}}
	requireBest(t, x, d, "a", 125)
	requireNone(t, x, d, Conditions{Free: true})
	require.False(t, x.Fits(d, "a", Conditions{Free: true}))
	x.Stand("a", Standing{Online: true, Capacity: 2, Load: 1})
	require.True(t, x.Fits(d, "a", Conditions{Free: true}))
	requireNone(t, x, d, Conditions{Not: "a"})
	require.False(t, x.Fits(d, "a", Conditions{Not: "a"}))
}

// TestChanges checks that a new offer replaces the old one.
// Rows.
func TestChanges(t *testing.T) {
	x := New()
	x.Stand("a", idle) // an unknown agent
	x.Remove("a")
	require.Empty(t, x.Verdicts(&Demand{}))
	x.Put("a", Offer{Tools: []string{"git"}}, idle)
	d := &Demand{Tools: []string{"docker", "git"}}
	requireBest(t, x, d, "a", 85)
	x.Put("a", Offer{Tools: []string{"git", "docker"}}, idle)
	requireBest(t, x, d, "a", 95)
	x.Put("a", Offer{Tools: []string{"docker"}}, idle)
	requireBest(t, x, d, "a", 85)
	x.Remove("a")
	requireNone(t, x, d, Conditions{})
	require.False(t, x.Fits(d, "a", Conditions{}))
	require.Equal(t, []string{"no capabilities defined (disqualified)"}, x.Verdict(d, "a").Reasons)
	require.Empty(t, x.by)
}

// TestEmpty checks that an offer with any single value is not empty.
// Rows: A-130.
func TestEmpty(t *testing.T) {
	one := []string{"x"}
	require.True(t, (&Offer{Languages: []string{}}).Empty())
	for _, o := range []Offer{{Repos: []Repo{{Name: "r"}}}, {Languages: one}, {Environments: one}, {Tools: one}, {Tags: one}} {
		require.False(t, o.Empty(), "%+v", o)
	}
}

// TestManyWishes checks that the sums of points have enough bits.
// Rows.
func TestManyWishes(t *testing.T) {
	var tools, tags []string
	for i := range 300 {
		tools = append(tools, string(rune('a'+i)))
		tags = append(tags, string(rune('A'+i)))
	}
	x := New()
	x.Put("all", Offer{Tools: tools, Tags: tags}, idle)
	x.Put("most", Offer{Tools: tools[1:], Tags: tags}, idle)
	requireBest(t, x, &Demand{Tools: tools, Tags: tags, Prefer: "all"}, "all", 300*10+300*5+200+75)
	requireBest(t, x, &Demand{Tools: tools, Tags: tags, Prefer: "most"}, "most", 299*10+300*5+200+75)
	requireBest(t, x, &Demand{Tools: tools, Tags: tags, Prefer: "nobody"}, "all", 300*10+300*5+75)
}

// TestFarApart checks that the few agents with one value are found among many with another, near
// and far.
// Rows.
func TestFarApart(t *testing.T) {
	x := New()
	rare := []int{0, 3, 64, 2000, 2047, 2999}
	for i := range 3000 {
		o := Offer{Languages: []string{"rust"}}
		if slices.Contains(rare, i) {
			o.Languages, o.Tags = append(o.Languages, "zig"), []string{"rare"}
		}
		x.Put(fmt.Sprintf("a%04d", i), o, idle)
	}
	for _, i := range rare {
		name := fmt.Sprintf("a%04d", i)
		requireBest(t, x, &Demand{Languages: []string{"rust", "zig"}}, name, 125)
		requireBest(t, x, &Demand{Languages: []string{"rust"}, Tags: []string{"rare"}}, name, 130)
		x.Remove(name)
	}
	requireNone(t, x, &Demand{Languages: []string{"rust", "zig"}}, Conditions{})
	requireBest(t, x, &Demand{Tags: []string{"rare"}}, "a0001", 75)
}

// TestNoGarbage: a search allocates no garbage.
func TestNoGarbage(t *testing.T) {
	x := New()
	for i := range 1000 {
		x.Put(string(rune('a'+i)), devBackend(), idle)
	}
	d := &Demand{
		Repo: "api-gateway", Languages: []string{"rust", "python"}, Environments: []string{"linux", "macos"},
		Tools: []string{"cargo", "docker"}, Tags: []string{"backend"}, Prefer: "b",
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		x.Best(d, Conditions{Free: true})
		x.Fits(d, "a", Conditions{})
		x.Stand("a", idle)
	}))
}
