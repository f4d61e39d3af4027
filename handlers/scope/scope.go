package scope

import (
	"path"
	"strings"
	"unicode/utf8"
)

// maxPatterns bounds the patterns of a Scope after alternatives are expanded. Further patterns
// allow nothing.
const maxPatterns = 2000

// A Scope is an immutable set of patterns of files that may change.
type Scope struct {
	files map[string]struct{} // from patterns that stand for one file
	globs []glob
}

// New returns the Scope of some patterns.
func New(patterns []string) *Scope {
	s := &Scope{files: make(map[string]struct{})}
	for room := maxPatterns; len(patterns) > 0 && room > 0; patterns = patterns[1:] {
		all, tried := alternatives(patterns[0])
		for _, text := range all[:min(len(all), room)] {
			s.add(text)
		}
		room -= tried
	}
	return s
}

// add adds a pattern without alternatives.
func (s *Scope) add(text string) {
	text, ok := normal(text)
	switch {
	case !ok:
	case strings.ContainsAny(text, special):
		s.globs = append(s.globs, newGlob(text))
	default:
		s.files[text] = struct{}{}
	}
}

// Outside returns the files that may not change, as they were given.
func (s *Scope) Outside(files []string) (outside []string) {
	steps := maxSteps
	for _, file := range files {
		if !s.allows(file, &steps) {
			outside = append(outside, file)
		}
	}
	return outside
}

// Outside returns the files that no pattern allows, as they were given.
func Outside(patterns, files []string) []string { return New(patterns).Outside(files) }

// maxSteps bounds the steps of one check of any number of files. The most expensive check
// found took a tenth of a second.
const maxSteps = 1 << 25

// look is the number of steps to find that a file is not near a pattern.
const look = 6

// allows reports whether a file may change. It deducts its steps from steps.
func (s *Scope) allows(file string, steps *int) bool {
	file, ok := clean(file)
	if !ok {
		return false
	}
	if _, ok := s.files[file]; ok {
		return true
	}
	for i := range s.globs {
		if *steps -= s.globs[i].price(file); *steps < 0 {
			*steps = 0
			return false
		}
		if s.globs[i].matches(file) {
			return true
		}
	}
	return false
}

// maxPathLength bounds a path; no system opens longer ones.
const maxPathLength = 4096

// clean returns the normal form of a file. It returns false if the file is not below the top
// folder.
func clean(file string) (string, bool) {
	if file == "" || len(file) > maxPathLength || strings.ContainsAny(file, "\\\x00") || !utf8.ValidString(file) {
		return "", false
	}
	file = path.Clean(file)
	switch {
	case file == ".", file == "..", strings.HasPrefix(file, "../"), strings.HasPrefix(file, "/"), onDrive(file):
		return "", false
	}
	return file, true
}

// onDrive reports whether a file begins with the letter of a drive.
func onDrive(file string) bool {
	if len(file) < 2 || file[1] != ':' {
		return false
	}
	letter := file[0] | 0x20
	return letter >= 'a' && letter <= 'z'
}
