package supervisor

import (
	"net"
	"testing"
	"time"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// boxOf returns a mailbox of a stream, and the other end of the stream.
func boxOf(t *testing.T, limits stdin.Limits) (*stdin.Mailbox, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return &stdin.Mailbox{
		Limits: limits, Timeout: time.Second, To: ours, Shut: func() { _ = ours.Close() },
		OnStall: func(bool) {}, OnBroken: func(error) {},
	}, theirs
}

// receipted is a report of receipts.
type receipted struct {
	said    []int64
	written bool
}

// receiptsOf returns a channel of the receipts of a mailbox.
func receiptsOf(m *stdin.Mailbox) <-chan receipted {
	heard := make(chan receipted, 100)
	m.OnReceipts = func(receipts []wire.Delivered, written bool) {
		one := receipted{written: written}
		for _, r := range receipts {
			one.said = append(one.said, r.Said)
		}
		heard <- one
	}
	return heard
}
