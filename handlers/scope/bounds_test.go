package scope

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoundsOfAPattern checks the last accepted and the first refused size of each bound.
//
// Rows: C-28, T-28.
func TestBoundsOfAPattern(t *testing.T) {
	for name, test := range map[string]struct {
		make func(n int) string
		most int
		file string
	}{
		"long":         {func(n int) string { return strings.Repeat("a", n-1) + "*" }, maxPatternLength, strings.Repeat("a", maxPatternLength)},
		"stars":        {func(n int) string { return strings.Repeat("*", n) }, maxWildcards, "a"},
		"questions":    {func(n int) string { return strings.Repeat("?", n-1) + "*" }, maxWildcards, strings.Repeat("a", maxWildcards)},
		"classes":      {func(n int) string { return strings.Repeat("[a]", n-1) + "*" }, maxWildcards, strings.Repeat("a", maxWildcards)},
		"braces":       {func(n int) string { return strings.Repeat("{a}", n) }, maxBraces, strings.Repeat("a", maxBraces)},
		"nested":       {func(n int) string { return strings.Repeat("{", n) + "a" + strings.Repeat("}", n) }, maxBraces, "a"},
		"alternatives": {func(n int) string { return "{" + strings.Repeat("b,", n-1) + "a}" }, maxAlternatives, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, allows(New([]string{test.make(test.most)}), test.file))
			require.False(t, allows(New([]string{test.make(test.most + 1)}), test.file))
		})
	}
	escaped := strings.Repeat(`\*\?\[\{\}`, maxWildcards)
	require.True(t, allows(New([]string{escaped}), strings.ReplaceAll(escaped, `\`, "")), "what is escaped does not count")
	require.False(t, allows(New([]string{strings.Repeat("{a,b}", maxBraces)}), strings.Repeat("a", maxBraces)), "2 to the power of 8")
}

// TestBoundsOfAScope checks that patterns beyond the bound allow nothing. Alternatives count,
// even those refused for being too many.
//
// Rows: C-28, T-28.
func TestBoundsOfAScope(t *testing.T) {
	of := func(n int, pattern string) []string {
		patterns := make([]string, n, n+1)
		for i := range patterns {
			patterns[i] = pattern
		}
		return append(patterns, "last")
	}
	for name, test := range map[string]struct {
		pattern string
		each    int
	}{
		"one":       {"a*", 1},
		"not well":  {"[", 1},
		"absolute":  {"/a", 1},
		"three":     {"{a,b,c}*", 3},
		"too many":  {strings.Repeat("{a,b}", maxBraces), maxAlternatives},
		"very many": {strings.Repeat("{a,b,c,d,e}", maxBraces), maxAlternatives},
	} {
		t.Run(name, func(t *testing.T) {
			fit := (maxPatterns - 1) / test.each
			require.True(t, allows(New(of(fit, test.pattern)), "last"))
			s := New(of(maxPatterns/test.each+1, test.pattern))
			require.False(t, allows(s, "last"))
			require.LessOrEqual(t, len(s.globs)+len(s.files), maxPatterns)
		})
	}
}

// TestSteps checks that an expensive query stops at its bound of steps. Files that were not
// checked by then are outside.
//
// Rows: C-75, T-28.
func TestSteps(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			s := New([]string{test.pattern, "a.go", "**/[a].go"})
			require.Len(t, s.globs, 2)
			require.True(t, allows(s, "x/a.go"))
			require.False(t, allows(s, test.file))

			steps, asked := maxSteps/16, 0
			for ; steps > 0; asked++ {
				require.False(t, s.allows(test.file, &steps))
			}
			require.Zero(t, steps)
			require.LessOrEqual(t, asked, maxSteps/16/look)
			require.False(t, s.allows("x/a.go", &steps))
			require.True(t, s.allows("a.go", &steps), "a file by its name is found without")
			require.True(t, allows(s, "x/a.go"), "and the next question has its own")
		})
	}
}

// TestPriceIsKept checks that a compiled pattern is not much longer than its text. Then the
// bounds of the text also bound the matching.
func TestPriceIsKept(t *testing.T) {
	for _, pattern := range []string{
		strings.Repeat("[!a]", maxWildcards), strings.Repeat("[^a-b]", maxWildcards-2) + "/**", strings.Repeat("**/", maxWildcards/2-1) + "**",
	} {
		s := New([]string{pattern})
		require.Len(t, s.globs, 1, "%q", pattern)
		require.LessOrEqual(t, len(s.globs[0].tail), len(pattern)+len("/-/")*maxWildcards+len("/*"))
	}
}
