package config

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"orchestrator/supervisor/config/problem"
)

// The severities of a Problem.
const (
	SeverityError   = problem.SeverityError
	SeverityWarning = problem.SeverityWarning
)

// Problems of a configuration.
type (
	Problem  = problem.Problem
	Problems = problem.Problems
	Range    = problem.Range
	Position = problem.Position
	Snippet  = problem.Snippet
)

var (
	errIsFolder = errors.New("it is a folder")
	errNotThere = errors.New("no such file")
	errNoFolder = errors.New("no such folder")

	errBadEnvKey = errors.New("a variable's name is text without = in it")
	errEnvNUL    = errors.New("the value contains a NUL byte, which cannot be passed to a program")

	errNoRunner       = errors.New("commands of secrets cannot be run here")
	errNothingCame    = errors.New("it did not respond in time")
	errNoSource       = errors.New("it has no source")
	errNotUTF8        = errors.New("it is not UTF-8 text, so it can only stand alone, as NAME = secret.name")
	errSecretTooLarge = errors.New("it is larger than 1 MiB")
)

// cause returns the reason of a file error without the path, which the message around it
// contains.
func cause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNotThere
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// folderCause is cause for a folder.
func folderCause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFolder
	}
	return cause(err)
}

// Format returns a configuration with standard indentation and aligned equals signs. It keeps
// comments and line breaks. A file that does not parse is returned unchanged, with its
// problems. JSON is returned unchanged.
func Format(src []byte, filename string) ([]byte, Problems) {
	r := &reader{sources: map[string]*source{}}
	if _, ok := r.parse(src, filename, false); !ok {
		return src, r.problems.Sorted()
	}
	if filepath.Ext(filename) == ".json" {
		return src, nil
	}
	return settledLayout(src), nil
}

// settledLayout formats until the text no longer changes. Aligning comments can need a second pass after the equals
// signs before them have moved.
func settledLayout(src []byte) []byte {
	const enough = 4
	for range enough {
		out := hclwrite.Format(src)
		if bytes.Equal(out, src) {
			break
		}
		src = out
	}
	return src
}
