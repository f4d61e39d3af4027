package scope

import (
	"fmt"
	"strings"
	"testing"
)

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
