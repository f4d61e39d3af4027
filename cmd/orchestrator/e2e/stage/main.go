// Package stage is the harness of the end-to-end tests: an orchestrator in a folder, a team whose agents a test plays,
// HTTP clients, repositories, and scripts. A test package calls Main, and its binary is then the orchestrator, too.
package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/app"
	"orchestrator/supervisor/child"
)

// Main runs the tests of a package, whose binary is also the orchestrator, and the programs of scripts and agents:
// those here, and more.
func Main(m *testing.M, more map[string]func()) {
	child.Shim()                                                           // the watchdog must not run the tests
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue { // most tests wait for processes, and two packages run at a time
		_ = f.Value.Set("4")
	}
	all := map[string]func(){"orchestrator": orchestrator, "stand-in": standIn, "scripted": scripted, "worker": worker}
	maps.Copy(all, more)
	testscript.Main(m, all)
}

// racedEnv names a build with the race detector. It replaces this binary where much happens
// concurrently, but not in scripts, for agents and for client commands: the detector makes a start seven
// times as long. The watch command is not raced either, since its key reader closes the terminal
// without waiting; the package watch is raced in its own tests.
const racedEnv = "RACED_ORCHESTRATOR"

// isRaced reports whether a test uses the build with the race detector. A quarter of the tests does, and another
// quarter in the next run, because with all of them a run takes twice as long. RACED_QUARTER=0, 1, 2 or 3 takes the same.
func isRaced(t *testing.T) bool {
	name := fnv.New32a()
	_, _ = io.WriteString(name, t.Name())
	return name.Sum32()%4 == quarter()
}

var quarter = sync.OnceValue(func() uint32 {
	if n, err := strconv.ParseUint(os.Getenv("RACED_QUARTER"), 10, 32); err == nil {
		return uint32(n)
	}
	n := rand.Uint32N(4)
	fmt.Printf("RACED_QUARTER=%d\n", n) // shown if a test fails
	return n
})

// orchestrator runs the program.
func orchestrator() {
	long := func(word string) bool { return slices.Contains([]string{"up", "run", "pipe", "join"}, word) }
	if raced := os.Getenv(racedEnv); raced != "" && slices.ContainsFunc(os.Args[1:], long) {
		err := syscall.Exec(raced, os.Args, os.Environ())
		fmt.Fprintln(os.Stderr, raced, err)
		os.Exit(1)
	}
	app.Main()
}

// Program is the program as released, built when first used. It is next to the links to this
// binary and is deleted with them.
var Program = sync.OnceValues(func() (string, error) {
	this, err := exec.LookPath("orchestrator")
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(filepath.Dir(this)), "shipped", "orchestrator")
	text, err := exec.Command("go", "build", "-o", program, "orchestrator/cmd/orchestrator").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, text)
	}
	return program, nil
})

// RunScripts runs the scripts of a folder.
func RunScripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			// The search for a configuration ends in the folder of the script.
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("ORC_CONFIG", "")
			env.Setenv("ORC_HOST", "")
			env.Setenv("ORC_SOCKET", "")
			env.Setenv("NO_COLOR", "")
			env.Setenv("TERM", "xterm")
			return setup(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"document": document,
			"wait-for": waitForOutput,
		},
	})
}

// RaceOptions returns the race options of the tests without the delay of one second at exit.
func RaceOptions() string { return os.Getenv("GORACE") + " atexit_sleep_ms=0" }

// exits runs a command and checks its exit code: exits CODE COMMAND…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// document checks that the last command printed one JSON document to stdout and nothing to
// stderr.
func document(ts *testscript.TestScript, neg bool, _ []string) {
	if neg {
		ts.Fatalf("usage: document")
	}
	if said := ts.ReadFile("stderr"); said != "" {
		ts.Fatalf("stderr is not empty: %s", said)
	}
	decoder := json.NewDecoder(bytes.NewBufferString(ts.ReadFile("stdout")))
	var answer map[string]any
	ts.Check(decoder.Decode(&answer))
	if answer["format_version"] != "1.0" {
		ts.Fatalf("format_version is %v", answer["format_version"])
	}
	if err := decoder.Decode(&answer); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one document")
	}
}

// Patience is how long a test waits before it fails. It is far more than a busy machine needs.
const Patience = 5 * time.Minute

// waitForOutput repeats a command until its output matches. Scripts wait only in this way: wait-for
// PATTERN COMMAND…
func waitForOutput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: wait-for PATTERN COMMAND…")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(Patience); ; time.Sleep(20 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...)
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%q did not appear within %s", args[0], Patience)
		}
	}
}

// HasRuntime reports whether a runtime is there. Where CI is set, it must be.
func HasRuntime(t *testing.T, program string) bool {
	t.Helper()
	_, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") == "" {
		t.Logf("WHAT IS WRITTEN FOR %s IS NOT TESTED: %v (with $CI set this fails)", program, err)
		return false
	}
	require.NoError(t, err)
	return true
}
