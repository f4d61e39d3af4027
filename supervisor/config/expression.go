package config

import (
	"regexp"
	"sync"
)

// expression compiles a regular expression at its first use: every verb has this
// package in it, and most read no file.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
