// Package project holds the commands on the files of a project: init, validate, fmt and
// schema. They need no running orchestrator.
package project

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

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// starters holds the first projects, one folder for each language. Their programs are
// stored as text files, so that Go does not compile them as a part of this package.
//
//go:embed starter
var starters embed.FS

// created is the JSON answer of init.
type created struct {
	FormatVersion string        `json:"format_version"`
	Files         []createdFile `json:"created"`
	Next          []string      `json:"next"`
}

type createdFile struct {
	File  string `json:"file"`
	Lines int    `json:"lines"`

	Text []byte `json:"-"`
}

// aboutInit is the help of init.
const aboutInit = `Writes a minimal orchestrator.hcl and one small agent. Existing files are not
overwritten without --force. The agent works on tasks and requires only its language. In
Python and TypeScript its library is written beside it, which orchestrator sdk also writes.

With --team it writes a team instead. These have Claude Code and Codex as agents, which
work in the folder work. Where the kernel can confine them, they may change nothing else but
the folders of their programs:

  review   Claude writes, Codex reviews each task
  pair     Claude and Codex share the tasks and write mail to each other
  fan-out  Claude splits a task, and three times Codex does the parts

The team shell needs only a shell: a planner asks you a question and submits two tasks,
and a reviewer gets the result of a writer.

With --systemd it writes no files and prints a unit that runs the team as a user
service.`

// InitCommand returns the init command.
func InitCommand(a *cli.App) *cobra.Command {
	lang := cli.Choice{Value: "sh", Of: languageNames()}
	team := cli.Choice{Of: teamNames()}
	var force, list, unit bool
	verb := &cobra.Command{
		Use:     "init [DIR]",
		Short:   "Write a first orchestrator.hcl and its agents",
		Long:    aboutInit,
		Example: "  orchestrator init\n  orchestrator init --lang py shop\n  orchestrator init --team review shop\n  orchestrator init --systemd >~/.config/systemd/user/shop.service",
		Args:    cli.ArgCount(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(verb *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			switch {
			case team.Value != "" && verb.Flags().Changed("lang"):
				return cli.UsageError("--team and --lang cannot be combined", "Usage: orchestrator init --team "+team.Value)
			case team.Value != "" && (list || unit):
				return cli.UsageError("--team cannot be combined with --list or --systemd", "Usage: orchestrator init --team "+team.Value)
			case list && unit:
				return cli.UsageError("--list and --systemd cannot be combined", "Usage: orchestrator init --list")
			case list:
				return listLanguages(a)
			case unit:
				return printUnit(a, dir)
			}
			p := Languages[slices.Index(lang.Of, lang.Value)].project()
			if team.Value != "" {
				p = teams[slices.Index(team.Of, team.Value)].project()
			}
			return initialize(a, dir, p, force)
		},
	}
	verb.Flags().Var(&lang, "lang", "language of the agent: sh, go, ts or py")
	verb.Flags().Var(&team, "team", "team to write instead of one agent: review, pair, fan-out or shell")
	verb.Flags().BoolVar(&force, "force", false, "overwrite files that exist")
	verb.Flags().BoolVar(&list, "list", false, "list the languages")
	verb.Flags().BoolVar(&unit, "systemd", false, "print a unit for systemd, and write nothing")
	_ = verb.RegisterFlagCompletionFunc("lang", lang.Complete)
	_ = verb.RegisterFlagCompletionFunc("team", team.Complete)
	return verb
}

// A project is a set of files that init writes.
type project struct {
	folder string   // folder in starters
	flags  string   // flags that select it
	needs  []needed // programs that run its agents
	next   []string // commands to run
	work   string   // folder that its agents work in, or ""

	library string // name of the library that its agents import, or ""
}

// steps returns the commands to run. In a git repository, the agents get a worktree first. It begins at a commit with the
// files that init has written.
func (p project) steps(root string) []string {
	if !p.wantsWorktree(root) {
		return p.next
	}
	return append([]string{`git add . && git commit -m "Add a team"`, "git worktree add " + p.work}, p.next...)
}

// wantsWorktree reports whether the agents get a worktree that does not exist yet.
func (p project) wantsWorktree(root string) bool {
	return p.work != "" && exists(filepath.Join(root, ".git")) && !exists(filepath.Join(root, p.work, ".git"))
}

// ignoreWork has git ignore the worktree of the agents, which git add would otherwise add as a repository in a repository.
func (p project) ignoreWork(root string) error {
	if !p.wantsWorktree(root) {
		return nil
	}
	file := filepath.Join(commonDir(filepath.Join(root, ".git")), "info", "exclude")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line := "/" + p.work + "/"
	if slices.Contains(strings.Split(string(text), "\n"), line) {
		return nil
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, line+"\n"...), 0o666)
}

