package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/config"
	"orchestrator/wire/mail"
)

// TestTheFileKnowsActors checks that the bus accepts every actor and topic that the
// configuration accepts. Each has its own rules for them.
//
// Rows: E-13, E-54, E-69, E-70, E-71, E-72, E-73, E-75.
func TestTheFileKnowsActors(t *testing.T) {
	problems := func(text string) int {
		file := filepath.Join(t.TempDir(), "orchestrator.hcl")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, found := config.Load(file, config.Options{})
		return found.Errors()
	}
	long := strings.Repeat("q", 300)
	for _, actor := range []string{
		"GO", "W", "HO:h1", "PO:a.b-c_d", "IO:é", "S:db", "S:db:7", "W:7", "Bus", "Governor", "broadcast", "go", "HO:", "S:", "S::", "W:", "PO:a b",
		"PO:a:b", "PO:a\u00a0b", "PO:a\u200bb", "PO:\u202ed", "PO:" + long, "S:" + long, "PO:\a",
	} {
		taken := problems(fmt.Sprintf("agent \"a\" {\n  command = [\"x\"]\n  actor   = %q\n}", actor)) == 0
		allowed := mail.CheckActor(mail.ActorOfRun(actor, "7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100")) == ""
		require.False(t, taken && !allowed, "%q is an actor in the file alone", actor)
		require.True(t, taken || !allowed || len(actor) > 150, "%q is an actor on the bus alone", actor)
	}
	for _, topic := range []string{"a", "a.b", "build.finished", "", ".", "a..b", "a b", "a.*", "a\u200b", "a\ab", "é.ü", long} {
		taken := problems(fmt.Sprintf("bus {\n  topics = [%q]\n}\nagent \"a\" {\n  command = [\"x\"]\n}", topic)) == 0
		allowed := mail.CheckTopic(topic) == ""
		require.False(t, taken && !allowed, "%q is a topic in the file alone", topic)
		require.True(t, taken || !allowed || len(topic) > 150, "%q is a topic on the bus alone", topic)
	}
}
