package eventlog

import (
	"errors"
	"io/fs"
	"os"
)

// A LostError reports that a file of the log was deleted or replaced while the log was open. No
// other process can read what is appended after that, and it is lost when this process ends.
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

// InPlace returns a *LostError if name no longer leads to the open file. If the folder cannot
// be read, it returns nil, because the open file may still be in place.
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

// meet returns the files of a log. SQLite holds them open, so their inode numbers are not
// reused.
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

// Sound returns a *LostError if a file of the log was moved or deleted. It reads only the
// folder, and waits for no lock of SQLite.
func (l *SQLite) Sound() error {
	for name, open := range l.files {
		if err := InPlace(name, open); err != nil {
			return err
		}
	}
	return nil
}
