package project

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
)

// unit is the template of a systemd service for up. Up reports readiness and reloads, and
// stops within the shutdown time of its file. The unit has no watchdog, because up sends no
// heartbeats. With KillMode=mixed up ends the agents itself, and with Delegate each agent
// can have a cgroup. The exit codes without a restart are those that another start does not
// fix.
const unit = `# A team of agents as a service. Install it for yourself:
#   orchestrator init --systemd >~/.config/systemd/user/%[1]s.service
#   systemctl --user daemon-reload
#   systemctl --user enable --now %[1]s
# For a systemd older than 253 write Type=notify, and reload by orchestrator reload.
[Unit]
Description=orchestrator of %[2]s
StartLimitIntervalSec=120
StartLimitBurst=5

[Service]
Type=notify-reload
WorkingDirectory=%[2]s
ExecStart=%[3]s --config %[4]s --color never up
KillMode=mixed
TimeoutStopSec=90
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
		a.Note("There is no %s yet. Write it: %s", file, strings.TrimSpace("orchestrator init "+dirWord(dir)))
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
