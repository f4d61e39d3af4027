package object

import "strings"

// These functions find the intended word for a misspelt one.

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

// SnakeCase returns a key such as taskId in the spelling of protocol A: task_id.
func SnakeCase(key string) string {
	var spelled []byte
	for i := range len(key) {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			spelled = append(spelled, '_')
			c |= 0x20
		}
		spelled = append(spelled, c)
	}
	return string(spelled)
}
