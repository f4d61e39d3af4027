package scope

import (
	"path"
	"strings"
	"unicode/utf8"
)

// longestPath is as long as any that a system can open.
const longestPath = 4096

// clean is the one way to write a file, unless it is none below the top.
func clean(file string) (string, bool) {
	if file == "" || len(file) > longestPath || strings.ContainsAny(file, "\\\x00") || !utf8.ValidString(file) {
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
