package scope

import (
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// naive reports whether a pattern without braces allows a clean file, in the obvious way: name
// by name, trying every match of **.
func naive(t *testing.T, pattern, file string) bool {
	if strings.HasPrefix(pattern, "/") || strings.HasSuffix(pattern, "/") {
		return false
	}
	names := slices.DeleteFunc(strings.Split(pattern, "/"), func(name string) bool { return name == "" })
	return naiveNames(t, names, strings.Split(file, "/"))
}

func naiveNames(t *testing.T, patterns, names []string) bool {
	switch {
	case len(patterns) == 0:
		return len(names) == 0
	case patterns[0] == "**" && len(patterns) == 1:
		return len(names) > 0
	case patterns[0] == "**":
		return naiveNames(t, patterns[1:], names) || len(names) > 0 && naiveNames(t, patterns, names[1:])
	case len(names) == 0:
		return false
	}
	matched, err := path.Match(strings.NewReplacer("[!-", `[^\-`, "[!", "[^").Replace(patterns[0]), names[0])
	require.NoError(t, err)
	return matched && naiveNames(t, patterns[1:], names[1:])
}

// maker makes patterns, and with each its expanded braces.
type maker struct{ *rand.Rand }

var parts = []string{"a", "b", "-", "a", "/", "/", "*", "?", "[ab]", "[!a]", "[^b-c]", "[!-a]", `\*`, `\a`, "**/", "/**", "/**/", "**"}

func (m maker) pattern(depth int) (text string, all []string) {
	all = []string{""}
	for range 1 + m.IntN(5) {
		part, ways := m.part(depth)
		text += part
		var longer []string
		for _, before := range all {
			for _, way := range ways {
				longer = append(longer, before+way)
			}
		}
		all = longer
	}
	return text, all
}

func (m maker) part(depth int) (text string, ways []string) {
	if depth == 0 || m.IntN(5) > 0 {
		part := parts[m.IntN(len(parts))]
		return part, []string{part}
	}
	var texts []string
	for range 1 + m.IntN(3) {
		if m.IntN(5) == 0 {
			texts, ways = append(texts, ""), append(ways, "")
			continue
		}
		part, more := m.pattern(depth - 1)
		texts, ways = append(texts, part), append(ways, more...)
	}
	return "{" + strings.Join(texts, ",") + "}", ways
}

func (m maker) file() string {
	var names []string
	for range 1 + m.IntN(4) {
		var name strings.Builder
		for range 1 + m.IntN(3) {
			name.WriteString(string("aab-*"[m.IntN(5)]))
		}
		names = append(names, name.String())
	}
	return strings.Join(names, "/")
}

// TestModel compares a scope with a search of all possible matches.
//
// Rows: C-75, T-28.
func TestModel(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(28, 75))}
	allowed, refused := 0, 0
	for range 20_000 {
		text, all := m.pattern(2)
		if len(all) > maxAlternatives || !modest(text) {
			continue
		}
		s := New([]string{text})
		for range 8 {
			file := m.file()
			want := slices.ContainsFunc(all, func(pattern string) bool { return naive(t, pattern, file) })
			require.Equal(t, want, allows(s, file), "%q and %q", text, file)
			if want {
				allowed++
			} else {
				refused++
			}
		}
	}
	require.Greater(t, allowed, 5000)
	require.Greater(t, refused, 5000)
}

// FuzzOutside checks that no input panics, and that an allowed file is below the root and below
// the fixed prefix of its pattern. Each file is decided independently.
func FuzzOutside(f *testing.F) {
	for _, test := range hostile {
		f.Add(test.pattern, test.file)
	}
	for _, pattern := range []string{"**", "{a,{b,/../c}}/**", "[!a-]/[", "a/**/", `\`, "./[.][.]/**", "{..,.}/{..,.}/*", "/**", "C:**"} {
		f.Add(pattern, "a/../b/./c//d")
		f.Add(pattern, "../"+pattern)
	}
	f.Fuzz(func(t *testing.T, pattern, file string) {
		outside := Outside([]string{pattern}, []string{file, "a/b", file})
		s := New([]string{pattern})
		require.Equal(t, 2*count(!allows(s, file))+count(!allows(s, "a/b")), len(outside))
		if !allows(s, file) {
			require.Contains(t, outside, file)
			return
		}
		require.True(t, filepath.IsLocal(file), "%q", file)
		require.NotEqual(t, ".", path.Clean(file))
		require.NotContains(t, file, "\x00")
		require.NotContains(t, file, `\`)
		require.True(t, allows(s, path.Clean(file)))
		require.True(t, allows(New([]string{"**"}), file))
		for _, top := range []string{"/", "../"} {
			require.False(t, allows(s, top+file))
		}
		below := New([]string{"top/" + pattern})
		require.False(t, allows(below, file) && !strings.HasPrefix(path.Clean(file), "top/"), fmt.Sprintf("%q", file))
	})
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
