package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orchestrator/supervisor/child"
)

// Git executes programs that the configuration and the attributes of a repository name, and an agent may have written
// both. So git of the orchestrator has an environment of a few variables, and settings that override the repository's.
// For a confined agent, git also has no network, and can change files of the repository only.

// gitSettings override settings of the repository.
var gitSettings = [][2]string{
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.attributesFile", "/dev/null"},
	{"core.sparseCheckout", "false"},
	{"core.logAllRefUpdates", "true"},
	{"core.quotePath", "false"},
	{"commit.gpgSign", "false"},
	{"merge.verifySignatures", "false"},
	{"log.showSignature", "false"},
	{"branch.autoSetupMerge", "false"},
	{"diff.ignoreSubmodules", "dirty"}, // otherwise git runs in them, with their configuration
	{"diff.suppressBlankEmpty", "false"},
	{"submodule.recurse", "false"},
	{"gc.auto", "0"},
	{"advice.graftFileDeprecated", "false"}, // in the errors of git, about a variable that is always set
	{"maintenance.auto", "false"},
}

// gitVariables are the variables of an agent that git gets.
var gitVariables = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
}

// remoteVariables are more of them, for a git that talks to the remotes of a repository.
var remoteVariables = []string{
	"SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
}

// fixedVariables are set for git always.
var fixedVariables = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_PAGER=cat",
}

// honest is set for the commands of an agent: replacement refs must not hide the files that are published.
var honest = []string{"GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true"}

// A gitRun configures a run of git, or of a script that runs git.
type gitRun struct {
	place    []string    // GIT_DIR and the like; nil: git looks for the repository
	settings [][2]string // besides gitSettings
	write    []string    // folders that it may change
	lent     []string    // folders that it may change, though agents may not
	remotes  bool        // it talks to the remotes of the repository
	bundle   bool        // it reads a file with commits
	filters  bool        // it may run the filters of the repository, which may use the network
}

// prepare sets the environment of git.
func (g *gitRun) prepare(spec *child.Spec) {
	keep := gitVariables
	if g.remotes || g.filters {
		keep = slices.Concat(keep, remoteVariables)
	}
	env := slices.DeleteFunc(spec.Env, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(keep, name) && !strings.HasPrefix(name, "LC_")
	})
	env = append(env, fixedVariables...)
	switch {
	case g.bundle:
		env = append(env, "GIT_ALLOW_PROTOCOL=file", "GIT_NO_LAZY_FETCH=1")
	case g.remotes:
		env = append(env, "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh")
		if !slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "GIT_SSH") }) {
			env = append(env, "GIT_SSH_COMMAND=ssh") // instead of core.sshCommand
		}
	case !g.filters: // an object that is missing is not fetched
		env = append(env, "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1")
	}
	settings := slices.Concat(gitSettings, g.settings)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	spec.Env = append(env, g.place...)
	if len(spec.Wrap) > 0 { // it may keep variables back
		spec.Command = slices.Concat([]string{"env"}, spec.Env, spec.Command)
	}
	if spec.Confine != nil && !g.remotes {
		spec.Confine = g.cage(spec.Confine)
	}
}

