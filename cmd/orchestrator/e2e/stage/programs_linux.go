package stage

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/programs"
)

// FreeAddresses returns n addresses at which no program listens.
func FreeAddresses(t *testing.T, n int) []string {
	addresses, err := programs.FreeAddresses(n)
	require.NoError(t, err)
	return addresses
}

// Fixture builds a program of fixtures, once, and returns its path.
func Fixture(t *testing.T, name string) string {
	t.Helper()
	build, _ := fixturesBuilt.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		this, err := Program()
		if err != nil {
			return "", err
		}
		program := filepath.Join(filepath.Dir(this), name)
		return program, exec.Command("go", "build", "-o", program, "orchestrator/fixtures/"+name).Run()
	}))
	program, err := build.(func() (string, error))()
	require.NoError(t, err)
	return program
}

var fixturesBuilt sync.Map