// commonDir returns the folder of a repository that its worktrees share. In a worktree, .git is a file that names a
// folder, which names the shared one.
func commonDir(git string) string {
	text, err := os.ReadFile(git)
	if err != nil {
		return git
	}
	dir := named(filepath.Dir(git), strings.TrimPrefix(string(text), "gitdir:"))
	if text, err = os.ReadFile(filepath.Join(dir, "commondir")); err != nil {
		return dir
	}
	return named(dir, string(text))
}

// named returns the path that a file of git names, relative to a folder or absolute.
func named(dir, path string) string {
	if path = strings.TrimSpace(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func initialize(a *cli.App, dir string, p project, force bool) error {
	files, err := Starter(p.folder)
	if err != nil {
		return err
	}
	root := a.Path(dir)
	var beside []createdFile
	if l := libraryOf(p.library); l != nil {
		if beside, err = l.beside(); err != nil {
			return err
		}
	}
	for _, file := range slices.Concat(files, beside) {
		if _, err := os.Lstat(filepath.Join(root, file.File)); err == nil && !force {
			return alreadyThere(dir, root, file.File, p)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "orchestrator.hcl.json")); err == nil && !force {
		return wouldShadow(dir, p)
	}
	made, err := makeFolder(root, p.work)
	if err != nil {
		return fmt.Errorf("making the folder of the agents: %w", err)
	}
	if err := writeAll(root, dir, slices.Concat(files, beside), made, force); err != nil {
		return err
	}
	if err := p.ignoreWork(root); err != nil {
		a.Note("git does not ignore the folder %s: %s. Add /%[1]s/ to .git/info/exclude", p.work, rootOf(err))
	}
	trust(a, root)
	return showCreated(a, dir, p, files, beside)
}

// makeFolder makes a folder below root. It returns the created folders.
func makeFolder(root, folder string) (made []string, err error) {
	if folder == "" {
		return nil, nil
	}
	dir := filepath.Join(root, folder)
	made = missing(dir)
	return made, os.MkdirAll(dir, 0o777)
}

// trust remembers the commands of the file that was written, so that up does not ask about them.
func trust(a *cli.App, root string) {
	o := a.Options()
	o.StateDir, o.Vars, o.VarFiles = "", nil, nil
	if c, problems := config.Load(filepath.Join(root, "orchestrator.hcl"), o); problems.Errors() == 0 {
		_ = a.Trust(c, c.Commands()) // otherwise up asks
	}
}

// alreadyThere returns the failure for a file that exists. Its hint runs an existing team.
func alreadyThere(dir, root, file string, p project) *cli.Failure {
	hint := "Overwrite it: " + overwriting(dir, p)
	if _, err := os.Stat(filepath.Join(root, "orchestrator.hcl")); err == nil {
		hint = "Run the existing team: " + strings.Join(nextSteps(dir, "orchestrator up -d"), " && ") + "     " + hint
	}
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict,
		Message: filepath.Join(dir, file) + " already exists",
		Because: []string{"Nothing was written."},
		Hint:    hint,
	}
}

// wouldShadow returns the failure for a folder that has its configuration as JSON.
func wouldShadow(dir string, p project) *cli.Failure {
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict,
		Message: filepath.Join(dir, "orchestrator.hcl.json") + " already exists",
		Because: []string{"An orchestrator.hcl in the same folder would be used instead.", "Nothing was written."},
		Hint:    "To write it anyway: " + overwriting(dir, p),
	}
}

