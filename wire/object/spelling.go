package object

import "strings"

// These functions find what a misspelt word was meant to be.

// Dashed rewrites complete_task and completeTask as complete-task.
func Dashed(word string) string {
	var b strings.Builder
	for i, r := range word {
		switch {
		case r == '_' || r == ' ':
			r = '-'
		case r >= 'A' && r <= 'Z':
			if r += 'a' - 'A'; i > 0 && word[i-1] >= 'a' && word[i-1] <= 'z' {
				b.WriteByte('-')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// EditDistance returns the edit distance of two texts.
func EditDistance(a, b string) int {
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			wrong := 1
			if a[i] == b[j] {
				wrong = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+wrong)
		}
		last, row = row, last
	}
	return last[len(b)]
}
