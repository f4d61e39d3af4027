package child

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveAll removes a folder and its contents. It follows no links. Unlike os.RemoveAll, it needs the same few
// descriptors for any depth, because an agent may have made very many folders in each other.
func RemoveAll(path string) error {
	top, err := openFolder(unix.AT_FDCWD, path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return os.Remove(path)
	case err != nil:
		return err
	}
	err = empty(top)
	return errors.Join(err, top.Close(), os.Remove(path))
}

// empty removes the contents of a folder. Before it removes an inner folder, it moves the folders of that up.
func empty(top *os.File) error {
	moved := 0
	for {
		names, err := namesIn(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if unlink(top, name) {
				continue
			}
			folder, err := openFolder(int(top.Fd()), name)
			if err != nil {
				return err
			}
			err = raise(folder, top, &moved)
			if err = errors.Join(err, folder.Close()); err == nil {
				err = unix.Unlinkat(int(top.Fd()), name, unix.AT_REMOVEDIR)
			}
			if err != nil {
				return &os.PathError{Op: "remove", Path: name, Err: err}
			}
		}
	}
}

// raise removes the files of a folder, and moves its folders to the top.
func raise(folder, top *os.File, moved *int) error {
	for {
		names, err := namesIn(folder)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if unlink(folder, name) {
				continue
			}
			for range 10_000 { // names may be taken
				*moved++
				err = unix.Renameat(int(folder.Fd()), name, int(top.Fd()), "moved-"+strconv.Itoa(*moved))
				if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
					break
				}
			}
			if err != nil {
				return &os.PathError{Op: "rename", Path: name, Err: err}
			}
		}
	}
}

// unlink removes a file or an empty folder, and reports whether it is gone.
func unlink(folder *os.File, name string) bool {
	return unix.Unlinkat(int(folder.Fd()), name, 0) == nil || unix.Unlinkat(int(folder.Fd()), name, unix.AT_REMOVEDIR) == nil
}

func openFolder(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// namesIn returns some of the names in a folder, from its beginning.
func namesIn(folder *os.File) ([]string, error) {
	if _, err := folder.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(256)
	if err == io.EOF {
		err = nil
	}
	return names, err
}
