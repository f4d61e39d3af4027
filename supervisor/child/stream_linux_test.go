package child

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongReads checks that after the output of a busy child has filled most of its pipe, the pipe becomes wider and
// the reads longer. No write of the child fills a buffer of chunkSize.
func TestLongReads(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := newTold()
		c.gate = make(chan struct{})
		done := filepath.Join(t.TempDir(), "done")
		c.start(t, h, sh("dd if=/dev/zero bs=60000 count=1 2>/dev/null; dd if=/dev/zero bs=60000 count=10 2>/dev/null; >"+done))
		c.gate <- struct{}{}
		waitForThat(t, func() bool {
			_, err := os.Stat(done)
			return err == nil
		})
		close(c.gate)
		<-c.ended
		longest, all := 0, 0
		for len(c.heard) > 0 {
			n := <-c.heard
			longest, all = max(longest, n), all+n
		}
		require.Equal(t, 660_000, all)
		require.Equal(t, wideChunk, longest)
	})
}
