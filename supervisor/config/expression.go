package config

import (
	"regexp"
	"sync"
)

// expression returns a func that compiles a regular expression at its first call. Every command
// links this package, but most read no file.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
