package match

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// twins holds an Index and a naive one with the same content.
type twins struct {
	t     *testing.T
	index *Index
	naive naive
	below func(n int) int // the source of chance
	names int             // the number of possible names
}

func newTwins(t *testing.T, names int, below func(n int) int) *twins {
	return &twins{t: t, index: New(), naive: naive{}, below: below, names: names}
}

// name returns the name of an agent, or an unknown one. The names do not sort by their numbers.
func (t *twins) name() string { return fmt.Sprintf("a%d", t.below(t.names)) }

// some returns up to most of a few values, sometimes one twice. Tools and tags, languages and
// repos share their texts.
func (t *twins) some(most, of int) (values []string) {
	for range t.below(most + 1) {
		values = append(values, string(rune('p'+t.below(of))))
	}
	return values
}

func (t *twins) one(of int) string { return string(rune('p' + t.below(of))) }

func (t *twins) offer() (o Offer) {
	if t.below(8) == 0 {
		return Offer{}
	}
	for _, name := range both([]string{"p", "q", "r"}, t.some(3, 4)) {
		o.Repos = append(o.Repos, Repo{Name: name, Languages: t.some(2, 4), Tools: t.some(3, 6)})
	}
	o.Languages, o.Environments, o.Tools, o.Tags = t.some(4, 4), t.some(2, 3), t.some(4, 6), t.some(5, 6)
	return o
}

func (t *twins) standing() Standing {
	return Standing{Online: t.below(2) == 0, Running: t.below(3), Capacity: t.below(4), Load: t.below(4)}
}

func (t *twins) demand() *Demand {
	d := &Demand{Environments: t.some(2, 4), Tools: t.some(6, 7), Tags: t.some(9, 7)}
	if t.below(2) == 0 {
		d.Languages = t.some(3, 5)
	}
	if t.below(3) == 0 {
		d.Repo = t.one(4)
	}
	if t.below(3) == 0 {
		d.Prefer = t.name()
	}
	return d
}

func (t *twins) conditions() Conditions {
	c := Conditions{Online: t.below(3) == 0, Free: t.below(3) == 0}
	if t.below(3) == 0 {
		c.Not = t.name()
	}
	return c
}

// change makes one change to both.
func (t *twins) change() {
	name := t.name()
	switch t.below(6) {
	case 0:
		t.index.Remove(name)
		delete(t.naive, name)
	case 1, 2:
		a := naiveAgent{offer: t.offer(), standing: t.standing()}
		t.index.Put(name, a.offer, a.standing)
		t.naive[name] = a
	default:
		s := t.standing()
		t.index.Stand(name, s)
		if a, known := t.naive[name]; known {
			a.standing = s
			t.naive[name] = a
		}
	}
}

// agree compares the answers of both.
func (t *twins) agree() {
	d, c := t.demand(), t.conditions()
	wantName, wantScore, wantOK := t.naive.best(d, c)
	name, score, ok := t.index.Best(d, c)
	require.Equal(t.t, wantName, name, "%+v %+v", d, c)
	require.Equal(t.t, wantScore, score, "%+v %+v", d, c)
	require.Equal(t.t, wantOK, ok, "%+v %+v", d, c)
	require.Equal(t.t, t.naive.verdicts(d), t.index.Verdicts(d), "%+v", d)
	one := t.name()
	require.Equal(t.t, t.naive.verdict(d, one), t.index.Verdict(d, one), "%+v", d)
	require.Equal(t.t, t.naive.fits(d, one, c), t.index.Fits(d, one, c), "%+v %+v", d, c)
	if ok {
		require.True(t.t, t.index.Fits(d, name, c))
		require.Equal(t.t, score, t.index.Verdict(d, name).Score)
	}
}

// sound checks that no remains are left: slots without an agent, and values that no agent offers.
func (t *twins) sound() {
	x := t.index
	require.Len(t.t, x.slots, len(t.naive))
	require.Len(t.t, x.order, len(t.naive))
	require.Len(t.t, x.agents, len(t.naive)+len(x.spare))
	require.LessOrEqual(t.t, len(x.agents), t.names)
	offered := make(map[value]int)
	for _, a := range x.agents {
		for _, h := range a.offers {
			offered[h.of]++
		}
	}
	require.Len(t.t, x.by, len(offered))
	for v, h := range x.by {
		require.Equal(t.t, v, h.of)
		require.NotEmpty(t.t, h.cells)
	}
}

