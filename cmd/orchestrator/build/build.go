// Package build describes this build of the program. It imports only packages that are initialized at once,
// because package first prints the version before the others are.
package build

import (
	"bytes"
	"runtime"
	_ "unsafe" // go:linkname
)

// Version is the version of this program.
const Version = "0.1.0"

// modinfo returns what debug.ReadBuildInfo parses. That package imports others which are initialized late.
//
//go:linkname modinfo runtime/debug.modinfo
func modinfo() string

// Commit returns the commit that this program was built from, or "", and whether the checkout was changed.
func Commit() (commit string, modified bool) {
	for line := range bytes.Lines([]byte(modinfo())) {
		setting, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte("build\t"))
		name, value, _ := bytes.Cut(setting, []byte("="))
		switch {
		case !ok:
		case string(name) == "vcs.revision":
			commit = string(value)
		case string(name) == "vcs.modified":
			modified = string(value) == "true"
		}
	}
	return commit, modified
}

// Line returns the build in one line.
func Line() string {
	line := "orchestrator " + Version + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	if commit, modified := Commit(); commit != "" {
		line += ", commit " + commit[:min(7, len(commit))]
		if modified {
			line += " changed"
		}
	}
	return line + ")"
}
