//go:build !linux

package home

import (
	"errors"
	"io"
	"os"
)

// lightBeacon returns nil: there are no abstract sockets here, so only the lock file is used.
func lightBeacon(string) (io.Closer, error) { return nil, nil }

func takeBeacon(*os.File) (io.Closer, error) {
	return nil, errors.New("there are no abstract sockets here")
}
