package handlers

import (
	"runtime/debug"
	"slices"
)

// rounds is how often something is tried by chance: n times, or a sixteenth of
// that where the race detector makes each try several times as slow. Races show
// early; what is rare is for the run without it.
func rounds(n int) int {
	build, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 16
	}
	return n
}
