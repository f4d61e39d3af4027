package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fileNames are the names of a configuration file, in the order of the search.
var fileNames = []string{"orchestrator.hcl", "orchestrator.hcl.json"}

// A NotFound reports that there is no configuration.
type NotFound struct {
	Looked []string // the folders searched, nearest first
}

func (nf *NotFound) Error() string {
	where := "nowhere"
	if n := len(nf.Looked); n > 0 {
		where = nf.Looked[0]
		if n > 1 {
			where += " or its parents up to " + nf.Looked[n-1]
		}
	}
	return fmt.Sprintf("no %s in %s", fileNames[0], where)
}

// Find returns the configuration file to use. It is explicit if that is not empty, else
// $ORC_CONFIG of environ. If explicit names a folder, it is the file in that folder. Find does
// not check whether an explicit file can be read.
//
// Otherwise Find searches dir and then its parents for orchestrator.hcl or
// orchestrator.hcl.json. The search ends with the first folder that holds .git, the home folder
// or the root. It does not go on to another device or to a folder of another user. A file found
// in this way must not be writable by another user.
func Find(dir, explicit string, environ []string) (string, error) {
	if explicit == "" {
		explicit, _ = lookup(environ, "ORC_CONFIG")
	}
	if explicit != "" {
		return given(dir, explicit)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the configuration: %w", err)
	}
	home, _ := lookup(environ, "HOME")
	notFound := &NotFound{}
	for at := dir; ; at = filepath.Dir(at) {
		if file, ok := configIn(at); ok {
			if err := trusted(file); err != nil {
				return "", err
			}
			return file, nil
		}
		notFound.Looked = append(notFound.Looked, at)
		_, err := os.Lstat(filepath.Join(at, ".git"))
		top := err == nil || at == filepath.Dir(at) || (home != "" && at == filepath.Clean(home)) ||
			elsewhere(at, filepath.Dir(at))
		if top {
			return "", notFound
		}
	}
}

func given(dir, explicit string) (string, error) {
	if !filepath.IsAbs(explicit) {
		explicit = filepath.Join(dir, explicit)
	}
	info, err := os.Stat(explicit)
	if err != nil || !info.IsDir() {
		return explicit, nil
	}
	if file, ok := configIn(explicit); ok {
		return file, nil
	}
	return "", &NotFound{Looked: []string{explicit}}
}

func configIn(dir string) (string, bool) {
	for _, name := range fileNames {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, true
		}
	}
	return "", false
}

// lookup returns a variable of a list such as os.Environ returns. The last of several counts,
// as for a started program.
func lookup(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}
