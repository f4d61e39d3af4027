package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// verdict is the JSON answer of validate.
type verdict struct {
	FormatVersion string           `json:"format_version"`
	Valid         bool             `json:"valid"`
	File          string           `json:"file"`
	Agents        int              `json:"agent_count"`
	Processes     int              `json:"process_count"`
	Errors        int              `json:"error_count"`
	Warnings      int              `json:"warning_count"`
	Diagnostics   []config.Problem `json:"diagnostics"`
}

// ValidateCommand returns the validate command.
func ValidateCommand(a *cli.App) *cobra.Command {
	var strict, noEnv bool
	verb := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check the file without starting anything",
		Long: `Checks the file as "up" does. It shows all mistakes at once, each with its place and
the correct form. It starts nothing, not even git: only "up" and "reload" find that a
repository has no commit at which a workspace could begin.

--no-env treats values from the environment and from secrets as unknown, for machines
that do not have them.`,
		Example: `  orchestrator validate
  orchestrator validate deploy/orchestrator.hcl --strict
  orchestrator validate --json --no-env     in CI`,
		Args: cli.ArgCount(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"hcl", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return validate(a, append(args, a.Flags.Config)[0], strict, noEnv)
		},
	}
	verb.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	verb.Flags().BoolVar(&noEnv, "no-env", false, "treat env() and secrets as unknown")
	return verb
}

func validate(a *cli.App, name string, strict, noEnv bool) error {
	file, err := a.FindConfig(name)
	if err != nil {
		return err
	}
	options := a.Options()
	options.NoEnv = noEnv
	c, problems := config.Load(file, options)
	valid := problems.Errors() == 0 && (!strict || problems.Warnings() == 0)
	if !a.Flags.JSON {
		return showVerdict(a, a.Short(file), c, problems, valid)
	}
	if err := a.Document(verdictOf(file, c, problems, valid)); err != nil || valid {
		return err
	}
	return cli.ExitWith(cli.ExitNo)
}

func verdictOf(file string, c *config.Config, problems config.Problems, valid bool) verdict {
	v := verdict{
		FormatVersion: wire.FormatVersion, Valid: valid, File: file,
		Errors: problems.Errors(), Warnings: problems.Warnings(), Diagnostics: problems,
	}
	if c != nil {
		v.Agents, v.Processes = teamSize(c)
	}
	return v
}

func showVerdict(a *cli.App, file string, c *config.Config, problems config.Problems, valid bool) error {
	if !valid {
		return a.ShowProblems(problems, "The file is not valid.", cli.ExitNo)
	}
	if len(problems) > 0 {
		if err := a.ShowProblems(problems, "", cli.ExitOK); err != nil {
			return err
		}
	}
	if a.Flags.Quiet {
		return nil
	}
	noteMissing(a, c)
	agents, processes := teamSize(c)
	size := term.Count(agents, "agent")
	if processes != agents {
		size += " (" + term.Count(processes, "process") + ")"
	}
	return a.Print("%s is valid: %s.\n", file, size)
}

// missingProgram reports whether the program of an agent does not exist. An agent with a PATH in
// its env may find other programs, so for such an agent it reports only paths.
func missingProgram(a *cli.App, agent *config.Agent) bool {
	name := agent.Command[0]
	if !strings.Contains(name, "/") {
		return !agent.MaySetPath() && program(a, name) == "" && name != "orchestrator"
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(agent.Dir, name)
	}
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// noteMissing reports programs and scripts that do not exist. They are not mistakes of the file: it
// may be for another machine, and a build may make them before the team starts.
func noteMissing(a *cli.App, c *config.Config) {
	told := make(map[string]bool)
	for _, agent := range c.Agents {
		if len(agent.Command) == 0 || agent.Placement != nil || told[agent.Block] {
			continue
		}
		told[agent.Block] = true
		if missingProgram(a, &agent) {
			a.Note("Agent %s: program %s not found.", agent.Block, term.OneLine(agent.Command[0]))
		}
		for _, word := range agent.Command[1:] {
			if word == "-c" || word == "-e" || word == "-m" { // a program in a word, or a module
				break
			}
			if strings.HasPrefix(word, "-") {
				continue
			}
			script := word
			if !filepath.IsAbs(script) {
				script = filepath.Join(agent.Dir, script)
			}
			if _, err := os.Stat(script); slices.Contains(scripts, filepath.Ext(word)) && errors.Is(err, fs.ErrNotExist) {
				a.Note("Agent %s: file %s does not exist.", agent.Block, a.Short(script))
			}
			break // the rest are arguments of the script
		}
	}
}

// scripts are the extensions of the names of files that interpreters run.
var scripts = []string{".py", ".js", ".mjs", ".ts", ".sh", ".rb"}

// teamSize returns the number of agent blocks of a file and of their processes.
func teamSize(c *config.Config) (agents, processes int) {
	blocks := map[string]bool{}
	for _, agent := range c.Agents {
		blocks[agent.Block] = true
	}
	return len(blocks), len(c.Agents)
}

// formatted is the JSON answer of fmt.
type formatted struct {
	FormatVersion string          `json:"format_version"`
	Files         []formattedFile `json:"files"`
}

// A formattedFile is the result for one file: whether it was changed, and the difference.
type formattedFile struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Diff    string `json:"diff,omitzero"`

	text []byte // formatted
	path string
}

