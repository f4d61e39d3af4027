package envfile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`A=1`:                "1",
		`A = 1 # note`:       "1",
		`A=a#b`:              "a#b",
		`A=`:                 "",
		`A=# only`:           "",
		`A='a b # \n'`:       `a b # \n`,
		`A="a\nb\"\\ \x" #c`: "a\nb\"\\ \\x",
		`A=x=y`:              "x=y",
	} {
		s, err := Parse(line)
		require.NoError(t, err, line)
		require.Equal(t, []Setting{{Name: "A", Value: want}}, s, line)
	}
	for _, line := range []string{"A", "=x", "1A=x", "A B=x", `A="x`, `A="x" y`, "A='x"} {
		_, err := Parse(line)
		require.Error(t, err, line)
	}
}
