package project

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
)

// Every operation has a schema.
func TestEveryOperationHasASchema(t *testing.T) {
	for _, o := range wire.Operations {
		require.Contains(t, schema.Names(), "request:"+o.Name)
	}
}

// A line is checked as by an orchestrator with the default configuration.
func TestLinesAreCheckedAsTheyAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orchestrator.hcl")
	require.NoError(t, os.WriteFile(file, []byte("agent \"a\" {\n  command = [\"true\"]\n}\n"), 0o600))
	c, problems := config.Load(file, config.Options{})
	require.Empty(t, problems)
	require.EqualValues(t, c.Protocol.MaxLine, checkedLine)
	require.Equal(t, c.Protocol.MaxDepth, CheckedDepth)
}

// Large input is counted and not kept in memory: a line of 64 MiB, and a type of 8 MiB.
func TestHugeInputIsChecked(t *testing.T) {
	huge := io.MultiReader(
		strings.NewReader(`{"type":"request:`), io.LimitReader(endless{}, 64<<20), strings.NewReader("\"}\n"),
		strings.NewReader(`{"type":"request:`), io.LimitReader(endless{}, 8<<20), strings.NewReader("\",\"id\":\"1\",\"timestamp\":\"2026-01-01\"}\n"),
		strings.NewReader(strings.Repeat("{\"type\":\"event:log\",\"id\":\"\"}\n", 3*maxFindings)),
	)
	var said bytes.Buffer
	a := cli.New(cli.Env{Stdin: huge, Stdout: &said, Stderr: io.Discard, Root: schemaAlone})
	require.Equal(t, cli.ExitNo, a.Run([]string{"--check", "-", "--json"}))
	var answer checked
	require.NoError(t, object.Decode(said.Bytes(), &answer))
	require.EqualValues(t, 1, answer.DoubtfulCount)
	require.Equal(t, "it is longer than 16M", answer.Doubtful[0].Message)
	require.EqualValues(t, 3*maxFindings+1, answer.WrongCount)
	require.Len(t, answer.Wrong, maxFindings)
	require.EqualValues(t, 2, answer.Wrong[0].Line)
	require.Less(t, said.Len(), 1<<20)
}

// An endless reader returns the letter x for ever.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = 'x'
	}
	return len(into), nil
}

// schemaAlone returns a command line with only this command.
func schemaAlone(a *cli.App) *cobra.Command {
	verb := SchemaCommand(a)
	verb.SilenceUsage, verb.SilenceErrors = true, true
	a.AddFlags(verb.PersistentFlags())
	return verb
}
