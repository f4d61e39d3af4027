package config

import (
	"fmt"
	"slices"
	"strings"
)

// nearest returns the known name that was most likely meant, or "".
func nearest(wrong string, known []string) string {
	if len(wrong) < 2 {
		return "" // any other single letter would do
	}
	best, bestDistance := "", min(3, (len(wrong)+1)/2)+1
	low := strings.ToLower(wrong)
	for _, name := range slices.Sorted(slices.Values(known)) {
		if name == wrong {
			continue
		}
		d := EditDistance(low, strings.ToLower(name))
		if d >= bestDistance && len(low) >= 3 && strings.Contains(strings.ToLower(name), low) {
			d = bestDistance - 1 // TERM for SIGTERM
			if best != "" {
				continue
			}
		}
		if d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// didYouMean is nearest as a sentence, or "".
func didYouMean(wrong string, known []string) string {
	if name := nearest(wrong, known); name != "" {
		return fmt.Sprintf("Did you mean %q?", name)
	}
	return ""
}

// EditDistance returns how many letters are missing, superfluous, wrong or swapped with their
// neighbor between two words.
func EditDistance(a, b string) int {
	const tooLong = 128 // names that long are not mistyped, and the cost is quadratic
	if len(a) > tooLong || len(b) > tooLong {
		return tooLong
	}
	var before, previous, current [tooLong + 1]int
	for j := range len(b) + 1 {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous = previous, current
	}
	return previous[len(b)]
}

// quotedList joins names for a sentence: "a", "b" or "c".
func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