// TestSame checks that the Index agrees with the rules after any changes.
// Rows: A-119..A-124, A-126..A-130, A-132, A-133, A-139, T-12, T-14.
func TestSame(t *testing.T) {
	for _, test := range []struct{ names, rounds, changes int }{
		{names: 3, rounds: 4000, changes: 1},
		{names: 12, rounds: 3000, changes: 3},
		{names: 200, rounds: 600, changes: 30}, // over several words
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%d agents, seed %d", test.names, seed), func(t *testing.T) {
				z := newTwins(t, test.names, rand.New(rand.NewPCG(seed, 1)).IntN)
				for range test.names {
					z.change()
				}
				for range test.rounds {
					for range test.changes {
						z.change()
					}
					z.agree()
				}
				z.sound()
			})
		}
	}
}

// TestAnyOrder checks that the same agents get the same answers if they are added in another
// order, and others come and go between them.
// Rows: A-139.
func TestAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	z := newTwins(t, 150, r.IntN)
	for range 400 {
		z.change()
	}
	names := make([]string, 0, len(z.naive))
	for _, v := range z.naive.verdicts(&Demand{}) {
		names = append(names, v.Name)
	}
	for range 20 {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		other := New()
		for _, name := range names {
			other.Put("passing", z.offer(), z.standing())
			other.Put(name, z.naive[name].offer, z.naive[name].standing)
			other.Remove("passing")
		}
		for range 50 {
			d, c := z.demand(), z.conditions()
			name, score, ok := z.index.Best(d, c)
			otherName, otherScore, otherOK := other.Best(d, c)
			require.Equal(t, []any{name, score, ok}, []any{otherName, otherScore, otherOK}, "%+v %+v", d, c)
			require.Equal(t, z.index.Verdicts(d), other.Verdicts(d))
		}
	}
}

// TestManyAlike checks that a search finds the first of very many equals, however a word is
// scanned.
// Rows: A-139, T-11.
func TestManyAlike(t *testing.T) {
	for seed := range uint64(4) {
		z := newTwins(t, 300, rand.New(rand.NewPCG(seed, 3)).IntN)
		for _, i := range rand.New(rand.NewPCG(seed, 4)).Perm(z.names) {
			a := naiveAgent{offer: Offer{Tools: []string{"p"}}, standing: Standing{Capacity: 2, Load: 1}}
			name := fmt.Sprintf("a%d", i)
			z.naive[name] = a
			z.index.Put(name, a.offer, a.standing)
		}
		for range 250 { // the best one becomes busier or full, until few are left
			z.agree()
			name, _, ok := z.index.Best(&Demand{}, Conditions{})
			require.True(t, ok)
			a := z.naive[name]
			a.standing.Load++
			a.standing.Running += z.below(3)
			z.naive[name] = a
			z.index.Stand(name, a.standing)
			requireSameBest(z, &Demand{Tools: []string{"p"}})
		}
	}
}

func requireSameBest(z *twins, d *Demand) {
	z.t.Helper()
	wantName, wantScore, _ := z.naive.best(d, Conditions{})
	requireBest(z.t, z.index, d, wantName, wantScore)
}

// FuzzIndex uses bytes as the choices of changes and queries.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("\x00\x01\x01\x02\x01\x03\x01\x02\x03\x04\x05\x06"))
	f.Add([]byte("the quick brown fox jumps over the lazy dog and all its agents"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		bytes = bytes[:min(len(bytes), 4096)]
		z := newTwins(t, 70, func(n int) int {
			if len(bytes) == 0 {
				return 0
			}
			next := int(bytes[0])
			bytes = bytes[1:]
			return next % n
		})
		for len(bytes) > 0 {
			for range z.below(8) {
				z.change()
			}
			z.agree()
		}
		z.sound()
	})
}
