//go:build !race

package agents_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPython runs the tests of the Python SDK, which play the same dialogues as TestDialogues.
// The race detector cannot see them: the code of this test only starts python3.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") == "" {
		t.Logf("THE SDK FOR PYTHON IS NOT TESTED: %v (with $CI set this fails)", err)
		return
	}
	require.NoError(t, err, "without python3 nobody knows whether the SDK for Python works")
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	tests := exec.CommandContext(ctx, python, "-W", "error", "-m", "unittest", "-v")
	tests.Dir = "python"
	tests.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	tests.WaitDelay = time.Second
	said, err := tests.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "OK", "nothing was tested")
}
