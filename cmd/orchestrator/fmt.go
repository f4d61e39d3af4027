package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// formatted answers fmt for programs.
type formatted struct {
	FormatVersion string          `json:"format_version"`
	Files         []formattedFile `json:"files"`
}

// formattedFile is one file: whether its form was not the usual one, and how
// it differs.
type formattedFile struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Diff    string `json:"diff,omitzero"`

	text []byte // in the usual form
	path string
}

func (a *app) fmtCommand() *cobra.Command {
	var check, differ bool
	verb := &cobra.Command{
		Use:   "fmt [FILE…|-]",
		Short: "Write the file in the usual form",
		Long: `Rewrites configuration files in the usual form and prints the names of those
that changed. Without names it is the file that "up" would use; "-" reads
stdin and writes stdout.

--check and --diff write nothing: --check prints the names and exits with 3
when there are any, --diff shows what would change.`,
		Example: `  orchestrator fmt
  orchestrator fmt --check --diff     in CI
  orchestrator fmt - < old.hcl > new.hcl`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"hcl"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) == 1 && files[0] == "-" {
				return a.formatStream(check, differ)
			}
			return a.formatFiles(files, check, differ)
		},
	}
	verb.Flags().BoolVar(&check, "check", false, "write nothing, exit 3 if a file is not in the usual form")
	verb.Flags().BoolVar(&differ, "diff", false, "write nothing, show what would change")
	return verb
}

// formatFiles brings files into form. All are read before one is written, so
// that a mistake in the last does not leave the first changed.
func (a *app) formatFiles(names []string, check, differ bool) error {
	if len(names) == 0 {
		file, err := a.findConfig()
		if err != nil {
			return err
		}
		names = []string{a.short(file)}
	}
	answer := formatted{FormatVersion: wire.FormatVersion}
	for _, name := range names {
		if name == "-" {
			return usageError(`"-" stands alone`, "Write it as: orchestrator fmt -")
		}
		file, err := a.formatFile(name)
		if err != nil {
			return err
		}
		answer.Files = append(answer.Files, file)
	}
	changed := false
	for i, file := range answer.Files {
		if !file.Changed {
			continue
		}
		changed = true
		if !check && !differ {
			answer.Files[i].Diff = ""
			if err := replaceFile(file.path, file.text); err != nil {
				return fmt.Errorf("writing %s: %w", file.File, err)
			}
		}
	}
	if err := a.showFormatted(answer, check, differ); err != nil {
		return err
	}
	if check && changed {
		return exitWith(exitDifferences)
	}
	return nil
}

func (a *app) showFormatted(answer formatted, check, differ bool) error {
	if a.flags.json {
		return a.document(answer)
	}
	for _, file := range answer.Files {
		if !file.Changed || a.flags.quiet {
			continue
		}
		shown := wire.Visible(file.File) + "\n"
		if differ {
			shown = file.Diff
		}
		if err := a.print("%s", shown); err != nil {
			return err
		}
	}
	return nil
}

// formatFile reads a file and says what its usual form is.
func (a *app) formatFile(name string) (formattedFile, error) {
	path := a.path(name)
	before, err := os.ReadFile(path)
	if err != nil {
		return formattedFile{}, &failure{exit: exitNo, code: codeFailed, message: fmt.Sprintf("cannot read %s", name), because: []string{rootOf(err)}}
	}
	after, err := a.format(before, name)
	if err != nil {
		return formattedFile{}, err
	}
	file := formattedFile{File: name, text: after, path: path, Changed: !bytes.Equal(before, after)}
	if file.Changed {
		file.Diff = string(diff.Diff(name, before, name+" (usual form)", after))
	}
	return file, nil
}

// format is config.Format with its problems shown.
func (a *app) format(src []byte, name string) ([]byte, error) {
	text, problems := config.Format(src, name)
	if problems.Errors() > 0 {
		return nil, a.invalid(problems, "Nothing was written.")
	}
	return text, nil
}

// formatStream is the filter: stdin to stdout.
func (a *app) formatStream(check, differ bool) error {
	if a.flags.json {
		return usageError(`"fmt -" answers with the text itself, not with JSON`, "Leave out --json")
	}
	before, err := io.ReadAll(a.stdin)
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	after, err := a.format(before, "stdin")
	if err != nil {
		return err
	}
	switch {
	case differ:
		err = a.print("%s", diff.Diff("stdin", before, "stdin (usual form)", after))
	case !check:
		err = a.print("%s", after)
	}
	if err == nil && check && !bytes.Equal(before, after) {
		return exitWith(exitDifferences)
	}
	return err
}

// replaceFile writes a file whole or not at all, through links and with the
// rights it had. A new one has those that the user gives new files.
func replaceFile(path string, text []byte) error {
	var rights fs.FileMode
	if target, err := filepath.EvalSymlinks(path); err == nil {
		info, err := os.Stat(target)
		if err != nil {
			return err
		}
		path, rights = target, info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".orchestrator-new-%d", os.Getpid()))
	next, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err == nil && rights != 0 {
		err = next.Chmod(rights)
	}
	if closing := next.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