// overwriting returns the command that overwrites existing files.
func overwriting(dir string, p project) string {
	return strings.TrimSpace("orchestrator init --force " + p.flags + " " + dirWord(dir))
}

// nextSteps returns the commands to run in a folder.
func nextSteps(dir string, commands ...string) []string {
	if dir != "" && filepath.Clean(dir) != "." {
		return append([]string{"cd " + term.Word(dir)}, commands...)
	}
	return commands
}

// Starter returns the files of one first project.
func Starter(folder string) ([]createdFile, error) {
	files, err := filesOf(starters, path.Join("starter", folder))
	if err != nil {
		return nil, fmt.Errorf("reading the first project in %s: %w", folder, err)
	}
	for i := range files {
		files[i].File = strings.TrimSuffix(files[i].File, ".txt")
	}
	// The file that people will edit comes before the folders below it.
	slices.SortStableFunc(files, func(a, b createdFile) int {
		return strings.Count(a.File, "/") - strings.Count(b.File, "/")
	})
	return files, nil
}

// writeNew writes a file and its folders. It returns the created ones, even after an error.
func writeNew(file string, text []byte) (made []string, err error) {
	made = missing(filepath.Dir(file))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return made, err
	}
	if !exists(file) {
		made = append(made, file)
	}
	return made, os.WriteFile(file, text, 0o666)
}

