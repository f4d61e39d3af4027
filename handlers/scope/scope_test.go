package scope

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllows checks what each pattern allows, and what it only seems to allow.
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

		// These allow nothing.
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
		for _, file := range strings.Fields(test.inside) {
			require.True(t, allows(s, file), "%q should allow %q", test.pattern, file)
		}
		for _, file := range strings.Fields(test.outside) {
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
