package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/mail"
)

// Rows: E-12, E-69, E-70, E-71, E-72, E-73, E-74, E-75.
func TestActors(t *testing.T) {
	for _, good := range []string{
		"GO", "HO:hetzner-1", "PO:paperclip", "IO:shai", "IO:größe", "IO:a/b.c\"'", "W:7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100", "W:a3f9...", "S:db:1",
		"W:" + strings.Repeat("x", 198),
	} {
		require.Empty(t, mail.CheckActor(good), good)
		require.Empty(t, mail.CheckAddressee(good), good)
	}
	for _, bad := range []string{
		"", "go", "GO:", "GO:x", "G", "HO", "HO:", "PO:", "IO:", "W", "W:", "S", "S:", "S:db", "S:db:", "S::1", "S:a:b:c", "HO:a:b", "W:a:b",
		"X:1", ":", ":x", "HO: ", "HO:a b", "HO:a\n", "HO:\x00", "HO:\u00a0", "HO:\u00ad", "HO:\u202ex", "IO:\u200b", " GO", "GO ", "??", "ho:x", "broadcasts",
		"W:" + strings.Repeat("x", 199),
	} {
		require.NotEmpty(t, mail.CheckActor(bad), "%q", bad)
		require.NotEmpty(t, mail.CheckAddressee(bad), "%q", bad)
	}
	for _, reserved := range []string{mail.Broadcast, mail.Bus, mail.Governor} {
		require.NotEmpty(t, mail.CheckActor(reserved), "nobody comes as %s", reserved)
		require.Empty(t, mail.CheckAddressee(reserved), "everybody writes to %s", reserved)
	}
	require.Contains(t, mail.CheckAddressee("??"), "must be broadcast, GO, HO:host")
}

// TestActorsOfRuns checks that the actor of a worker or specialist becomes another id in each
// run.
//
// Rows: E-72, E-73, E-74.
func TestActorsOfRuns(t *testing.T) {
	const run = "7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100"
	for actor, want := range map[string]string{
		"W": "W:" + run, "S:db": "S:db:" + run,
		"W:1": "W:1", "S:db:1": "S:db:1", "GO": "GO", "HO:attic": "HO:attic", "PO:shop": "PO:shop", "IO:ann": "IO:ann",
		"S:" + strings.Repeat("x", 161): "S:" + strings.Repeat("x", 161) + ":" + run,
	} {
		got := mail.ActorOfRun(actor, run)
		require.Equal(t, want, got)
		require.Equal(t, got != actor, mail.PerRun(actor))
		require.Empty(t, mail.CheckActor(got), "whatever an agent may have, it can send with it")
	}
	for _, bad := range []string{"", "S", "S:", "HO", "HO:", "W:", "S:db:", "Bus", "x", "S:" + strings.Repeat("x", 162)} {
		require.NotEmpty(t, mail.CheckActor(mail.ActorOfRun(bad, run)), bad)
	}
}
