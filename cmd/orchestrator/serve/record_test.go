package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/config"
)

// Every command that opens the record reports it if the address space is too small. The test
// does not set the limit, because then the Go runtime cannot always start a thread.
func TestLittleAddressSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	wrong := fmt.Errorf("opening: %w", syscall.ENOMEM)
	store := config.Store{Path: path}
	for name, err := range map[string]error{
		"up": cannotRecord(wrong, store), "task ls": unreadable(wrong, store), "store check": cannotReadRecord(wrong, path),
	} {
		f := cli.FailureOf(err)
		require.Equal(t, "there is too little address space for the record "+path, f.Message, name)
		require.Equal(t, "Raise the limit: ulimit -v unlimited", f.Hint, name)
	}
}
