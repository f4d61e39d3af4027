package state

import (
	"fmt"
)

// Counted returns a number with a noun in the singular or plural.
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
