package scope

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllows checks the paths that each pattern allows, and the paths that it only seems to allow.
//
// Rows: C-28, C-75, T-28.
func TestAllows(t *testing.T) {
	for _, test := range []struct {
		pattern string
		inside  string // separated by spaces
		outside string
	}{
		{"kitchen/kettle/**", "kitchen/kettle/lid.go kitchen/kettle/a/b.go ./kitchen//kettle/./lid.go kitchen/x/../kettle/lid.go kitchen/kettle/.hidden",
			"kitchen/kettle kitchen/kettle/ kitchen/kettles/lid.go kitchen/kettleX/a kitchen/kettle/../../pot.go kitchen/kettle/../pot.go kitchen/kettle/.. /kitchen/kettle/lid.go x/kitchen/kettle/lid.go"},
		{"./a/**", "a/b ./a/b a/b/c", "a b"},
		{".//a/./b//*.go", "a/b/c.go", "a/b/c/d.go"},
		{"**", "a a/b a/b/c .git/config", ". .. ../a / /a a/.. a/../../b"},
		{"**/*.go", "a.go a/b.go a/b/c.go .go", "a.gox a.go/b"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "b a ab a/x a/xb"},
		{"a/**/**", "a/b a/b/c", "a"},
		{"**/a/**", "a/b x/a/b x/y/a/b/c", "a x/a"},
		{"a**", "a ab a.b", "a/b ab/c"},
		{"a/**.go", "a/b.go", "a/b/c.go"},
		{"a/***", "a/b", "a a/b/c"},
		{"a/*", "a/b a/.b", "a a/b/c"},
		{"a?c", "abc aéc", "a/c ac abbc"},
		{"*/b", "a/b", "b a/a/b"},
		{"a[b-d]e", "abe ace ade", "ae aae a/e abbe"},
		{"a[!b]c", "adc a-c", "abc a/c"},
		{"a[^b]c", "adc a-c", "abc a/c"},
		{"a[!-b]c", "adc a.c", "abc a-c a/c"},
		{"a[!.]c", "adc", "a.c a/c"},
		{"a[.-0]c", "", "a.c a/c a0c"},
		{"a[/]c", "", "a/c"},
		{"a[!/./]c", "", "a/c a.c abc"},
		{`a[\]]c`, "a]c", "abc a/c"},
		{"*.{go,sql}", "a.go b.sql", "a.g a.go,sql a.{go,sql}"},
		{"{a,b/{c,d}}/*.go", "a/x.go b/c/x.go b/d/x.go", "b/x.go c/x.go a/b/c/x.go"},
		{"{a/**,b}", "a/x a/x/y b", "a b/x"},
		{"a{/**,}", "a a/b", "ab"},
		{"a{}", "a", "a{}"},
		{"{[,],{}x", "", "[x {x ,x"},
		{"[{,}]x", "{x ,x }x", "x [x"},
		{`pages/\[id\]/**`, "pages/[id]/a.tsx", "pages/i/a.tsx pages/id/a.tsx"},
		{`a\{b,c\}`, "a{b,c}", "ab ac"},
		{"a/b.go", "a/b.go ./a/b.go a//b.go x/../a/b.go a/b.go/", "a/b_go a/b.gox a/b.go/c b.go A/b.go a/B.go"},
		{"a]", "a]", "a"},
		{"é/*", "é/x", "e/x"},

		// These allow no path.
		{"", "", ". a"},
		{".", "", ". a"},
		{"./", "", ". a"},
		{"/", "", "a / /a"},
		{"/a", "", "a /a"},
		{"/**", "", "a /a a/b"},
		{"//a/**", "", "a/b /a/b //a/b"},
		{"{,x}/a", "x/a", "a /a"},
		{"a/", "", "a a/ a/b"},
		{"a/**/", "", "a a/b a/b/"},
		{"../**", "", "../a a .."},
		{"a/../b", "", "b a/b a/../b"},
		{"[", "", "[ a"},
		{"[]", "", "[] a"},
		{"[!]", "", "a !"},
		{"a[b", "", "ab a[b"},
		{"{a,b", "", "a b {a,b"},
		{"a}", "", "a a}"},
		{`a\`, "", "a"},
		{"a/*[", "", "a/b a/["},
	} {
		s := New([]string{test.pattern})
		for file := range strings.FieldsSeq(test.inside) {
			require.True(t, allows(s, file), "%q should allow %q", test.pattern, file)
		}
		for file := range strings.FieldsSeq(test.outside) {
			require.False(t, allows(s, file), "%q should not allow %q", test.pattern, file)
		}
	}
}

// TestNeverInside checks names that are no file below the root, in a scope that allows
// everything.
//
// Rows: C-75, T-28.
func TestNeverInside(t *testing.T) {
	s := New([]string{"**", "**/*", "*", "../**", "/**", "{.,..}/**", `\\**`, "[a-z]:/**", "a\x00b", "a\xff"})
	require.True(t, allows(s, "a"))
	for _, file := range []string{
		"", ".", "./", "..", "../", "../a", "./../a", "a/../../b", "a/..", "/", "/a", "//a", "/../a", "/etc/passwd",
		`a\b`, `..\a`, `a\..\..\b`, `\\host\share`, `C:\a`, "C:/a", "c:a", "./z:/a", "x/../C:/a",
		"a\x00b", "a/b\x00", "a\xff", "\xc0\xae\xc0\xae/a", strings.Repeat("a", maxPathLength+1), strings.Repeat("./", maxPathLength) + "a",
	} {
		require.False(t, allows(s, file), "%q", file)
	}
	for _, file := range []string{"...", "..a", "a..", ".a", "ab:c", "1:a", "a/c:d", "a b", "a\nb", strings.Repeat("a", maxPathLength)} {
		require.True(t, allows(s, file), "%q", file)
	}
	require.Equal(t, []string{"a\xfe"}, Outside([]string{"a\xff", "a?", "a*"}, []string{"a\xfe"}))
}

// TestOutside checks that files are returned unchanged, in their order and with their repeats.
// Rows: C-28, C-36, C-75, T-28.
func TestOutside(t *testing.T) {
	files := []string{"./b//c", "a/x", "../a/x", "./b//c", "a/../a/y", "/a/x", ""}
	require.Equal(t, []string{"./b//c", "../a/x", "./b//c", "/a/x", ""}, Outside([]string{"a/**"}, files))
	require.Equal(t, []string{"../a/x", "/a/x", ""}, Outside([]string{"[", "a/**", "b/c", "b/c"}, files))
	require.Equal(t, files, Outside(nil, files))
	require.Equal(t, files, Outside([]string{}, files))
	require.Empty(t, Outside([]string{"a"}, nil))
	require.Empty(t, Outside(nil, nil))
	require.Empty(t, Outside([]string{"a"}, []string{"a", "./a"}))
}

func allows(s *Scope, file string) bool { return len(s.Outside([]string{file})) == 0 }

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

// TestBoundsOfAScope checks that patterns beyond the bound allow no path. Alternatives count, even
// those refused for being too many.
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

// hostile lists scopes and files made to be expensive: each wildcard nearly matches, again and
// again.
var hostile = []struct {
	name    string
	pattern string
	file    string
}{
	{"many folders", strings.Repeat("**/", 15) + "[b]", strings.Repeat("a/", 2047) + "c"},
	{"folders and stars", strings.Repeat("**/*/", 9) + "[b]", strings.Repeat("a/", 2047) + "c"},
	{"stars", strings.Repeat("*a", 31) + "b*", strings.Repeat("a", 4095)},
	{"a long name", "*" + strings.Repeat("a", 480) + "b*", strings.Repeat("a", 4095)},
	{"a long name below", "**/*" + strings.Repeat("a", 120) + "b*", strings.Repeat(strings.Repeat("a", 254)+"/", 16)},
	{"classes", "**/*" + strings.Repeat("[a-bc-de-fi-j]", 27) + "b*", strings.Repeat(strings.Repeat("j", 254)+"/", 16)},
	{"negated classes", "**/*" + strings.Repeat("[!b-cd-ef-gh-i]", 27) + "b*", strings.Repeat(strings.Repeat("j", 254)+"/", 16)},
	{"long tail", "**/*" + strings.Repeat("a", 480) + "[b]", strings.Repeat("a/", 2047) + "c"},
	{"letters of many bytes", "*" + strings.Repeat("é", 240) + "b*", strings.Repeat("é", 2047)},
	{"names one by one", "**/" + strings.Repeat("a/", 240) + "b*", strings.Repeat("a/", 2047) + "c"},
	{"near miss at the end", "**/" + strings.Repeat("*a/", 28) + "[b]", strings.Repeat(strings.Repeat("a", 120)+"/", 30) + "c"},
	{"not near", strings.Repeat("a", 480) + "/" + "*b", strings.Repeat("a", 480) + "/" + "c"},
	{"not near and short", "a*b", "c"},
}

// BenchmarkHostile matches the same file and pattern until the steps run out.
func BenchmarkHostile(b *testing.B) {
	for _, test := range hostile {
		b.Run(test.name, func(b *testing.B) {
			s := New([]string{test.pattern})
			if len(s.globs) != 1 {
				b.Fatal("the pattern is refused")
			}
			file, _ := clean(test.file)
			steps := s.globs[0].price(file)
			for b.Loop() {
				if s.globs[0].matches(file) {
					b.Fatal("it matches")
				}
			}
			perStep := float64(b.Elapsed()) / float64(b.N) / float64(steps)
			b.ReportMetric(perStep, "ns/step")
			b.ReportMetric(perStep*float64(maxSteps)/1e6, "ms/question")
		})
	}
}

// BenchmarkCompile compiles the most expensive scopes.
func BenchmarkCompile(b *testing.B) {
	same := func(pattern string, n int) []string {
		return strings.Split(strings.Repeat(pattern+"\n", n-1)+pattern, "\n")
	}
	for name, patterns := range map[string][]string{
		"alternatives": same(strings.Repeat("{a,b}", 6)+strings.Repeat("x", 470)+"*", 100),
		"too many":     same(strings.Repeat("{a,b}", 8)+strings.Repeat("x", 470)+"*", 5000),
		"nested":       same(strings.Repeat("{", 8)+strings.Repeat("x", 480)+strings.Repeat("}", 8), 5000),
		"slashes":      same("a"+strings.Repeat("/.", 250)+"/*", 5000),
		"only slashes": same("a"+strings.Repeat("/", 480)+"/*", 5000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				New(patterns)
			}
		})
	}
}

// BenchmarkUsual checks a large completion in a large scope.
func BenchmarkUsual(b *testing.B) {
	var patterns, files []string
	for i := range 20 {
		patterns = append(patterns, fmt.Sprintf("frontend/src/components/part%d/**", i), fmt.Sprintf("services/s%d/**/*.{go,sql}", i))
	}
	for i := range 1000 {
		files = append(files, fmt.Sprintf("frontend/src/components/part%d/deep/er/file%d.tsx", i%20, i), fmt.Sprintf("services/s%d/store/file%d.go", i%20, i))
	}
	for b.Loop() {
		if New(patterns).Outside(files) != nil {
			b.Fatal("something is outside")
		}
	}
}
