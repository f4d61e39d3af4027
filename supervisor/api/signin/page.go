package signin

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"time"
)

// PageLife is how long a page of WritePage is needed. Its code holds for a shorter time.
const PageLife = 15 * time.Second

// WritePage writes a page to a folder that leads a browser to a URL with a code, and returns its path. A command line
// that has the URL itself shows its code to every process of the machine. The page is closed to other users.
func WritePage(dir, to string) (path string, err error) {
	file, err := os.CreateTemp(dir, "ui-*.html") // with the mode 0600
	if err != nil {
		return "", fmt.Errorf("writing a page for the browser: %w", err)
	}
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=utf-8><title>orchestrator</title><meta http-equiv=refresh content=\"0; url=%s\">\n", html.EscapeString(to))
	return file.Name(), errors.Join(err, file.Close())
}

// ClearPages removes the pages of a folder that are older than a time.
func ClearPages(dir string, age time.Duration) {
	left, _ := filepath.Glob(filepath.Join(dir, "ui-*.html"))
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) >= age {
			_ = os.Remove(name)
		}
	}
}
