package dispatch

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// all is a record in memory.
type all struct {
	history.Archive // not used
	records         []wire.Record
}

func (a all) Find(s wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		for _, r := range a.records {
			if r.IsMail() && slices.Contains(s.To, r.To) && r.Seq > s.After && (s.Until == 0 || r.Seq <= s.Until) && !yield(r, nil) {
				return
			}
		}
	}
}

// some returns records after number seq, with mail and without.
func some(chance *rand.Rand, seq int64, n int) (records []wire.Record) {
	for range n {
		seq++
		r := wire.Record{Seq: seq, From: "GO", Kind: events.MessageSent, Payload: []byte(fmt.Sprintf(`{"task":"t","n":%d}`, seq))}
		switch chance.IntN(5) {
		case 0:
			r.To = mail.Broadcast
		case 1:
			r.To = "PO:two"
		case 2:
			r.To, r.Kind = "PO:one", events.TaskAssigned
		case 3:
			r.To, r.ReplyTo = "PO:one", max(seq-1, 1)
		}
		if r.To != "" {
			r.Topic = mail.TopicDirect
		}
		if chance.IntN(200) == 0 {
			r.Payload = []byte(`{"n":"` + strings.Repeat("x", chance.IntN(maxLatestBytes)) + `"}`)
		}
		records = append(records, r)
	}
	return records
}

// TestLatestMail checks that the latest mail has the same as the record for each search that it
// covers, that it covers the newest mail, and that it is bounded.
func TestLatestMail(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	var record all
	var latest *latestMail
	require.False(t, latest.covers(&wire.Search{}))
	covered := 0
	for range 300 {
		last := int64(len(record.records))
		batch := some(chance, last, 1+chance.IntN(20))
		record.records = append(record.records, batch...)
		latest = latest.with(batch)
		if latest == nil {
			continue
		}
		require.LessOrEqual(t, len(latest.mail), maxLatest)
		require.LessOrEqual(t, latest.bytes, maxLatestBytes)
		require.True(t, latest.covers(&wire.Search{After: last + int64(len(batch))}))
		s := wire.Search{To: []string{"PO:one", mail.Broadcast}, After: chance.Int64N(last + 1)}
		if chance.IntN(2) == 0 {
			s.Until = s.After + chance.Int64N(50)
		}
		if !latest.covers(&s) {
			continue
		}
		covered++
		requireSame(t, history.MailIn(record)(s), latest.find(s))
	}
	require.Greater(t, covered, 10)
}

// requireSame fails unless two sequences have the same mail. The second is spelled.
func requireSame(t *testing.T, want, got iter.Seq2[history.Mail, error]) {
	t.Helper()
	var a, b []history.Mail
	for m, err := range want {
		require.NoError(t, err)
		a = append(a, m)
	}
	for m, err := range got {
		require.NoError(t, err)
		text, err := object.Encode(&m.Message)
		require.NoError(t, err)
		require.Equal(t, string(text), string(m.Spelled))
		m.Spelled = nil
		b = append(b, m)
	}
	require.Equal(t, a, b)
}

// TestLatestMailIsGone checks that a message which is too large is only in the record, as is the
// mail before it.
func TestLatestMailIsGone(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	var latest *latestMail
	latest = latest.with(some(chance, 0, 50))
	require.NotEmpty(t, latest.mail)
	huge := wire.Record{Seq: 51, To: "PO:one", Topic: mail.TopicDirect, Kind: events.MessageSent, Payload: []byte(`{"n":"` + strings.Repeat("x", maxLatestBytes) + `"}`)}
	latest = latest.with([]wire.Record{huge})
	require.Empty(t, latest.mail)
	require.Zero(t, latest.bytes)
	require.False(t, latest.covers(&wire.Search{After: 50}))
	require.True(t, latest.covers(&wire.Search{After: 51}))
	require.Same(t, latest, latest.with([]wire.Record{{Seq: 52, Kind: events.TaskDone}}), "what is not mail")
}
