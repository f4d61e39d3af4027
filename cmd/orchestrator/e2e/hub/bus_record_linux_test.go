package hub

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
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
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.Join(b.State(), "events.db")}).String()+"?mode=ro")
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
	var sent []stage.Mail
	for n := range 50 {
		sent = append(sent, far.send("PO:one", stage.Direct, fmt.Sprintf(`{"n":%d,"big":12345678901234567890}`, n), fmt.Sprintf(`"idempotency_key":"key %d","reply_to":"%d"`, n, n+1)))
		far.send("PO:one", stage.Direct, `{}`, fmt.Sprintf(`"idempotency_key":"key %d"`, n)) // a repeat
		spurned(far.Caller, 403, "denied", "POST /api/bus/send", stage.MailLine("GO", "PO:one", stage.Direct, `{}`))
		spurned(far.Caller, 400, "invalid", "POST /api/bus/send", stage.MailLine("HO:far", "PO:one", "", `{}`))
		spurned(far.Caller, 403, "denied", "POST /api/bus/send", stage.MailLine("HO:far", "broadcast", stage.Direct, `{}`))
		actors[0].Say(stage.MailLine("PO:one", "HO:far", "foo.bar", `{}`) + "\n")
	}
	stage.WaitFor(t, "all answers", func() bool { return len(plain(actors[0])) == 50 })
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
	actors[0].Receives(51)
	acks(actors[0], said.Seq)
	b.boss.send("HO:far", "task.failed", `{}`, fmt.Sprintf(`"reply_to":%d`, sent[0].Seq))
	require.Equal(t, rows, asked[string](t, db, all, said.Seq), "no row ever changes")
	require.Equal(t, asked[int64](t, db, `SELECT max(seq) FROM events`)[0], int64(count(`1`)), "and none is missing")
	b.Stop()
}

// resident returns the resident memory of the orchestrator in bytes.
func resident(s *stage.Orchestrator) int64 {
	s.T.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Process.Pid))
	require.NoError(s.T, err)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(s.T, found)
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(s.T, err)
	return kib << 10
}

// past returns a bureau whose record has many messages, most of them years old.
func past(t *testing.T, many int) *bureau {
	t.Helper()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop)
	h.Ship()
	require.NoError(t, os.MkdirAll(h.State(), 0o700))
	log, err := eventlog.Open(t.Context(), eventlog.Options{Path: filepath.Join(h.State(), "events.db")})
	require.NoError(t, err)
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var batch []wire.Record
	for n := range many {
		r := wire.Record{At: began.Add(time.Duration(n) * time.Second), From: fmt.Sprintf("HO:sender-%d", n%10), To: fmt.Sprintf("HO:reader-%d", n%4), Topic: stage.Direct, Kind: events.MessageSent}
		r.Payload, r.Key = fmt.Appendf(nil, `{"n":%d,"filler":"some text that makes it as long as others are"}`, n), fmt.Sprint("key-", n)
		if batch = append(batch, r); len(batch) == 1000 {
			require.NoError(t, log.Append(t.Context(), log.Last(), batch))
			batch = batch[:0]
		}
	}
	require.NoError(t, log.Close())
	require.Empty(t, batch)
	b := &bureau{Hub: h}
	b.Up()
	b.Url = b.Address()
	b.seat()
	return b
}

// browse reads at several places of a mailbox and repeats messages that exist already.
func (b *bureau) browse(many int) {
	b.T.Helper()
	reader := b.clerk("HO:reader-1")
	mine := make([]int64, 0, many/4)
	for n := 1; n < many; n += 4 {
		mine = append(mine, int64(n+1))
	}
	require.Equal(b.T, mine[len(mine)-100:], seqs(reader.polls(fmt.Sprint("&cursor=", mine[len(mine)-101]))))
	for _, at := range []int{0, 1, 77, len(mine) / 2, len(mine) - 30} {
		after := int64(0)
		if at > 0 {
			after = mine[at-1]
		}
		require.Equal(b.T, mine[at:at+20], seqs(reader.polls(fmt.Sprintf("&limit=20&cursor=%d", after))))
	}
	reader.acks(mine[len(mine)-10])
	require.Equal(b.T, mine[len(mine)-9:], seqs(reader.polls("")))
	e := reader.listens("", fmt.Sprint(mine[len(mine)-6]))
	require.Equal(b.T, mine[len(mine)-5:], seqs(e.hears(5)))
	sender := b.clerk("HO:sender-0")
	old := sender.send("HO:other", stage.Direct, `{}`, `"idempotency_key":"key-0"`)
	require.True(b.T, old.Duplicate)
	require.EqualValues(b.T, 1, old.Seq)
	require.Equal(b.T, "2020-01-01T00:00:00.000Z", old.CreatedAt)
	sent := sender.send("HO:reader-1", stage.Direct, `{}`)
	require.Equal(b.T, sent, e.hears(6)[5])
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
		memory[size] = resident(b.Hub.Team.Orchestrator)
		b.Stop()
	}
	t.Logf("%d MiB, and %d MiB", memory[few]>>20, memory[many]>>20)
	require.Less(t, memory[many]-memory[few], int64(30<<20))
}

