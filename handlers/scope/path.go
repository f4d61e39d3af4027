package scope

import (
	"path"
	"strings"
	"unicode/utf8"
)

// maxPathLength bounds a path; no system opens longer ones.
const maxPathLength = 4096

// clean returns the normal form of a file. It returns false if the file is not below the top
// folder.
func clean(file string) (string, bool) {
	if file == "" || len(file) > maxPathLength || strings.ContainsAny(file, "\\\x00") || !utf8.ValidString(file) {
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
