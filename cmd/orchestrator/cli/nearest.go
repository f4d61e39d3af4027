package cli

import (
	"fmt"
)

// Nearest returns the word that was most likely meant, or "" when none is
// close.
func Nearest(wrong string, words []string) string {
	best, distance := "", max(1, min(3, len(wrong)/2))+1
	for _, word := range words {
		if d := typingDistance(wrong, word); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// DidYouMean is nearest as the end of a message.
func DidYouMean(wrong string, words []string) string {
	if word := Nearest(wrong, words); word != "" {
		return fmt.Sprintf(".  Did you mean %q?", word)
	}
	return ""
}

// typingDistance counts the slips between two words: a letter too many, one
// missing, a wrong one, or two neighbours swapped.
func typingDistance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
