package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func letterTo(to, topic, payload string, answers int64) *wire.Mail {
	m := mailed("GO", to, topic, payload, answers).Mail
	m.CreatedAt = "2026-11-20T14:33:02.114Z"
	return m
}

// A message is a line, whatever it says.
func TestMailLines(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	long := `{"text":"` + strings.Repeat("é", 80) + `"}`
	for _, c := range []struct {
		m       *wire.Mail
		verbose bool
		want    string
	}{
		{m: letterTo("PO:shop", "message.direct", `{}`, 0), want: "GO -> PO:shop  message.direct"},
		{m: letterTo("PO:shop", "message.direct", `{}`, 41), want: "GO -> PO:shop  message.direct  answers 41"},
		{m: letterTo("PO:shop", "message.direct", "{\n\t\"a\": 1\r\n}", 0), want: `GO -> PO:shop  message.direct  { "a": 1 }`},
		{m: letterTo("PO:shop", "message.direct", long, 41), want: `GO -> PO:shop  message.direct  {"text":"` + strings.Repeat("é", 50) + "…  answers 41"},
		{m: letterTo("PO:shop", "message.direct", long, 41), verbose: true, want: "GO -> PO:shop  message.direct  " + long + "  answers 41"},
		{m: letterTo("S:db:写手", "büild.\u202edone", `{}`, 0), want: `GO -> S:db:写手  büild.\u202edone`},
	} {
		var screen bytes.Buffer
		a := &app{stdout: &screen, flags: flags{verbose: c.verbose}}
		show := a.mailPrinter(now)
		show.headed = true
		require.NoError(t, show.mail(c.m))
		require.Regexp(t, `^    42  2026-11-2\d \d\d:\d3:02\.114  `, screen.String())
		_, said, _ := strings.Cut(screen.String(), ".114  ")
		require.Equal(t, strings.Join(strings.Fields(c.want), " "), strings.Join(strings.Fields(said), " "))
	}
}

func TestActorRows(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 33, 0, 0, time.UTC)
	var rows [][]cell
	for _, v := range []wire.ActorView{
		{Actor: "GO", Status: wire.ActorQuiet, LastSeen: "2026-11-20T14:32:58.000Z", Cursor: 41, Latest: 42},
		{Actor: "PO:shop", Agent: "coder", Status: wire.ActorStale, LastSeen: "2026-11-20T14:28:00.000Z", LastBeat: "2026-11-20T14:27:00.000Z", Cursor: 9, Latest: 9},
		{Actor: "W:7", Agent: "w", Status: wire.ActorOffline},
		{Actor: "HO:attic", Status: wire.ActorActive, LastSeen: "2026-11-20T14:33:07.000Z"},
	} {
		rows = append(rows, actorRow(&v, true, now))
	}
	require.Equal(t, "GO        -      quiet    2.0s ago  -       41  \x1b[1m42\x1b[0m\n"+
		"PO:shop   coder  \x1b[33mstale\x1b[0m    5m ago    6m ago   9   9\n"+
		"W:7       w      \x1b[2moffline\x1b[0m  -         -        0   -\n"+
		"HO:attic  -      \x1b[32mactive\x1b[0m   0.0s ago  -        0   -\n", table(rows))
}

func TestTokenWords(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	later := now.Add(time.Minute)
	for _, c := range []struct {
		issued  wire.IssuedToken
		overlap int64
		want    []string
	}{
		{wire.IssuedToken{ID: "t1", Subject: "ann", Role: "viewer", ExpiresAt: wire.Timestamp(later)}, 0, []string{
			"This is token t1 of ann, viewer, until " + plain.Clock(wire.Timestamp(later), now, time.TimeOnly) + ". It is shown once: keep it in a safe place.",
		}},
		{wire.IssuedToken{ID: "a1", Actor: "HO:attic"}, 0, []string{
			"This is token a1 of HO:attic. It is shown once: keep it in a safe place.", "Older tokens of HO:attic hold no more.",
		}},
		{wire.IssuedToken{ID: "a1", Actor: "HO:attic"}, 60_000, []string{
			"This is token a1 of HO:attic. It is shown once: keep it in a safe place.",
			"Older tokens of HO:attic hold until " + plain.Clock(wire.Timestamp(later), now, time.TimeOnly) + ".",
		}},
	} {
		require.Equal(t, c.want, tokenWords(&c.issued, c.overlap, now))
	}
}

// The agent and the configuration of the page are those of the script that runs
// them.
func TestTheAgentOfTheBusPageRuns(t *testing.T) {
	script, err := os.ReadFile("testdata/script/bus_team.txtar")
	require.NoError(t, err)
	ran := 0
	for _, block := range fences(t, "help/bus.md") {
		text := strings.Join(block.lines, "\n") + "\n"
		switch block.lang {
		case "sh":
			require.Contains(t, string(script), "\n-- answer.sh --\n"+text+"-- ")
			ran++
		case "hcl":
			require.Contains(t, string(script), "\n"+text)
			ran++
		}
	}
	require.Equal(t, 3, ran)
}
