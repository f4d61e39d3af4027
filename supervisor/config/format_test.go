package config

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	src := "# top\nagent \"a\" {\ncommand=[\"x\"] # why\n   description = \"d\"\n}\n"
	out, problems := Format([]byte(src), "orchestrator.hcl")
	require.Empty(t, problems)
	require.Equal(t, "# top\nagent \"a\" {\n  command     = [\"x\"] # why\n  description = \"d\"\n}\n", string(out))
	again, _ := Format(out, "orchestrator.hcl")
	require.Equal(t, string(out), string(again))
}

func TestFormatLeavesTheReferenceAlone(t *testing.T) {
	src, err := os.ReadFile("testdata/defaults.hcl")
	require.NoError(t, err)
	out, problems := Format(src, "defaults.hcl")
	require.Empty(t, problems)
	require.Equal(t, string(src), string(out))
}

func TestFormatChangesNothingThatDoesNotParse(t *testing.T) {
	src := []byte("agent \"a\" {\n   x=\n}")
	out, problems := Format(src, "orchestrator.hcl")
	require.Equal(t, src, out)
	require.Equal(t, 1, problems.Errors())
	require.Equal(t, "config/syntax", problems[0].Code)
}
