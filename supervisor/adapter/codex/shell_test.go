package codex

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnwrapped compares each result with the arguments that a real shell passes on.
func TestUnwrapped(t *testing.T) {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	for command, want := range map[string]string{
		`/bin/bash -lc ls`:                                  `ls`,
		`/bin/bash -lc 'go test ./...'`:                     `go test ./...`,
		`/bin/bash -lc "go vet"`:                            `go vet`,
		`/usr/bin/zsh -lc 'rm -rf "$HOME/x"'`:               `rm -rf "$HOME/x"`,
		`/bin/sh -c ''`:                                     ``,
		`/bin/sh -c "printf 'a\\n' 2"`:                      `printf 'a\n' 2`,
		`/bin/sh -c "printf 'a\n' 2"`:                       `printf 'a\n' 2`,
		`/bin/sh -c "echo \"a\" \$HOME ` + "\\`id\\`" + `"`: `echo "a" $HOME ` + "`id`",
		`/bin/sh -c 'echo it'"'"'s'`:                        `echo it's`,
		`/bin/sh -c "it's"'; rm -rf x'`:                     `it's; rm -rf x`,
		`/bin/sh -c go\ test`:                               `go test`,
		`/bin/sh -c 'a\'`:                                   `a\`,
		"/bin/sh -c 'one\ntwo'":                             "one\ntwo",
		"/bin/sh -c \"one\\\ntwo\"":                         "onetwo",
		`  /bin/dash  -c	'x'  `:                             `x`,
		`/bin/sh -c "echo é"`:                               `echo é`,
		`/bin/sh -c 'a' b`:                                  ``, // b would be $0
		`/bin/sh -c`:                                        ``,
		`/bin/sh 'a'`:                                       ``,
		`/bin/sh -ec 'a'`:                                   ``,
		`sh -c 'a'`:                                         ``, // any program of that name
		`./sh -c 'a'`:                                       ``,
		`/bin/python -c 'a'`:                                ``,
		`/bin/sh -c 'a'; rm -rf x`:                          ``,
		`/bin/sh -c 'a' && b`:                               ``,
		`/bin/sh -c 'a' > b`:                                ``,
		`/bin/sh -c "$x"`:                                   ``,
		"/bin/sh -c \"`x`\"":                                ``,
		`/bin/sh -c $x`:                                     ``,
		`/bin/sh -c *`:                                      ``,
		`/bin/sh -c {a,b}`:                                  ``,
		`/bin/sh -c ~`:                                      ``,
		`/bin/sh -c 'a`:                                     ``,
		`/bin/sh -c "a`:                                     ``,
		`/bin/sh -c "a\"`:                                   ``,
		`/bin/sh -c a\`:                                     ``,
		"/bin/sh -c a\nrm -rf x":                            ``,
		`go test ./...`:                                     ``,
		``:                                                  ``,
	} {
		got := unwrapped(command)
		if want == "" && !strings.HasSuffix(command, "''") {
			require.Equal(t, command, got, "it stays as it is")
			continue
		}
		require.Equal(t, want, got, "%s", command)
		_, arguments, _ := strings.Cut(strings.TrimSpace(command), " ")
		out, err := exec.Command(sh, "-c", `set -- `+arguments+`; printf %s. "$2"`).Output()
		require.NoError(t, err)
		require.Equal(t, string(out), got+".", "%s", command)
	}
}

// TestOperatorsAreNotUnwrapped checks that a command with any operator of a shell stays unchanged.
func TestOperatorsAreNotUnwrapped(t *testing.T) {
	require.Equal(t, "ab", unwrapped("/bin/sh -c ab"))
	for _, special := range "\n\r|&;<>()$`*?[]{}!#~=%^" {
		command := "/bin/sh -c a" + string(special) + "b"
		require.Equal(t, command, unwrapped(command))
	}
}
