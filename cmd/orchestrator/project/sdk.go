package project

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/agents/python"
	"orchestrator/agents/typescript"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// A library is the embedded SDK for a language.
type library struct {
	name  string
	files fs.FS
	// An agent imports the module, a folder of the files. init writes it into the folder at, beside the agent.
	module, at string
	install    string // the command that installs the folder DIR
}

var libraries = []library{
	{
		name: "python", files: python.Files, module: "orchestrator_agent", at: "agents/orchestrator_agent",
		install: "python3 -m pip install DIR",
	},
	{
		name: "typescript", files: typescript.Files, module: "dist", at: "agents/orchestrator-agent",
		install: "npm install DIR",
	},
}

// libraryOf returns the library with a name, or nil.
func libraryOf(name string) *library {
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
	if i < 0 {
		return nil
	}
	return &libraries[i]
}

// all returns the files of the library.
func (l *library) all() ([]createdFile, error) { return filesOf(l.files, ".") }

// beside returns the files that an agent needs beside it, with the README and the license.
func (l *library) beside() ([]createdFile, error) {
	files, err := filesOf(l.files, l.module)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"README.md", "LICENSE"} {
		text, err := fs.ReadFile(l.files, name)
		if err != nil {
			return nil, err
		}
		files = append(files, createdFile{File: name, Lines: strings.Count(string(text), "\n"), Text: text})
	}
	if l.name == "typescript" { // Node before 22 takes a file without this for an older kind of module
		files = append(files, createdFile{File: "package.json", Lines: 1, Text: []byte("{\"type\": \"module\"}\n")})
	}
	for i := range files {
		files[i].File = path.Join(l.at, files[i].File)
	}
	return files, nil
}

// filesOf returns the files in a folder.
func filesOf(all fs.FS, base string) (files []createdFile, err error) {
	err = fs.WalkDir(all, base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(all, name)
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(name, base+"/")
		files = append(files, createdFile{File: file, Lines: strings.Count(string(text), "\n"), Text: text})
		return nil
	})
	return files, err
}

// SDKCommand returns the sdk command.
func SDKCommand(a *cli.App) *cobra.Command {
	force := false
	verb := &cobra.Command{
		Use:   "sdk LANGUAGE DIR",
		Short: "Write the library for agents in Python or TypeScript",
		Long: `Writes the library for agents in a language into a new folder, as a package that you can
install. It has the version of this orchestrator. The languages are python and typescript;
JavaScript uses the latter. It needs no compiler and no network.

Agents in Go import the package agents of the orchestrator. Programs in other languages print
JSON lines: see orchestrator help agents and orchestrator schema.`,
		Example: "  orchestrator sdk python orchestrator-agent\n  orchestrator sdk typescript orchestrator-agent",
		Args:    cli.ArgCount(2, 2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []cobra.Completion{"python", "typescript"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			l := libraryOf(args[0])
			if l == nil {
				return cli.UsageError("no library exists for "+term.OneLine(args[0]), "Usage: orchestrator sdk python "+term.Word(args[1])+", or typescript (for JavaScript as well)")
			}
			return writeLibrary(a, l, args[1], force)
		},
	}
	verb.Flags().BoolVar(&force, "force", false, "overwrite files that exist")
	return verb
}

func writeLibrary(a *cli.App, l *library, dir string, force bool) error {
	root := a.Path(dir)
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot write " + dir, Because: []string{rootOf(err)}}
	}
	if len(entries) > 0 && !force {
		return &cli.Failure{
			Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: dir + " is not empty", Because: []string{"Nothing was written."},
			Hint: "To write into it anyway: orchestrator sdk --force " + l.name + " " + term.Word(dir),
		}
	}
	files, err := l.all()
	if err != nil {
		return err
	}
	if err := writeAll(root, dir, files, nil, force); err != nil {
		return err
	}
	next := []string{strings.ReplaceAll(l.install, "DIR", installWord(dir))}
	if a.Flags.JSON {
		return a.Document(created{FormatVersion: wire.FormatVersion, Files: files, Next: next})
	}
	if a.Flags.Quiet {
		return nil
	}
	return a.Print("  created %s  %s\nNext:  %s\n", dir, term.Count(len(files), "file"), strings.Join(next, "\n       "))
}

// installWord returns a folder as a package manager knows it from the name of a package: with a slash.
func installWord(dir string) string {
	if !filepath.IsAbs(dir) {
		dir = "./" + filepath.Clean(dir)
	}
	return term.Word(dir)
}

// writeAll writes files into the folder root, which is called dir. After an error, it removes the
// files that it has created, and the folders in made, unless files may be overwritten.
func writeAll(root, dir string, files []createdFile, made []string, force bool) error {
	for _, file := range files {
		more, err := writeNew(filepath.Join(root, file.File), file.Text)
		made = append(made, more...)
		if err != nil {
			f := &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot write " + filepath.Join(dir, file.File), Because: []string{rootOf(err)}}
			if !force {
				unmake(made)
				f.Because = append(f.Because, "Nothing was written.")
			}
			return f
		}
	}
	return nil
}