// missing returns the folders on the way to a folder that do not exist, and the folder.
func missing(dir string) (folders []string) {
	for ; !exists(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		folders = append(folders, dir)
	}
	slices.Reverse(folders)
	return folders
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// unmake removes created files and folders, the last one first. Folders that are no longer
// empty stay.
func unmake(made []string) {
	for _, name := range slices.Backward(made) {
		_ = os.Remove(name)
	}
}

func showCreated(a *cli.App, dir string, p project, files, beside []createdFile) error {
	next := nextSteps(dir, p.steps(a.Path(dir))...)
	if a.Flags.JSON {
		return a.Document(created{FormatVersion: wire.FormatVersion, Files: slices.Concat(files, beside), Next: next})
	}
	rows := make([][]term.Cell, 0, len(files))
	for _, file := range files {
		rows = append(rows, []term.Cell{term.Text("  created " + filepath.Join(dir, file.File)), term.Figure(term.Count(file.Lines, "line"))})
	}
	if l := libraryOf(p.library); l != nil {
		rows = append(rows, []term.Cell{term.Text("  created " + filepath.Join(dir, l.at)), term.Figure(term.Count(len(beside), "file"))})
	}
	if err := a.Print("%s", term.Table(rows)); err != nil || a.Flags.Quiet {
		return err
	}
	for _, n := range p.needs {
		if program(a, n.program) == "" {
			a.Note("%s is not on your PATH but runs %s. %s", n.program, n.runs, n.get)
		}
	}
	return a.Print("Next:  %s\n", strings.Join(next, "\n       "))
}

// rootOf returns the cause of a file error without the name of the file.
func rootOf(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// A language is a language of a first project.
type language struct {
	Name, title string
	Command     []string // as in its orchestrator.hcl
	get         string   // where to get its interpreter or compiler
	library     string   // that its agent imports, or ""
}

// Languages lists the languages of first projects.
var Languages = []language{
	{Name: "sh", title: "shell", Command: []string{"sh", "agents/hello.sh"}, get: "the package dash or bash of your system"},
	{Name: "go", title: "Go", Command: []string{"go", "run", "agents/hello.go"}, get: "https://go.dev/dl"},
	{Name: "ts", title: "TypeScript or JavaScript", Command: []string{"node", "agents/hello.mjs"}, get: "https://nodejs.org", library: "typescript"},
	{Name: "py", title: "Python", Command: []string{"python3", "agents/hello.py"}, get: "https://www.python.org", library: "python"},
}

// project returns the first project in a language, with one agent.
func (l language) project() project {
	return project{folder: l.Name, flags: "--lang " + l.Name, library: l.library, needs: l.needs(), next: []string{
		"orchestrator up -d", `orchestrator task add "Say hello" --wait`, "orchestrator check -- " + strings.Join(l.Command, " "),
	}}
}

func (l language) needs() []needed {
	return []needed{{program: l.Command[0], runs: "this agent", get: "Install it: " + l.get + "     Or choose another language: orchestrator init --list"}}
}

func languageNames() []string {
	var names []string
	for _, l := range Languages {
		names = append(names, l.Name)
	}
	return names
}

// languageList is the JSON answer of init --list.
type languageList struct {
	FormatVersion string         `json:"format_version"`
	Languages     []languageView `json:"languages"`
}

type languageView struct {
	Lang    string   `json:"lang"`
	Title   string   `json:"title"`
	Command []string `json:"command"`
	Runs    string   `json:"runs"` // path of the program that runs it; empty if not on the PATH
}

func listLanguages(a *cli.App) error {
	list := languageList{FormatVersion: wire.FormatVersion}
	rows := [][]term.Cell{{term.Text("LANG"), term.Text("LANGUAGE"), term.Text("IS RUN BY"), term.Text("WHICH IS HERE")}}
	for _, l := range Languages {
		runs := program(a, l.Command[0])
		list.Languages = append(list.Languages, languageView{Lang: l.Name, Title: l.title, Command: l.Command, Runs: runs})
		if runs == "" {
			runs = "not on your PATH: " + l.get
		}
		rows = append(rows, []term.Cell{term.Text(l.Name), term.Text(l.title), term.Text(strings.Join(l.Command, " ")), term.Text(runs)})
	}
	switch {
	case a.Flags.JSON:
		return a.Document(list)
	case a.Flags.Quiet:
		return cli.PrintNames(a, Languages, func(l *language) string { return l.Name })
	}
	return a.Print("%s", term.Table(rows))
}

// program returns the path of a program on the PATH, or "".
func program(a *cli.App, name string) string {
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// Programs returns the names of all files on the PATH.
func Programs(a *cli.App) (names []string) {
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		entries, _ := os.ReadDir(dir) // a missing folder has no programs
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unit is the template of a systemd service for up. Up reports readiness and stops within the
// shutdown time of its file. A reload is a command, so that systemctl reload reports the faults of
// the file; Type=notify-reload needs systemd 253, and reports no error. Systemd starts up again if
// it has not reported for a minute that it works. With KillMode=mixed up ends the agents itself,
// and with Delegate each agent can have a cgroup. The exit codes without a restart are those that
// another start does not fix.
const unit = `# A team of agents as a service. Install it for yourself:
#   mkdir -p ~/.config/systemd/user
#   orchestrator init --systemd >~/.config/systemd/user/%[1]s.service
#   systemctl --user daemon-reload
#   systemctl --user enable --now %[1]s
[Unit]
Description=orchestrator of %[2]s
StartLimitIntervalSec=120
StartLimitBurst=5

[Service]
Type=notify
WorkingDirectory=%[2]s
ExecStart=%[3]s --config %[4]s --color never up
ExecReload=%[3]s --config %[4]s --color never reload
KillMode=mixed
TimeoutStopSec=90
WatchdogSec=60
Delegate=yes
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=1 2 6

[Install]
WantedBy=default.target
`

// printUnit prints the unit of the team in a folder.
func printUnit(a *cli.App, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	root := filepath.Clean(a.Path(dir))
	file := filepath.Join(root, "orchestrator.hcl")
	if _, err := os.Stat(file); err != nil {
		a.Note("%s does not exist yet. Create it: %s", file, strings.TrimSpace("orchestrator init "+dirWord(dir)))
	}
	return a.Print(unit, UnitName(filepath.Base(root)), strings.ReplaceAll(root, "%", "%%"), UnitWord(program), UnitWord(file))
}

// dirWord quotes a folder as an argument. It returns "" for the current folder.
func dirWord(dir string) string {
	if dir == "" {
		return ""
	}
	return term.Word(dir)
}

// UnitName returns word as a valid name of a service.
func UnitName(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, word)
}

// UnitWord quotes a word of a command in a unit.
func UnitWord(word string) string {
	word = strings.NewReplacer(`%`, `%%`, `$`, `$$`, `\`, `\\`, `"`, `\"`).Replace(word)
	if strings.ContainsAny(word, " \t'\"\\;") {
		return `"` + word + `"`
	}
	return word
}
