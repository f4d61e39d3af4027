package cli

import (
	"fmt"

	"orchestrator/supervisor/config"
)

// Nearest returns the word closest to wrong, or "" if none is close.
func Nearest(wrong string, words []string) string {
	best, distance := "", max(1, min(3, len(wrong)/2))+1
	for _, word := range words {
		if d := config.EditDistance(wrong, word); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// DidYouMean returns the nearest word as the end of a message.
func DidYouMean(wrong string, words []string) string {
	if word := Nearest(wrong, words); word != "" {
		return fmt.Sprintf(".  Did you mean %q?", word)
	}
	return ""
}
