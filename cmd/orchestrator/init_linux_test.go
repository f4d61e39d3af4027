package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory that packages may allocate before main, half as much again as they do now. A client
// command takes a few milliseconds, mostly for regular expressions and tables that it does not
// use. The time depends on the machine; the memory does not.
const (
	maxOfOurs   = 38_000
	maxOfOthers = 270_000
	maxOfAll    = 950_000
)

// initialized is a package in the init trace of the runtime.
type initialized struct {
	name  string
	bytes int
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, \d+ allocs$`)

// TestInitIsSmall checks that package initialization is small. Large values belong into a
// sync.OnceValue.
func TestInitIsSmall(t *testing.T) {
	t.Parallel()
	program, err := shipped()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	var packages []initialized
	all := 0
	for _, found := range initLine.FindAllStringSubmatch(string(text), -1) {
		bytes, err := strconv.Atoi(found[2])
		require.NoError(t, err)
		packages = append(packages, initialized{name: found[1], bytes: bytes})
		all += bytes
	}
	require.Greater(t, len(packages), 50, "the runtime told nothing to judge:\n%s", text)
	slices.SortFunc(packages, func(a, b initialized) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, p := range packages {
		most := maxOfOthers
		if p.name == "main" || strings.HasPrefix(p.name, module+"/") {
			most = maxOfOurs
		}
		if p.bytes > most {
			t.Errorf("%s allocates %d bytes before main, and may %d", p.name, p.bytes, most)
		}
	}
	if all > maxOfAll {
		t.Errorf("all packages allocate %d bytes before main, and may %d; the largest: %s", all, maxOfAll, fmt.Sprint(packages[:8]))
	}
}
