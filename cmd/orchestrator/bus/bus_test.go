package bus

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

func letterTo(to, topic, payload string, answers int64) *mail.Message {
	m := &mail.Message{
		Seq: 42, From: "GO", To: to, Topic: topic, Payload: wire.Raw(payload), CreatedAt: "2026-11-20T14:33:02.114Z",
	}
	if answers != 0 {
		m.ReplyTo = &answers
	}
	return m
}

// A message is shown as one line, whatever its content.
func TestMailLines(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	long := `{"text":"` + strings.Repeat("é", 80) + `"}`
	for _, c := range []struct {
		m       *mail.Message
		verbose bool
		want    string
	}{
		{m: letterTo("PO:shop", "message.direct", `{}`, 0), want: "GO -> PO:shop  message.direct"},
		{m: letterTo("PO:shop", "message.direct", `{}`, 41), want: "GO -> PO:shop  message.direct  answers 41"},
		{m: letterTo("PO:shop", "message.direct", "{\n\t\"a\": 1\r\n}", 0), want: `GO -> PO:shop  message.direct  { "a": 1 }`},
		{m: letterTo("PO:shop", "message.direct", long, 41), want: `GO -> PO:shop  message.direct  ` + strings.Repeat("é", 59) + "…  answers 41"},
		{m: letterTo("PO:shop", "message.direct", long, 41), verbose: true, want: "GO -> PO:shop  message.direct  " + long + "  answers 41"},
		{m: letterTo("S:db:写手", "büild.\u202edone", `{}`, 0), want: `GO -> S:db:写手  büild.\u202edone`},
	} {
		var screen bytes.Buffer
		a := cli.New(cli.Env{Stdout: &screen})
		a.Flags.Verbose = c.verbose
		show := newMailPrinter(a, now)
		show.headed = true
		show.names.known = mail.Names{}
		show.names.missed["S:db:写手"] = true // no orchestrator is asked
		require.NoError(t, show.mail(c.m))
		require.Regexp(t, `^    42  2026-11-2\d \d\d:\d3:02\.114  `, screen.String())
		_, said, _ := strings.Cut(screen.String(), ".114  ")
		require.Equal(t, strings.Join(strings.Fields(c.want), " "), strings.Join(strings.Fields(said), " "))
	}
}

func TestActorRows(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 33, 0, 0, time.UTC)
	var rows [][]term.Cell
	for _, v := range []mail.ActorView{
		{Actor: "GO", Status: mail.ActorQuiet, LastSeen: "2026-11-20T14:32:58.000Z", Cursor: 41, Latest: 42},
		{Actor: "PO:shop", Agent: "coder", Status: mail.ActorStale, LastSeen: "2026-11-20T14:28:00.000Z", LastBeat: "2026-11-20T14:27:00.000Z", Cursor: 9, Latest: 9},
		{Actor: "W:7", Agent: "w", Status: mail.ActorOffline},
		{Actor: "HO:attic", Status: mail.ActorActive, LastSeen: "2026-11-20T14:33:07.000Z"},
	} {
		rows = append(rows, actorRow(&v, true, now))
	}
	require.Equal(t, "GO        -      quiet    2.0s ago  -       41  \x1b[1m42\x1b[0m\n"+
		"PO:shop   coder  \x1b[33mstale\x1b[0m    5m ago    6m ago   9   9\n"+
		"W:7       w      \x1b[2moffline\x1b[0m  -         -        0   -\n"+
		"HO:attic  -      \x1b[32mactive\x1b[0m   0.0s ago  -        0   -\n", term.Table(rows))
}
