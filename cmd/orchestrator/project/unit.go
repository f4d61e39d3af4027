package project

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
)

// unit is a service of systemd. What it says is what up does: it tells when it is
// ready, reloads at SIGHUP and says so, and ends in order at SIGTERM, within the
// shutdown of its file. Watching over it by a timer is left out: it sends no signs of
// life. Its agents are ended by it and not by systemd (mixed), and where it may it
// gives each a cgroup of its own (Delegate). The exit codes are those that another
// start does not cure: a wrong file, wrong usage, one that runs already.
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

// dirWord is a folder as an argument; that of the team itself needs none.
func dirWord(dir string) string {
	if dir == "" {
		return ""
	}
	return term.Word(dir)
}

// UnitName is what a service may be called.
func UnitName(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, word)
}

// UnitWord is a word of a command in a unit.
func UnitWord(word string) string {
	word = strings.NewReplacer(`%`, `%%`, `$`, `$$`, `\`, `\\`, `"`, `\"`).Replace(word)
	if strings.ContainsAny(word, " \t'\"\\;") {
		return `"` + word + `"`
	}
	return word
}
