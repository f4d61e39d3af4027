package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orchestrator/wire"
)

// language is one that a first project can be in.
type language struct {
	name, title string
	command     []string // as in its orchestrator.hcl
	get         string   // where what runs it comes from
}

var languages = []language{
	{name: "sh", title: "shell", command: []string{"sh", "agents/hello.sh"}, get: "the package dash or bash of your system"},
	{name: "go", title: "Go", command: []string{"go", "run", "agents/hello.go"}, get: "https://go.dev/dl"},
	{name: "ts", title: "TypeScript", command: []string{"node", "agents/hello.ts"}, get: "https://nodejs.org"},
	{name: "py", title: "Python", command: []string{"python3", "agents/hello.py"}, get: "https://www.python.org"},
}

// project is the first project in a language: one agent.
func (l language) project() project {
	return project{folder: l.name, flags: "--lang " + l.name, language: l, next: []string{
		"orchestrator up -d", `orchestrator task add "Say hello" --wait`, "orchestrator check -- " + strings.Join(l.command, " "),
	}}
}

func languageNames() []string {
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

// languageList answers init --list for programs.
type languageList struct {
	FormatVersion string         `json:"format_version"`
	Languages     []languageView `json:"languages"`
}

type languageView struct {
	Lang    string   `json:"lang"`
	Title   string   `json:"title"`
	Command []string `json:"command"`
	Runs    string   `json:"runs"` // the program that runs it; empty when it is not on the PATH
}

func (a *app) listLanguages() error {
	list := languageList{FormatVersion: wire.FormatVersion}
	rows := [][]cell{{text("LANG"), text("LANGUAGE"), text("IS RUN BY"), text("WHICH IS HERE")}}
	for _, l := range languages {
		runs := a.program(l.command[0])
		list.Languages = append(list.Languages, languageView{Lang: l.name, Title: l.title, Command: l.command, Runs: runs})
		if runs == "" {
			runs = "not on your PATH: " + l.get
		}
		rows = append(rows, []cell{text(l.name), text(l.title), text(strings.Join(l.command, " ")), text(runs)})
	}
	switch {
	case a.flags.json:
		return a.document(list)
	case a.flags.quiet:
		return printNames(a, languages, func(l *language) string { return l.name })
	}
	return a.print("%s", table(rows))
}

// program is where a program is on the PATH, or "".
func (a *app) program(name string) string {
	for _, dir := range filepath.SplitList(a.env("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// programs are the names of all that is on the PATH.
func (a *app) programs() (names []string) {
	for _, dir := range filepath.SplitList(a.env("PATH")) {
		entries, _ := os.ReadDir(dir) // a folder that is not there has no programs
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
