package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// starters are first projects: a folder a language. The program of each is
// kept as text, so that it is not taken for a part of this one.
//
//go:embed starter
var starters embed.FS

// created answers init for programs.
type created struct {
	FormatVersion string        `json:"format_version"`
	Files         []createdFile `json:"created"`
	Next          []string      `json:"next"`
}

type createdFile struct {
	File  string `json:"file"`
	Lines int    `json:"lines"`

	text []byte
}

func (a *app) initCommand() *cobra.Command {
	lang := choice{value: "sh", of: languageNames()}
	team := choice{of: []string{"review"}}
	var force, list, unit bool
	verb := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first orchestrator.hcl and its agents",
		Long: `Writes the smallest orchestrator.hcl that runs, and one small agent for it. Files
that exist are never overwritten without --force. The agent does tasks, and needs
nothing but the language that it is written in.

With --team review it writes a team of three shell scripts: a planner that asks you
something and gives out two tasks, a writer, and a reviewer that is given what the
writer has made.

With --systemd it writes nothing, and prints a unit that runs the team as a service
of yours.`,
		Example: "  orchestrator init\n  orchestrator init --lang py shop\n  orchestrator init --team review shop\n  orchestrator init --systemd >~/.config/systemd/user/shop.service",
		Args:    argCount(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(verb *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			switch {
			case team.value != "" && verb.Flags().Changed("lang"):
				return usageError("--team and --lang write different things", "Write: orchestrator init --team "+team.value)
			case team.value != "" && (list || unit):
				return usageError("--team writes files, and --list and --systemd only print", "Write: orchestrator init --team "+team.value)
			case list && unit:
				return usageError("--list and --systemd print different things", "Write: orchestrator init --list")
			case list:
				return a.listLanguages()
			case unit:
				return a.printUnit(dir)
			}
			p := languages[slices.Index(lang.of, lang.value)].project()
			if team.value != "" {
				p = project{folder: "team/" + team.value, flags: "--team " + team.value, language: languages[0], next: []string{"orchestrator up"}}
			}
			return a.initialize(dir, p, force)
		},
	}
	verb.Flags().Var(&lang, "lang", "language of the agent: sh, go, ts or py")
	verb.Flags().Var(&team, "team", "team to write instead of one agent: review")
	verb.Flags().BoolVar(&force, "force", false, "overwrite files that exist")
	verb.Flags().BoolVar(&list, "list", false, "list the languages")
	verb.Flags().BoolVar(&unit, "systemd", false, "print a unit for systemd, and write nothing")
	_ = verb.RegisterFlagCompletionFunc("lang", lang.complete)
	_ = verb.RegisterFlagCompletionFunc("team", team.complete)
	return verb
}

// project is what init writes.
type project struct {
	folder   string   // of the starters
	flags    string   // that ask for it
	language language // of its agents
	next     []string // commands to run
}

func (a *app) initialize(dir string, p project, force bool) error {
	files, err := starter(p.folder)
	if err != nil {
		return err
	}
	root := a.path(dir)
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(root, file.File)); err == nil && !force {
			return alreadyThere(dir, root, file.File, p)
		}
	}
	var made []string
	for _, file := range files {
		more, err := writeNew(filepath.Join(root, file.File), file.text)
		made = append(made, more...)
		if err != nil {
			f := &failure{exit: exitNo, code: codeFailed, message: "cannot write " + filepath.Join(dir, file.File), because: []string{rootOf(err)}}
			if !force {
				unmake(made)
				f.because = append(f.because, "Nothing was written.")
			}
			return f
		}
	}
	return a.showCreated(dir, p, files)
}

// alreadyThere refuses to overwrite a file. What is there can be run where there is a
// file of a team.
func alreadyThere(dir, root, file string, p project) *failure {
	hint := "Overwrite it: " + overwriting(dir, p)
	if _, err := os.Stat(filepath.Join(root, "orchestrator.hcl")); err == nil {
		hint = "Run what is there: " + strings.Join(nextSteps(dir, "orchestrator up -d"), " && ") + "     " + hint
	}
	return &failure{
		exit: exitConflict, code: wire.CodeConflict,
		message: filepath.Join(dir, file) + " already exists",
		because: []string{"Nothing was written."},
		hint:    hint,
	}
}

// overwriting is the command that writes what is there already.
func overwriting(dir string, p project) string {
	return strings.TrimSpace("orchestrator init --force " + p.flags + " " + dirWord(dir))
}

// nextSteps are commands for a folder.
func nextSteps(dir string, commands ...string) []string {
	if dir != "" && filepath.Clean(dir) != "." {
		return append([]string{"cd " + plain.Word(dir)}, commands...)
	}
	return commands
}

// starter reads the files of one project.
func starter(folder string) ([]createdFile, error) {
	var files []createdFile
	base := path.Join("starter", folder)
	err := fs.WalkDir(starters, base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := starters.ReadFile(name)
		if err != nil {
			return err
		}
		file := strings.TrimSuffix(strings.TrimPrefix(name, base+"/"), ".txt")
		files = append(files, createdFile{File: file, Lines: strings.Count(string(text), "\n"), text: text})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the first project in %s: %w", folder, err)
	}
	// The file that people will edit comes before the folders below it.
	slices.SortStableFunc(files, func(a, b createdFile) int {
		return strings.Count(a.File, "/") - strings.Count(b.File, "/")
	})
	return files, nil
}

// writeNew writes a file and the folders above it, and says which of them were not
// there, also when it fails.
func writeNew(file string, text []byte) (made []string, err error) {
	for dir := filepath.Dir(file); !exists(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		made = append(made, dir)
	}
	slices.Reverse(made)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return made, err
	}
	if !exists(file) {
		made = append(made, file)
	}
	return made, os.WriteFile(file, text, 0o666)
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// unmake removes what was made, the last first. A folder that has got something in it
// meanwhile stays.
func unmake(made []string) {
	for _, name := range slices.Backward(made) {
		_ = os.Remove(name)
	}
}

func (a *app) showCreated(dir string, p project, files []createdFile) error {
	next, lang := nextSteps(dir, p.next...), p.language
	if a.flags.json {
		return a.document(created{FormatVersion: wire.FormatVersion, Files: files, Next: next})
	}
	rows := make([][]cell, 0, len(files))
	for _, file := range files {
		rows = append(rows, []cell{text("  created " + filepath.Join(dir, file.File)), figure(plain.Count(file.Lines, "line"))})
	}
	if err := a.print("%s", table(rows)); err != nil || a.flags.quiet {
		return err
	}
	if a.program(lang.command[0]) == "" {
		a.note("%s is not on your PATH, and runs this agent. Get it: %s     Or take another language: orchestrator init --list", lang.command[0], lang.get)
	}
	return a.print("Next:  %s\n", strings.Join(next, "\n       "))
}

// rootOf is what went wrong with a file, without the name that the message
// already has.
func rootOf(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
