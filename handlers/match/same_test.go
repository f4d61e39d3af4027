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
func (z *twins) name() string { return fmt.Sprintf("a%d", z.below(z.names)) }

// some returns up to most of a few values, sometimes one twice. Tools and tags, languages and
// repos share their texts.
func (z *twins) some(most, of int) (values []string) {
	for range z.below(most + 1) {
		values = append(values, string(rune('p'+z.below(of))))
	}
	return values
}

func (z *twins) one(of int) string { return string(rune('p' + z.below(of))) }

func (z *twins) offer() (o Offer) {
	if z.below(8) == 0 {
		return Offer{}
	}
	for _, name := range both([]string{"p", "q", "r"}, z.some(3, 4)) {
		o.Repos = append(o.Repos, Repo{Name: name, Languages: z.some(2, 4), Tools: z.some(3, 6)})
	}
	o.Languages, o.Environments, o.Tools, o.Tags = z.some(4, 4), z.some(2, 3), z.some(4, 6), z.some(5, 6)
	return o
}

func (z *twins) standing() Standing {
	return Standing{Online: z.below(2) == 0, Running: z.below(3), Capacity: z.below(4), Load: z.below(4)}
}

func (z *twins) demand() *Demand {
	d := &Demand{Environments: z.some(2, 4), Tools: z.some(6, 7), Tags: z.some(9, 7)}
	if z.below(2) == 0 {
		d.Languages = z.some(3, 5)
	}
	if z.below(3) == 0 {
		d.Repo = z.one(4)
	}
	if z.below(3) == 0 {
		d.Prefer = z.name()
	}
	return d
}

func (z *twins) conditions() Conditions {
	c := Conditions{Online: z.below(3) == 0, Free: z.below(3) == 0}
	if z.below(3) == 0 {
		c.Not = z.name()
	}
	return c
}

// change makes one change to both.
func (z *twins) change() {
	name := z.name()
	switch z.below(6) {
	case 0:
		z.index.Remove(name)
		delete(z.naive, name)
	case 1, 2:
		a := naiveAgent{offer: z.offer(), standing: z.standing()}
		z.index.Put(name, a.offer, a.standing)
		z.naive[name] = a
	default:
		s := z.standing()
		z.index.Stand(name, s)
		if a, known := z.naive[name]; known {
			a.standing = s
			z.naive[name] = a
		}
	}
}

// agree compares the answers of both.
func (z *twins) agree() {
	d, c := z.demand(), z.conditions()
	wantName, wantScore, wantOK := z.naive.best(d, c)
	name, score, ok := z.index.Best(d, c)
	require.Equal(z.t, wantName, name, "%+v %+v", d, c)
	require.Equal(z.t, wantScore, score, "%+v %+v", d, c)
	require.Equal(z.t, wantOK, ok, "%+v %+v", d, c)
	require.Equal(z.t, z.naive.verdicts(d), z.index.Verdicts(d), "%+v", d)
	one := z.name()
	require.Equal(z.t, z.naive.verdict(d, one), z.index.Verdict(d, one), "%+v", d)
	require.Equal(z.t, z.naive.fits(d, one, c), z.index.Fits(d, one, c), "%+v %+v", d, c)
	if ok {
		require.True(z.t, z.index.Fits(d, name, c))
		require.Equal(z.t, score, z.index.Verdict(d, name).Score)
	}
}

// sound checks that nothing is left behind: slots without an agent, and values that no agent
// offers.
func (z *twins) sound() {
	x := z.index
	require.Len(z.t, x.slots, len(z.naive))
	require.Len(z.t, x.order, len(z.naive))
	require.Len(z.t, x.agents, len(z.naive)+len(x.spare))
	require.LessOrEqual(z.t, len(x.agents), z.names)
	offered := make(map[value]int)
	for _, a := range x.agents {
		for _, h := range a.offers {
			offered[h.of]++
		}
	}
	require.Len(z.t, x.by, len(offered))
	for v, h := range x.by {
		require.Equal(z.t, v, h.of)
		require.NotEmpty(z.t, h.cells)
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
