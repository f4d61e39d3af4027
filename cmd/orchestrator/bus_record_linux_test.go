package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// asked returns the first column of all rows. It reads the record of a running orchestrator, as
// any SQLite program can.
func asked[T any](t *testing.T, db *sql.DB, query string, args ...any) (found []T) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	require.NoError(t, err, query)
	defer rows.Close()
	for rows.Next() {
		var one T
		require.NoError(t, rows.Scan(&one))
		found = append(found, one)
	}
	require.NoError(t, rows.Err())
	return found
}

// The record is a table that other programs can read. It has one mail row for each accepted
// message, and its columns hold the message as sent.
//
// Rows: E-01, E-03, E-10, E-20, E-21, E-22, E-23, E-25, E-86, T-41.
func TestBusRecord(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.Join(b.state(), "events.db")}).String()+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	require.Equal(t, []string{
		"seq INTEGER", "at TEXT", "actor_from TEXT", "actor_to TEXT", "topic TEXT", "kind TEXT", "payload TEXT", "reply_to INTEGER",
		"idempotency_key TEXT", "correlation TEXT", "crc INTEGER",
	}, asked[string](t, db, `SELECT name || ' ' || type FROM pragma_table_info('events')`))
	require.Equal(t, []string{"ok"}, asked[string](t, db, `PRAGMA integrity_check`))

	far := b.clerk("HO:far")
	count := func(where string) int { return asked[int](t, db, `SELECT count(*) FROM events WHERE `+where)[0] }
	before := count(`topic IS NOT NULL`)
	require.Equal(t, 1, before)
	require.Equal(t, 1, count(`topic = 'agent.spawned'`))
	var sent []letter
	for n := range 50 {
		sent = append(sent, far.send("PO:one", direct, fmt.Sprintf(`{"n":%d,"big":12345678901234567890}`, n), fmt.Sprintf(`"idempotency_key":"key %d","reply_to":"%d"`, n, n+1)))
		far.send("PO:one", direct, `{}`, fmt.Sprintf(`"idempotency_key":"key %d"`, n)) // a repeat
		far.spurned(403, "denied", "POST /api/bus/send", mailLine("GO", "PO:one", direct, `{}`))
		far.spurned(400, "invalid", "POST /api/bus/send", mailLine("HO:far", "PO:one", "", `{}`))
		far.spurned(403, "denied", "POST /api/bus/send", mailLine("HO:far", "broadcast", direct, `{}`))
		actors[0].say(mailLine("PO:one", "HO:far", "foo.bar", `{}`) + "\n")
	}
	waitForThat(t, "all answers", func() bool { return len(actors[0].plain()) == 50 })
	said := b.boss.send("broadcast", "broadcast.all", `{}`)
	far.send("Bus", "heartbeat", `{}`)
	require.Equal(t, 50, count(`topic = 'message.direct'`))
	require.Equal(t, 50, count(`topic = 'foo.bar'`))
	require.Equal(t, 50, count(`topic = 'topic.unknown' AND actor_from = 'Bus' AND actor_to = 'GO'`))
	require.Equal(t, 1, count(`actor_to = 'broadcast'`))
	require.Equal(t, before+50+50+50+1+1, count(`topic IS NOT NULL`))
	require.Equal(t, count(`topic IS NOT NULL`), count(`kind = 'message.sent'`), "mail is what has a topic")
	require.Equal(t, b.sent(), count(`topic IS NOT NULL`))
	require.Zero(t, count(`topic IS NOT NULL AND (actor_to IS NULL OR payload IS NULL)`))
	for n, l := range sent {
		var at, from, to, topic, payload, key string
		var replyTo int64
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT at, actor_from, actor_to, topic, payload, idempotency_key, reply_to FROM events WHERE seq = ?`, l.Seq).
			Scan(&at, &from, &to, &topic, &payload, &key, &replyTo))
		require.Equal(t, []string{l.CreatedAt, l.From, l.To, l.Topic, string(l.Payload), fmt.Sprint("key ", n)}, []string{at, from, to, topic, payload, key})
		require.Equal(t, *l.ReplyTo, replyTo)
	}
	const all = `SELECT seq || at || actor_from || ifnull(actor_to, '-') || ifnull(topic, '-') || ifnull(payload, '-') || crc FROM events WHERE seq <= ? ORDER BY seq`
	rows := asked[string](t, db, all, said.Seq)
	far.acks(said.Seq)
	far.polls("&cursor=0")
	actors[0].hears(51)
	actors[0].acks(said.Seq)
	b.boss.send("HO:far", "task.failed", `{}`, fmt.Sprintf(`"reply_to":%d`, sent[0].Seq))
	require.Equal(t, rows, asked[string](t, db, all, said.Seq), "no row ever changes")
	require.Equal(t, asked[int64](t, db, `SELECT max(seq) FROM events`)[0], int64(count(`1`)), "and none is missing")
	b.stop()
}

// resident returns the resident memory of the orchestrator in bytes.
func (s *stage) resident() int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	require.NoError(s.t, err)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(s.t, found)
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(s.t, err)
	return kib << 10
}

// past returns a bureau whose record has many messages, most of them years old.
func past(t *testing.T, many int) *bureau {
	t.Helper()
	h := newHub(t, listeners+quick)
	h.ship()
	require.NoError(t, os.MkdirAll(h.state(), 0o700))
	log, err := eventlog.Open(t.Context(), eventlog.Options{Path: filepath.Join(h.state(), "events.db")})
	require.NoError(t, err)
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var batch []wire.Record
	for n := range many {
		r := wire.Record{At: began.Add(time.Duration(n) * time.Second), From: fmt.Sprintf("HO:sender-%d", n%10), To: fmt.Sprintf("HO:reader-%d", n%4), Topic: direct, Kind: events.MessageSent}
		r.Payload, r.Key = fmt.Appendf(nil, `{"n":%d,"filler":"some text that makes it as long as others are"}`, n), fmt.Sprint("key-", n)
		if batch = append(batch, r); len(batch) == 1000 {
			require.NoError(t, log.Append(t.Context(), log.Last(), batch))
			batch = batch[:0]
		}
	}
	require.NoError(t, log.Close())
	require.Empty(t, batch)
	b := &bureau{hub: h}
	b.up()
	b.url = b.listening()
	b.seat()
	return b
}

// browse reads at several places of a mailbox and repeats messages that exist already.
func (b *bureau) browse(many int) {
	b.t.Helper()
	reader := b.clerk("HO:reader-1")
	mine := make([]int64, 0, many/4)
	for n := 1; n < many; n += 4 {
		mine = append(mine, int64(n+1))
	}
	require.Equal(b.t, mine[len(mine)-100:], seqs(reader.polls(fmt.Sprint("&cursor=", mine[len(mine)-101]))))
	for _, at := range []int{0, 1, 77, len(mine) / 2, len(mine) - 30} {
		after := int64(0)
		if at > 0 {
			after = mine[at-1]
		}
		require.Equal(b.t, mine[at:at+20], seqs(reader.polls(fmt.Sprintf("&limit=20&cursor=%d", after))))
	}
	reader.acks(mine[len(mine)-10])
	require.Equal(b.t, mine[len(mine)-9:], seqs(reader.polls("")))
	e := reader.listens("", fmt.Sprint(mine[len(mine)-6]))
	require.Equal(b.t, mine[len(mine)-5:], seqs(e.hears(5)))
	sender := b.clerk("HO:sender-0")
	old := sender.send("HO:other", direct, `{}`, `"idempotency_key":"key-0"`)
	require.True(b.t, old.Duplicate)
	require.EqualValues(b.t, 1, old.Seq)
	require.Equal(b.t, "2020-01-01T00:00:00.000Z", old.CreatedAt)
	sent := sender.send("HO:reader-1", direct, `{}`)
	require.Equal(b.t, sent, e.hears(6)[5])
}

// Old mail can be read and takes no memory.
//
// Rows: E-16, E-27, E-30, E-38, E-63.
func TestBusHistory(t *testing.T) {
	t.Parallel()
	const few, many = 1000, 100_000
	memory := make(map[int]int64)
	for _, size := range []int{few, many} {
		b := past(t, size)
		b.browse(size)
		memory[size] = b.resident()
		b.stop()
	}
	t.Logf("%d MiB, and %d MiB", memory[few]>>20, memory[many]>>20)
	require.Less(t, memory[many]-memory[few], int64(30<<20))
}
