package handlers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// BenchmarkSay measures a progress message: from the line that an agent printed to its records
// and to the line for the receiver. It includes the receipt.
func BenchmarkSay(b *testing.B) {
	p := newPlayer(b)
	for _, line := range []string{
		"session shop architect=arch developer=dev reviewer=rev", "agents: arch(planner) dev(worker) rev(reviewer)", "up",
		"start arch", "start dev", "start rev", "say arch dev msg-1 task_assignment", "say dev arch msg-2 acknowledgment reply=msg-1",
	} {
		p.play(line)
	}
	for _, m := range p.state.sessions.byID["shop"].members {
		for len(m.outbox) > 0 {
			p.state.sessions.removeItem(m.outbox[0])
		}
	}
	line := []byte(p.spelledMessage("dev", "arch", "msg-1000000000", session.TypeTaskProgress, nil))
	dev, arch := p.actor("dev"), p.actor("arch")
	at := len(`{"from_agent":{"agent_id":"dev","agent_type":"developer"},"message_id":"msg-`)
	require.Equal(b, "1000000000", string(line[at:at+10]))
	reader := wire.Reader{Agent: "dev", Depth: 64}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		copy(line[at:], fmt.Sprint(2_000_000_000+n))
		s := reader.Parse(line).(*wire.Session)
		said := &wire.SaySession{Session: *s, Lookup: wire.Lookup{Sender: "session:shop", Looked: p.state.seq}}
		out := p.state.Handle(Input{At: p.at, From: dev, Message: &wire.Request{
			ID: s.ID, Operation: "send-session-message", Form: wire.DialectSession, Body: said,
		}})
		if out.Refused != nil {
			b.Fatal(out.Refused)
		}
		number := out.Letters[0].Said
		p.state.Handle(Input{At: p.at, Message: &wire.Delivered{Agent: "arch", Run: arch.Run, Said: number}})
	}
}