// A flood is a bureau whose orchestrator is killed repeatedly while many actors write.
type flood struct {
	*bureau
	random *rand.Rand
	over   atomic.Bool // whether this life has ended

	mu       sync.Mutex
	answered map[string][]int64 // by sender: the confirmed seq of each message; 0: not yet confirmed
}

// floodAgents are the agents that send by stdout.
var floodAgents = []string{"pipe0", "pipe1"}

// floodLife is the most messages that each sender sends in a life.
const floodLife = 400

func (f *flood) keyed(from string, n int) string {
	return stage.MailLine(from, "HO:sink", stage.Direct, fmt.Sprintf(`{"from":%q,"n":%d}`, from, n), fmt.Sprintf(`"idempotency_key":"%s-%d"`, from, n))
}

// note records a confirmation. The seq of a message never changes.
func (f *flood) note(l stage.Mail) {
	var n int
	var from string
	_, err := fmt.Sscanf(string(l.Payload), `{"from":%q,"n":%d}`, &from, &n)
	require.NoError(f.T, err, l.Text)
	require.Equal(f.T, l.From, from)
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.answered[from]) <= n {
		f.answered[from] = append(f.answered[from], 0)
	}
	before := f.answered[from][n]
	require.True(f.T, before == 0 || before == l.Seq, "message %d of %s was %d, and is %d", n, from, before, l.Seq)
	f.answered[from][n] = l.Seq
}

// next returns the first message of a sender that is not confirmed.
func (f *flood) next(from string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, seq := range f.answered[from] {
		if seq == 0 {
			return n
		}
	}
	return len(f.answered[from])
}

// writes sends messages over HTTP until the orchestrator is gone. Unconfirmed messages are sent
// again in the next life, with the same key.
func (f *flood) writes(c *clerk, letters chan<- stage.Mail) {
	for n := f.next(c.actor); !f.over.Load(); n++ {
		r, err := c.Try("POST /api/bus/send", f.keyed(c.actor, n))
		if err != nil || r.Status >= http.StatusInternalServerError {
			return
		}
		if r.Status != http.StatusOK {
			f.T.Errorf("message %d of %s: %d %s", n, c.actor, r.Status, r.Text)
			return
		}
		letters <- stage.Mail{Text: r.Text}
	}
}

// pipes sends many messages at once by stdout, unconfirmed ones first.
func (f *flood) pipes(a *stage.Agent, from string) {
	var lines strings.Builder
	first := f.next(from)
	for n := first; n < first+floodLife; n++ {
		if n%2 == 0 {
			fmt.Fprintln(&lines, f.keyed(from, n))
		} else {
			fmt.Fprintln(&lines, stage.Request(fmt.Sprint(from, "-", n), "send-message", f.keyed(from, n)))
		}
	}
	_, _ = io.WriteString(a.Conn, lines.String())
}

// piped records the answers to an agent in the last life.
func (f *flood) piped(a *stage.Agent) {
	f.T.Helper()
	stage.WaitFor(f.T, "end of "+a.Name, func() bool {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		return a.Ended
	})
	for _, line := range a.Lines() {
		switch {
		case !json.Valid([]byte(line)): // the last one may have been cut off
		case strings.HasPrefix(line, `{"seq":`):
			f.note(readSent(f.T, line))
		default:
			m := stage.Received(f.T, line)
			require.Nil(f.T, m.Error, line)
			if strings.HasPrefix(string(m.Payload), `{"seq":`) {
				f.note(readSent(f.T, string(m.Payload)))
			}
		}
	}
}

// A recipient is the actor that receives all messages.
type recipient struct {
	*clerk
	granted, asked atomic.Int64 // the highest seq acked, and tried to ack
}

