package supervisor

import (
	"runtime/debug"
	"slices"
)

// rounds returns how often to repeat a random test: n times, or n/8 under the race detector,
// where each round is several times slower. Races show early; rare cases are left to the run
// without it.
func rounds(n int) int {
	build, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 8
	}
	return n
}
