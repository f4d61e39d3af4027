package hub

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/home"
)

// A killed orchestrator accepts connections and holds its state directory for a moment longer.
// One that answers holds it for good.
func TestOpenHome(t *testing.T) {
	t.Parallel()
	for answer, free := range map[string]bool{"": true, "HTTP/1.0 200 OK\r\n\r\n": false} {
		dir := t.TempDir()
		socket := filepath.Join(dir, "s")
		holder, err := OpenHome(dir, socket)
		require.NoError(t, err)
		defer holder.Close()
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		require.NoError(t, err)
		listener.SetUnlinkOnClose(false)
		defer listener.Close()
		ended := make(chan error, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				ended <- err
				return
			}
			defer conn.Close()
			if _, err = io.WriteString(conn, answer); answer == "" { // the listener is closed last
				holder.Close()
				err = listener.Close()
			}
			ended <- err
		}()
		held, err := OpenHome(dir, socket)
		require.NoError(t, <-ended)
		if free {
			require.NoError(t, err)
			held.Close()
			continue
		}
		var busy *home.BusyError
		require.ErrorAs(t, err, &busy)
	}
}
