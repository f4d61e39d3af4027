//go:build !linux

package home

import (
	"errors"
	"io"
	"os"
)

// lockName returns nil: this system has no abstract sockets, so only the lock file is used.
func lockName(string) (io.Closer, error) { return nil, nil }

func takeName(*os.File) (io.Closer, error) {
	return nil, errors.New("there are no abstract sockets here")
}
