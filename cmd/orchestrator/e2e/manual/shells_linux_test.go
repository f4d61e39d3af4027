package manual

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/fixtures/screen"
)

// bashCompletion has the functions that the script for bash needs.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// The real shells complete a command with the scripts that the program prints. PowerShell is not tried, since the test
// machines cannot run it.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "").Ship()
	require.NoError(t, os.Symlink(s.Program, s.Path("orchestrator")))
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "PATH="+s.Dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+s.Dir, "TERM=xterm")
		return cmd
	}
	t.Run("bash", func(t *testing.T) {
		if _, err := os.Stat(bashCompletion); err != nil && os.Getenv("CI") == "" {
			t.Logf("COMPLETION IN bash IS NOT TESTED: %v (with $CI set this fails)", err)
			return
		}
		said, err := command("bash", "--norc", "-c", `. `+bashCompletion+`; . <(orchestrator completion bash)
			COMP_LINE="orchestrator wor" COMP_POINT=16 COMP_WORDS=(orchestrator wor) COMP_CWORD=1 COMP_TYPE=9
			__start_orchestrator 2>/dev/null
			printf "%s\n" "${COMPREPLY[@]}"`).Output()
		require.NoError(t, err)
		require.Equal(t, "workspace\n", string(said))
	})
	t.Run("fish", func(t *testing.T) {
		if !stage.HasRuntime(t, "fish") {
			return
		}
		said, err := command("fish", "-c", `orchestrator completion fish | source; complete -C "orchestrator wor"`).Output()
		require.NoError(t, err)
		require.Equal(t, "workspace\tInspect and remove the workspaces of tasks\n", string(said))
	})
	t.Run("zsh", func(t *testing.T) {
		if !stage.HasRuntime(t, "zsh") {
			return
		}
		zsh := command("zsh", "-f", "-i")
		terminal, err := screen.Start(zsh, 80, 24)
		require.NoError(t, err)
		ctx, enough := context.WithTimeout(t.Context(), time.Minute)
		defer enough()
		require.NoError(t, terminal.Type("PS1='ready> '; autoload -U compinit && compinit -u -D; source <(orchestrator completion zsh); compdef _orchestrator orchestrator; clear\r"))
		_, err = terminal.Until(ctx, func(text string) bool { return strings.HasPrefix(text, "ready>") })
		require.NoError(t, err)
		require.NoError(t, terminal.Type("orchestrator wor\t"))
		_, err = terminal.Until(ctx, screen.Shows("orchestrator workspace"))
		require.NoError(t, err)
		require.NoError(t, zsh.Process.Kill())
		_, _ = terminal.Wait(ctx)
	})
}

// A page of the manual that does not fit on the terminal is shown by a pager, and without one at once.
func TestPager(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "").Ship()
	for pager, want := range map[string]string{"sed -n 's/^/paged: /p;5q'": "paged: ", "missing-pager": "Ctrl-C", "cat": "Ctrl-C"} {
		cmd := exec.CommandContext(t.Context(), s.Program, "help", "signals")
		cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "PAGER="+pager, "TERM=xterm")
		terminal, err := screen.Start(cmd, 80, 10)
		require.NoError(t, err)
		ctx, enough := context.WithTimeout(t.Context(), time.Minute)
		code, err := terminal.Wait(ctx)
		enough()
		require.NoError(t, err)
		require.Zero(t, code)
		require.Contains(t, terminal.Written(), want, pager)
	}
}
