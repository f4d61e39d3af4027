package handlers

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// mailers lists the senders in the benchmarks: an agent, whose requests are remembered, and an
// external actor.
var mailers = []struct {
	name string
	from Actor
}{
	{"agent", Actor{Kind: Agent, Name: "w0", Run: "r"}},
	{"elsewhere", Actor{Kind: External, Name: "HO:far"}},
}

const letter = `{"to_actor":"GO","topic":"message.direct","payload":{"what":"The parser is built","files":["src/parser.go"]}}`

func BenchmarkSend(b *testing.B) {
	for _, m := range mailers {
		b.Run(m.name, func(b *testing.B) {
			z, r := newBench(b, 1), request(b, "send-message", letter)
			b.ReportAllocs()
			for b.Loop() {
				z.ask(m.from, r)
			}
			require.Len(b, z.out.Records, 1)
		})
	}
}

// BenchmarkSendKey sends messages with more keys than the State remembers. The lookup in the log
// is not included.
func BenchmarkSendKey(b *testing.B) {
	for _, m := range mailers {
		b.Run(m.name, func(b *testing.B) {
			z, r := newBench(b, 1), request(b, "send-message", letter)
			body := r.Body.(*wire.SendMessage)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				body.Key, body.Looked = strconv.Itoa(n), z.state.seq
				_, body.Sender, _ = z.state.IdempotencyKey(&Input{From: m.from, Message: r})
				z.ask(m.from, r)
			}
			require.Len(b, z.out.Records, 1)
		})
	}
}

// BenchmarkSendKnown sends a message again with the same key.
func BenchmarkSendKnown(b *testing.B) {
	z, r := newBench(b, 1), request(b, "send-message", letter)
	r.Body.(*wire.SendMessage).Key = "k"
	z.ask(mailers[0].from, r)
	b.ReportAllocs()
	for b.Loop() {
		z.ask(mailers[0].from, r)
	}
	require.Empty(b, z.out.Records)
}

func BenchmarkAck(b *testing.B) {
	z, r := newBench(b, 1), request(b, "ack-messages", `{"seq":1}`)
	b.ReportAllocs()
	for b.Loop() {
		r.Body.(*wire.AckMessages).Seq = z.state.seq
		z.ask(mailers[0].from, r)
	}
	require.Len(b, z.out.Records, 1)
}

// BenchmarkHeartbeat sends a heartbeat beside those of many other actors. One each minute is
// recorded; one that is too soon is not.
func BenchmarkHeartbeat(b *testing.B) {
	for _, test := range []struct {
		name    string
		apart   time.Duration
		records int
	}{{"recorded", time.Minute, 1}, {"soon", 0, 0}} {
		for _, others := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/others=%d", test.name, others), func(b *testing.B) {
				z, r := newBench(b, 1), request(b, "heartbeat", `{}`)
				for i := range others {
					z.ask(Actor{Kind: External, Name: fmt.Sprint("HO:", i)}, r)
				}
				z.ask(mailers[0].from, r)
				b.ReportAllocs()
				for b.Loop() {
					z.since += test.apart
					z.ask(mailers[0].from, r)
				}
				require.Len(b, z.out.Records, test.records)
			})
		}
	}
}
