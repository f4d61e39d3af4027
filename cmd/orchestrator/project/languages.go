package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// A language is a language of a first project.
type language struct {
	Name, title string
	Command     []string // as in its orchestrator.hcl
	get         string   // where to get its interpreter or compiler
}

var Languages = []language{
	{Name: "sh", title: "shell", Command: []string{"sh", "agents/hello.sh"}, get: "the package dash or bash of your system"},
	{Name: "go", title: "Go", Command: []string{"go", "run", "agents/hello.go"}, get: "https://go.dev/dl"},
	{Name: "ts", title: "TypeScript", Command: []string{"node", "agents/hello.ts"}, get: "https://nodejs.org"},
	{Name: "py", title: "Python", Command: []string{"python3", "agents/hello.py"}, get: "https://www.python.org"},
}

// project returns the first project in a language, with one agent.
func (l language) project() project {
	return project{folder: l.Name, flags: "--lang " + l.Name, language: l, next: []string{
		"orchestrator up -d", `orchestrator task add "Say hello" --wait`, "orchestrator check -- " + strings.Join(l.Command, " "),
	}}
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
