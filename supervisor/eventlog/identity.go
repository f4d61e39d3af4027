package eventlog

import (
	"errors"
	"io/fs"
	"os"
)

// LostError reports that a file of the log was deleted or replaced while the log was
// open. What is appended after that can be read by no other process, and is gone with
// this one.
type LostError struct {
	Path     string
	Replaced bool // another file has the name now
}

func (e *LostError) Error() string {
	if e.Replaced {
		return e.Path + " was replaced by another file while the orchestrator ran"
	}
	return e.Path + " was deleted while the orchestrator ran"
}

// InPlace returns a *LostError if a name does not lead to a file any more that is open.
// Where the folder cannot be asked it returns nil: the open file is as good as before.
func InPlace(name string, open os.FileInfo) error {
	now, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &LostError{Path: name}
	case err != nil:
		return nil
	case !os.SameFile(open, now):
		return &LostError{Path: name, Replaced: true}
	}
	return nil
}

// meet notes which files a log consists of. SQLite holds them open, so their inode
// numbers are not used again.
func meet(path string) (map[string]os.FileInfo, error) {
	files := make(map[string]os.FileInfo)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) && name == path+"-shm" {
			continue // some systems have none
		}
		if err != nil {
			return nil, err
		}
		files[name] = info
	}
	return files, nil
}

// Sound returns a *LostError if a file of the log is not in its place any more. It asks
// the folder and not SQLite, and waits for no lock.
func (l *SQLite) Sound() error {
	for name, open := range l.files {
		if err := InPlace(name, open); err != nil {
			return err
		}
	}
	return nil
}
