//go:build !linux

package supervisor

import "io"

// lightBeacon returns nil: there are no abstract sockets here, so only the lock file is used.
func lightBeacon(string) (io.Closer, error) { return nil, nil }