// cage returns the confinement of git for a confined agent. It allows less than the agent's, except in the repository:
// there git changes files that are closed to the agent.
func (g *gitRun) cage(of *child.Confinement) *child.Confinement {
	hide := slices.DeleteFunc(slices.Clone(of.Hide), func(path string) bool { // git could make no file beside it
		return slices.ContainsFunc(g.write, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
	})
	c := &child.Confinement{Write: g.write, Read: slices.Concat(of.Read, g.write), Hide: hide, Limited: true, BestEffort: of.BestEffort, Trusted: true, Lend: g.lent}
	if g.filters {
		c.Limited, c.Ports = of.Limited, of.Ports
	}
	return c
}

// foreign returns settings that keep git from executing the filters, merge drivers, diff drivers and hooks that a
// configuration names.
func (r *repository) foreign(ctx context.Context, place []string) ([][2]string, error) {
	out, err := r.run(ctx, r.agent, command{
		argv: []string{"git", "config", "--null", "--name-only", "--get-regexp", `^(filter|merge|diff|hook)\..*\.`}, dir: r.top, git: &gitRun{place: place},
	})
	if err != nil {
		if isNo(err) {
			err = nil
		}
		return nil, err
	}
	var settings [][2]string
	seen := make(map[string]bool)
	for key := range strings.SplitSeq(string(out), "\x00") {
		at := strings.LastIndexByte(key, '.')
		if at < 0 || seen[key[:at]] {
			continue
		}
		section := key[:at]
		seen[section] = true
		switch kind, _, _ := strings.Cut(section, "."); {
		case kind == "filter" && !r.agent.Filters:
			settings = append(settings, [2]string{section + ".clean"}, [2]string{section + ".smudge"}, [2]string{section + ".process"}, [2]string{section + ".required", "false"})
		case kind == "merge":
			settings = append(settings, [2]string{section + ".driver", plainMerge})
		case kind == "diff":
			settings = append(settings, [2]string{section + ".command"}, [2]string{section + ".textconv"})
		case kind == "hook":
			settings = append(settings, [2]string{section + ".enabled", "false"}, [2]string{section + ".command", "true"})
		}
	}
	return settings, nil
}

// plainMerge is a merge driver that works like git without a driver.
const plainMerge = "git merge-file --quiet --marker-size=%L %A %O %B || exit 1"

// at returns how git runs in a folder of the repository: its first worktree or another one. It returns an error if the
// files there do not name this repository.
func (r *repository) at(ctx context.Context, dir string) (*gitRun, error) {
	g := &gitRun{settings: r.settings, write: []string{r.top, r.common}, filters: r.agent.Filters}
	if r.lent != "" {
		g.lent = []string{r.lent}
	}
	root, err := rootOf(dir)
	if err != nil {
		return nil, err
	}
	if root == r.top {
		g.place = []string{"GIT_DIR=" + r.common, "GIT_WORK_TREE=" + r.top}
		return g, nil
	}
	entry, err := r.entry(root)
	if err != nil {
		return nil, err
	}
	g.place = []string{"GIT_DIR=" + entry, "GIT_COMMON_DIR=" + r.common, "GIT_WORK_TREE=" + root}
	g.write = []string{root, r.common}
	if _, err := os.Lstat(filepath.Join(entry, "config.worktree")); err == nil {
		if g.settings, err = r.foreign(ctx, g.place); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// rootOf returns the folder of a worktree that holds a folder.
func rootOf(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) || filepath.Base(filepath.Dir(at)) == folder {
			return "", fmt.Errorf("%s is not a worktree of git: the file .git is gone", dir)
		}
	}
}

// errSwapped reports a worktree that names another repository than its own.
var errSwapped = errors.New("no longer belongs to the repository")

// entry returns the folder of the repository with the data of a worktree. The agent in the worktree can change the
// files that name this folder, so entry compares them: otherwise git would read the configuration of another
// repository.
func (r *repository) entry(root string) (string, error) {
	swapped := func(file, why string) error { return fmt.Errorf("%s %w: %s %s", root, errSwapped, file, why) }
	if real, err := filepath.EvalSymlinks(root); err != nil || real != root {
		return "", swapped(root, "is a symbolic link, or is below one")
	}
	link := filepath.Join(root, ".git")
	text, err := readLine(link)
	entry, ok := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !ok {
		return "", swapped(link, "is not the file that git wrote")
	}
	if entry = absolute(entry, root); filepath.Dir(entry) != filepath.Join(r.common, "worktrees") {
		return "", swapped(link, "names "+entry)
	}
	if real, err := filepath.EvalSymlinks(entry); err != nil || real != entry {
		return "", swapped(entry, "is not the folder that git made")
	}
	back, err := readLine(filepath.Join(entry, "gitdir"))
	if err != nil || absolute(back, entry) != link {
		return "", swapped(filepath.Join(entry, "gitdir"), "does not name "+link)
	}
	common, err := readLine(filepath.Join(entry, "commondir"))
	if err != nil || absolute(common, entry) != r.common {
		return "", swapped(filepath.Join(entry, "commondir"), "does not name "+r.common)
	}
	return entry, nil
}

// absolute returns a path that may be relative to a folder.
func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readLine returns the line of a small regular file.
func readLine(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	const maxLine = 8 << 10
	text, err := io.ReadAll(io.LimitReader(f, maxLine))
	return strings.TrimRight(string(text), "\n"), err
}