// reads polls and acks until the orchestrator is gone.
func (s *recipient) reads(over *atomic.Bool) {
	for !over.Load() {
		r, err := s.Try(s.poll("&limit=20"), "")
		if err != nil || r.Status != http.StatusOK {
			return
		}
		last := strings.LastIndex(r.Text, `{"seq":`)
		if last < 0 {
			continue
		}
		var seq int64
		if _, err := fmt.Sscanf(r.Text[last:], `{"seq":%d`, &seq); err != nil {
			return
		}
		s.asked.Store(seq)
		r, err = s.Try("POST /api/bus/ack", fmt.Sprintf(`{"seq":%d}`, seq))
		if err != nil || r.Status != http.StatusOK {
			return
		}
		s.granted.Store(seq)
	}
}

// Many actors send, in every way, and one receives, while the orchestrator is killed repeatedly.
// Confirmed messages exist once, in the order of their sender; unconfirmed ones are sent again. The
// receiver's cursor is as confirmed.
//
// Rows: E-16, E-24, E-26, E-27, E-28, E-33, E-36, E-40, E-60, E-86, T-34.
func TestBusKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	hcl := ""
	for _, name := range floodAgents {
		hcl += writing(name, "PO:"+name)
	}
	b, actors := newBureau(t, hcl, floodAgents...)
	f := &flood{bureau: b, random: rand.New(rand.NewPCG(seed, 0)), answered: make(map[string][]int64)}
	writers := []*clerk{b.clerk("HO:a"), b.clerk("HO:b"), b.clerk("W:c")}
	reader := &recipient{clerk: b.clerk("HO:sink")}
	for range stage.Rounds(t, 5) {
		f.life(actors, writers, reader)
		actors = b.Open(floodAgents...)
		cursor := b.known("HO:sink").Cursor
		require.GreaterOrEqual(t, cursor, reader.granted.Load(), "an ack that was answered is lost")
		require.LessOrEqual(t, cursor, max(reader.asked.Load(), reader.granted.Load()), "nobody has acked that")
		f.check(reader.clerk)
	}
	f.finish(actors, writers)
	f.check(reader.clerk)
	require.NotZero(t, reader.granted.Load())
	stage.RequireNoGaps(t, b.Orchestrator)
	b.Stop()
}

// life runs all senders and the reader, and kills the orchestrator in the middle.
func (f *flood) life(actors []*stage.Agent, writers []*clerk, reader *recipient) {
	f.T.Helper()
	f.over.Store(false)
	letters := make(chan stage.Mail, 10*floodLife)
	var group sync.WaitGroup
	for _, w := range writers {
		group.Go(func() { f.writes(w, letters) })
	}
	for i, a := range actors {
		group.Go(func() { f.pipes(a, "PO:"+floodAgents[i]) })
	}
	group.Go(func() { reader.reads(&f.over) })
	goal := 1 + f.random.IntN(2*floodLife)
	stage.WaitFor(f.T, "some talk", func() bool {
		return len(letters)+len(actors[0].Lines())+len(actors[1].Lines()) >= goal
	})
	<-time.After(time.Duration(f.random.IntN(5000)) * time.Microsecond)
	f.Kill()
	f.over.Store(true)
	group.Wait()
	close(letters)
	for l := range letters {
		f.note(readSent(f.T, l.Text))
	}
	for _, a := range actors {
		f.piped(a)
	}
}

// check compares the stored mail with the confirmations.
func (f *flood) check(reader *clerk) {
	f.T.Helper()
	there := make(map[string][]stage.Mail)
	for _, l := range reader.everything(10_000) {
		there[l.From] = append(there[l.From], l)
	}
	for from, found := range there {
		for n, l := range found {
			require.Equal(f.T, fmt.Sprintf(`{"from":%q,"n":%d}`, from, n), string(l.Payload), "each once, and in the order in which they were sent")
		}
	}
	for from, seqs := range f.answered {
		for n, seq := range seqs {
			if seq != 0 {
				require.Less(f.T, n, len(there[from]), "message %d of %s was answered and is gone", n, from)
				require.Equal(f.T, seq, there[from][n].Seq)
			}
		}
	}
}

// finish sends the unconfirmed messages, and requires a confirmation of all.
func (f *flood) finish(actors []*stage.Agent, writers []*clerk) {
	f.T.Helper()
	for _, w := range writers {
		for n := range f.next(w.actor) + 2 {
			l := w.sends(f.keyed(w.actor, n))
			f.note(l)
		}
	}
	for i, a := range actors {
		f.pipes(a, "PO:"+floodAgents[i])
	}
	for _, a := range actors {
		stage.WaitFor(f.T, "all answers", func() bool { return len(a.Lines()) >= floodLife+1 })
		a.Exit(0)
		f.piped(a)
	}
}
