package config

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// An agent may run as another user than the orchestrator, which is root then. Files that root reads, writes and runs
// for the team must be out of this user's reach: otherwise the agent could make root read another file, or run a
// program, by a link or a changed line.

// Rights are the rights of a user to a file.
type Rights struct {
	Read    bool
	Replace bool // it may change the file, or put another in its place
}

// account reads the name of a user. "" is the user of the orchestrator.
func account(into *string, v value) {
	text(into, v)
	if *into == "" || v.r.options.NoEnv {
		return
	}
	found, err := user.Lookup(*into)
	if err != nil {
		v.reject("unknown-user", "Unknown user", fmt.Sprintf("User %s does not exist on this machine.", v.quoted()),
			"Users are looked up in /etc/passwd; useradd --system creates one.")
		return
	}
	switch self := os.Geteuid(); {
	case found.Uid == strconv.Itoa(self):
	case runtime.GOOS != "linux":
		v.reject("needs-root", "Another user", fmt.Sprintf("An agent can run as another user, for example %s, only on Linux.", v.quoted()), "")
	case self != 0:
		v.reject("needs-root", "Only root can do this",
			fmt.Sprintf("Only root can start an agent as user %s, and you are user %d.", v.quoted(), self),
			"Run the orchestrator as root, for example as a systemd service without User=, or remove user.")
	}
}

// checkUser reports the files of the team that are in the reach of an agent's user.
func (r *reader) checkUser(b *hcl.Block, a *Agent, set map[string]hcl.Range) {
	if a.User == "" || r.options.Rights == nil || a.Index > 0 {
		return
	}
	at, known := set["user"]
	if !known {
		at = b.DefRange
	}
	c := r.config
	secrets := append(c.SecretFiles(), c.Store.Path)
	trusted := slices.Concat(r.files, r.values, []string{c.Orchestrator.StateDir}, secrets, c.secretPrograms())
	if c.HTTP.Certificate != "" {
		trusted = append(trusted, c.HTTP.Certificate)
	}
	for _, other := range c.Agents {
		trusted = append(append(trusted, other.Output.Dir), other.EnvFile...)
	}
	if self, err := os.Executable(); err == nil { // root executes it for each start
		trusted = append(trusted, self)
	}
	slices.Sort(trusted)
	for _, path := range slices.Compact(trusted) {
		rights := r.options.Rights(a.User, path)
		switch {
		case rights.Replace:
			r.report(at, Problem{
				Code: "config/user-may-change", Summary: "Within the reach of an agent",
				Detail: fmt.Sprintf("Agent %q runs as user %q, who may change or replace %s. Root would use the agent's version.", a.Block, a.User, path),
				Hint:   "Keep it in folders that only root may write, and give the agent another folder with dir.",
			})
		case rights.Read && slices.Contains(secrets, path):
			r.report(at, Problem{
				Code: "config/user-may-read", Summary: "Within the reach of an agent",
				Detail: fmt.Sprintf("Agent %q runs as user %q, who may read %s.", a.Block, a.User, path),
				Hint:   "Restrict it with chmod 600.",
			})
		case rights.Read && slices.Contains(r.files, path):
			r.report(at, Problem{
				Severity: SeverityWarning, Code: "config/user-may-read", Summary: "Within the reach of an agent",
				Detail: fmt.Sprintf("Agent %q runs as user %q, who may read %s, with the values in it.", a.Block, a.User, path),
				Hint:   "Restrict it with chmod 600.",
			})
		}
	}
}

// secretPrograms returns the files that root executes, or passes to a program, to get secrets.
func (c *Config) secretPrograms() []string {
	var files []string
	for _, s := range c.secrets {
		for i, word := range s.command {
			if i == 0 && !strings.Contains(word, "/") {
				for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
					if path := filepath.Join(c.absolute(dir), word); exists(path) {
						files = append(files, path)
					}
				}
			} else if path := c.absolute(word); i == 0 || exists(path) {
				files = append(files, path)
			}
		}
	}
	return files
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// personal are variables that name the user of the orchestrator, or places of that user. So do variables with names
// that begin with XDG_.
var personal = []string{"HOME", "USER", "LOGNAME", "MAIL", "TMPDIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"}

// applyUser sets the variables that name the user of an agent.
func (e *envBuilder) applyUser(a *Agent) error {
	if a.User == "" {
		return nil
	}
	found, err := user.Lookup(a.User)
	if err != nil {
		return fmt.Errorf("agent %q: user %q does not exist: %w", a.Name, a.User, err)
	}
	e.set("HOME", found.HomeDir)
	e.set("USER", found.Username)
	e.set("LOGNAME", found.Username)
	return nil
}

// withholds reports whether an agent does not inherit a variable, because it names the user of the
// orchestrator.
func (a *Agent) withholds(name string) bool {
	return a.User != "" && (slices.Contains(personal, name) || strings.HasPrefix(name, "XDG_"))
}