// FmtCommand returns the fmt command.
func FmtCommand(a *cli.App) *cobra.Command {
	var check, differ bool
	verb := &cobra.Command{
		Use:   "fmt [FILE…|-]",
		Short: "Format the file",
		Long: `Formats configuration files and prints the names of the changed ones. Without names it
formats the file that "up" would use; "-" reads stdin and writes stdout.

--check and --diff write nothing. --check prints the names and exits with 3 if there are
any; --diff shows the changes.`,
		Example: `  orchestrator fmt
  orchestrator fmt --check --diff     in CI
  orchestrator fmt - < old.hcl > new.hcl`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"hcl"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) == 1 && files[0] == "-" {
				return formatStream(a, check, differ)
			}
			return formatFiles(a, files, check, differ)
		},
	}
	verb.Flags().BoolVar(&check, "check", false, "write nothing, exit 3 if a file is not formatted")
	verb.Flags().BoolVar(&differ, "diff", false, "write nothing, show the changes")
	return verb
}

// formatFiles formats files. It reads all of them before it writes one, so that a mistake
// in one file leaves all files unchanged.
func formatFiles(a *cli.App, names []string, check, differ bool) error {
	if len(names) == 0 {
		file, err := a.FindConfig(a.Flags.Config)
		if err != nil {
			return err
		}
		names = []string{a.Short(file)}
	}
	answer := formatted{FormatVersion: wire.FormatVersion}
	for _, name := range names {
		if name == "-" {
			return cli.UsageError(`"-" cannot be combined with files`, "Usage: orchestrator fmt -")
		}
		file, err := formatFile(a, name)
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
			if err := cli.ReplaceFile(file.path, file.text); err != nil {
				return fmt.Errorf("writing %s: %w", file.File, err)
			}
		}
	}
	if err := showFormatted(a, answer, differ); err != nil {
		return err
	}
	if check && changed {
		return cli.ExitWith(cli.ExitDifferences)
	}
	return nil
}

func showFormatted(a *cli.App, answer formatted, differ bool) error {
	if a.Flags.JSON {
		return a.Document(answer)
	}
	for _, file := range answer.Files {
		if !file.Changed || a.Flags.Quiet {
			continue
		}
		shown := wire.Visible(file.File) + "\n"
		if differ {
			shown = file.Diff
		}
		if err := a.Print("%s", shown); err != nil {
			return err
		}
	}
	return nil
}

// formatFile returns the formatted text of a file.
func formatFile(a *cli.App, name string) (formattedFile, error) {
	path := a.Path(name)
	before, err := os.ReadFile(path)
	if err != nil {
		return formattedFile{}, &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("cannot read %s", name), Because: []string{rootOf(err)}}
	}
	after, err := format(a, before, name)
	if err != nil {
		return formattedFile{}, err
	}
	file := formattedFile{File: name, text: after, path: path, Changed: !bytes.Equal(before, after)}
	if file.Changed {
		file.Diff = string(diff.Diff(name, before, name+" (usual form)", after))
	}
	return file, nil
}

// format formats a text and prints the problems in it.
func format(a *cli.App, src []byte, name string) ([]byte, error) {
	text, problems := config.Format(src, name)
	if problems.Errors() > 0 {
		return nil, a.Invalid(problems, "Nothing was written.")
	}
	return text, nil
}

// formatStream formats stdin to stdout.
func formatStream(a *cli.App, check, differ bool) error {
	if a.Flags.JSON {
		return cli.UsageError(`"fmt -" prints text, not JSON`, "Leave out --json")
	}
	before, err := io.ReadAll(a.Stdin)
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	after, err := format(a, before, "stdin")
	if err != nil {
		return err
	}
	switch {
	case differ:
		err = a.Print("%s", diff.Diff("stdin", before, "stdin (usual form)", after))
	case !check:
		err = a.Print("%s", after)
	}
	if err == nil && check && !bytes.Equal(before, after) {
		return cli.ExitWith(cli.ExitDifferences)
	}
	return err
}
