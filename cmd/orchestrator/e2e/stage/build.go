package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

// Program returns the path of the orchestrator, and builds it first unless it is up to date.
func Program(t *testing.T) string { return Built(t, "cmd/orchestrator") }

// Fixture returns the path of a program of fixtures, like Program.
func Fixture(t *testing.T, name string) string { return Built(t, "fixtures/"+name) }

// Built returns the path of a program of the module, given its folder, and builds it first unless it is up to date.
func Built(t *testing.T, name string) string {
	t.Helper()
	once, _ := built.LoadOrStore(name, sync.OnceValue(func() error { return build(name) }))
	require.NoError(t, once.(func() error)())
	return filepath.Join(folder(), path.Base(name))
}

var built sync.Map // functions that build a program once, by name

// folder has the programs that the tests of this checkout share. The first test binary links them, and the others find
// them up to date.
var folder = sync.OnceValue(func() string {
	if known := os.Getenv(folderEnv); known != "" {
		return known
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	checkout := sha256.Sum256([]byte(source.Path("")))
	return filepath.Join(cache, "orchestrator-tests", hex.EncodeToString(checkout[:6]))
})

// folderEnv tells the programs of a stage the folder, because they have another home.
const folderEnv = "BUILT_PROGRAMS"

// origin is the file in a folder of programs that names its checkout.
const origin = "checkout"

// removeStale removes the programs of checkouts that are gone.
func removeStale() {
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(folder()), "*", origin))
	for _, file := range all {
		if checkout, err := os.ReadFile(file); err == nil {
			if _, err := os.Stat(string(checkout)); errors.Is(err, fs.ErrNotExist) {
				_ = os.RemoveAll(filepath.Dir(file))
			}
		}
	}
}

func build(name string) error {
	if err := os.MkdirAll(folder(), 0o700); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(folder(), ".lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder(), origin), []byte(source.Path("")), 0o600); err != nil {
		return err
	}
	removeStale()
	if text, err := exec.Command("go", "build", "-o", folder()+"/", source.Module+"/"+name).CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", name, err, text)
	}
	return nil
}
