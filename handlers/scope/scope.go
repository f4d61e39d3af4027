package scope

import "strings"

// mostPatterns is how many patterns a Scope has once alternatives are written out.
// The rest allows nothing.
const mostPatterns = 2000

// Scope is which files may change. It never changes itself.
type Scope struct {
	files map[string]struct{} // from patterns that stand for one file
	globs []glob
}

// New is the Scope of some patterns.
func New(patterns []string) *Scope {
	s := &Scope{files: make(map[string]struct{})}
	for room := mostPatterns; len(patterns) > 0 && room > 0; patterns = patterns[1:] {
		all, tried := alternatives(patterns[0])
		for _, text := range all[:min(len(all), room)] {
			s.add(text)
		}
		room -= tried
	}
	return s
}

// add takes in a pattern without alternatives.
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

// Outside is the files that may not change, as they were given.
func (s *Scope) Outside(files []string) (outside []string) {
	steps := mostSteps
	for _, file := range files {
		if !s.allows(file, &steps) {
			outside = append(outside, file)
		}
	}
	return outside
}

// Outside is the files that no pattern allows, as they were given.
func Outside(patterns, files []string) []string { return New(patterns).Outside(files) }

// mostSteps is what one question may take, however many files it is about. The
// most expensive that was found to ask took a tenth of a second for it.
const mostSteps = 1 << 25

// look is the steps that it takes to see that a file is not near a pattern.
const look = 6

// allows takes its steps from those that are left.
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
