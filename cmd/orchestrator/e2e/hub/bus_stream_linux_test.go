package hub

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/object"
)

// An ear reads the stream of an actor's mail.
type ear struct {
	t      *testing.T
	leave  context.CancelFunc
	closed chan struct{}

	mu      sync.Mutex
	letters []stage.Mail
	wrong   error
}

// listens opens a stream. The query follows the actor, and last is the number of the last
// message read, or "".
func (c *clerk) listens(query, last string) *ear {
	c.Hub.T.Helper()
	e, status := c.mayListen(query, last)
	require.Equal(c.Hub.T, http.StatusOK, status)
	return e
}

// mayListen is listens, but may be refused.
func (c *clerk) mayListen(query, last string) (e *ear, status int) {
	c.Hub.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Hub.Url+"/api/sse/events?actor="+url.QueryEscape(c.actor)+query, http.NoBody)
	require.NoError(c.Hub.T, err)
	if c.Header != "" {
		asked.Header.Set(c.Header, c.Credential)
	}
	if last != "" {
		asked.Header.Set("Last-Event-ID", last)
	}
	client := *c.Client
	client.Timeout = 0
	answer, err := client.Do(asked)
	require.NoError(c.Hub.T, err)
	if answer.StatusCode != http.StatusOK {
		cancel()
		require.NoError(c.Hub.T, answer.Body.Close())
		return nil, answer.StatusCode
	}
	require.Equal(c.Hub.T, "text/event-stream", answer.Header.Get("Content-Type"))
	e = &ear{t: c.Hub.T, leave: cancel, closed: make(chan struct{})}
	go func() { // ends when the stream ends
		defer close(e.closed)
		defer answer.Body.Close()
		e.listen(answer.Body)
	}()
	c.Hub.T.Cleanup(func() { cancel(); <-e.closed })
	return e, answer.StatusCode
}

// listen reads the events of a stream.
func (e *ear) listen(from io.Reader) {
	lines := bufio.NewReaderSize(from, 2<<20)
	event := make(map[string]string)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		if name, value, found := strings.Cut(line, ": "); found {
			event[name] = value
			continue
		}
		if line == "" && event["data"] != "" {
			e.take(event)
		}
		clear(event)
	}
}

// take stores an event. Its id, name and data must agree.
func (e *ear) take(event map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var l stage.Mail
	if err := object.DecodeOwn([]byte(event["data"]), &l); err != nil || event["id"] != fmt.Sprint(l.Seq) || event["event"] != l.Topic {
		e.wrong = fmt.Errorf("%v is no event: %w", event, err)
	}
	l.Text = event["data"]
	e.letters = append(e.letters, l)
}

// heard returns the messages received so far.
func (e *ear) heard() []stage.Mail {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.NoError(e.t, e.wrong)
	return e.letters[:len(e.letters):len(e.letters)]
}

// hears waits until n messages were received, and returns them.
func (e *ear) hears(n int) []stage.Mail {
	e.t.Helper()
	stage.WaitFor(e.t, fmt.Sprintf("%d events", n), func() bool { return len(e.heard()) >= n })
	var found []stage.Mail
	for _, l := range e.heard() {
		found = append(found, stage.ReadMail(e.t, l.Text))
	}
	return found
}

// ends waits for the end of a stream.
func (e *ear) ends() {
	e.t.Helper()
	stage.WaitFor(e.t, "end of the stream", func() bool {
		select {
		case <-e.closed:
			return true
		default:
			return false
		}
	})
}

// A stream sends the same messages as a poll, as they come, and does not move the cursor.
//
// Rows: E-08, E-09, E-22, E-31, E-34, E-40, T-36.
func TestBusStream(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	far, one := b.clerk("HO:far"), b.clerk("HO:one")
	sent := []stage.Mail{far.send("HO:one", stage.Direct, `{"u":"\n\r\u2028é","n":1.50}`), far.send("HO:one", "täsk.x", `{}`, `"reply_to":"1"`)}
	e := one.listens("", "")
	require.Equal(t, seqs(sent), seqs(e.hears(2)), "what is there already")
	sent = append(sent, far.send("HO:one", stage.Direct, `{}`), b.boss.send("broadcast", "broadcast.all", `{}`))
	far.send("HO:other", stage.Direct, `{}`)
	sent = append(sent, far.send("HO:one", stage.Direct, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1<<20-10))))
	told := one.polls("")
	require.Equal(t, told, e.hears(5), "what comes, letter for letter as it is polled, and nothing of others")
	require.Equal(t, seqs(sent), seqs(told))
	require.Zero(t, b.known("HO:one").Cursor)
	for _, again := range []struct {
		query, last string
		want        []stage.Mail
	}{
		{"", "", told}, {"&cursor=0", "", told}, {fmt.Sprint("&cursor=", told[2].Seq), "", told[3:]}, {"", fmt.Sprint(told[1].Seq), told[2:]},
		{"&cursor=0", fmt.Sprint(told[3].Seq), told[4:]}, {fmt.Sprint("&cursor=", told[3].Seq), "0", told},
	} {
		require.Equal(t, again.want, one.listens(again.query, again.last).hears(len(again.want)), "%s %s", again.query, again.last)
	}
	one.acks(told[3].Seq)
	require.Equal(t, told[4:], one.listens("", "").hears(1), "behind what was acked")
	e.leave()
	e.ends()
	require.Equal(t, told[4:], one.polls(""))
	b.Stop()
}

// An actor may have many streams, up to a limit. All streams end with the orchestrator.
//
// Rows: E-08, E-31.
func TestBusManyStreams(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	far, one := b.clerk("HO:far"), b.clerk("HO:one")
	var streams []*ear
	for e, status := one.mayListen("", ""); e != nil; e, status = one.mayListen("", "") {
		require.Equal(t, http.StatusOK, status)
		streams = append(streams, e)
		require.Less(t, len(streams), 1000)
	}
	require.Greater(t, len(streams), 7)
	spurned(one.Caller, http.StatusTooManyRequests, "limited", "GET /api/sse/events", "")
	others := b.clerk("HO:other").listens("", "")
	sent := far.send("HO:one", stage.Direct, `{}`)
	said := b.boss.send("broadcast", "broadcast.all", `{}`)
	for _, s := range streams {
		require.Equal(t, []stage.Mail{sent, said}, s.hears(2))
	}
	require.Equal(t, []stage.Mail{said}, others.hears(1))
	streams[0].leave()
	stage.WaitFor(t, "place for another", func() bool {
		r, err := one.Try("HEAD /api/sse/events", "")
		return err == nil && r.Status == http.StatusOK
	})
	b.Stop()
	for _, s := range append(streams, others) {
		s.ends()
	}
}

// A reader that reconnects continues after the last message that it read, also after kills: no
// message is missing or repeated.
//
// Rows: E-08, E-24, E-27, E-28, E-40.
func TestBusStreamIsResumed(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	reader := b.clerk("HO:reader")
	var all []stage.Mail
	last, n := "", 0
	for range stage.Rounds(t, 3) {
		e := reader.listens("&cursor=0", last)
		var lines strings.Builder
		for range 300 {
			fmt.Fprintln(&lines, stage.MailLine("PO:one", "HO:reader", stage.Direct, fmt.Sprintf(`{"n":%d}`, n)))
			n++
		}
		actors[0].Say(lines.String())
		e.hears(50)
		b.Kill()
		e.ends()
		for _, l := range e.heard() {
			all = append(all, stage.ReadMail(t, l.Text))
		}
		last = fmt.Sprint(all[len(all)-1].Seq)
		actors = b.Open("one")
	}
	mark := b.boss.send("HO:reader", stage.Direct, `{"mark":true}`)
	e := reader.listens("&cursor=0", last)
	stage.WaitFor(t, "the last one", func() bool { found := e.heard(); return len(found) > 0 && found[len(found)-1].Seq == mark.Seq })
	for _, l := range e.heard() {
		all = append(all, stage.ReadMail(t, l.Text))
	}
	require.Equal(t, reader.everything(10_000), all)
	b.Stop()
}

// A stream ends when its token is replaced or revoked, or when the run of its agent ends. Later
// mail is not sent on it.
//
// Rows: E-05, E-08, E-77, E-79, K-18.
func TestBusStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	rotated, revoked := b.clerk("HO:rotated"), b.clerk("HO:revoked")
	own := b.holding("PO:one", environment(t, actors[0])["ORC_TOKEN"])
	ears := []*ear{rotated.listens("", ""), revoked.listens("", ""), own.listens("", "")}
	before := b.boss.send("broadcast", "broadcast.all", `{"before":true}`)
	for _, e := range ears {
		require.Equal(t, []stage.Mail{before}, e.hears(1))
	}
	fresh := b.clerk("HO:rotated").listens("", fmt.Sprint(before.Seq))
	b.Ask("token", "revoke", b.tokenOf("HO:revoked"), "--yes")
	actors[0].Kill()
	b.NextReady("one")
	after := b.boss.send("broadcast", "broadcast.all", `{"after":true}`)
	require.Equal(t, []stage.Mail{after}, fresh.hears(1))
	for _, e := range ears {
		e.ends()
		require.Equal(t, []int64{before.Seq}, seqs(e.heard()))
	}
	for _, c := range []*clerk{rotated, revoked, own} {
		spurned(c.Caller, http.StatusUnauthorized, "unauthenticated", "GET /api/sse/events", "")
	}
	b.Stop()
}

// A reader that takes no events is disconnected with a line in the log, and delays no other reader.
// It can continue where it was.
//
// Rows: E-08, E-09, E-27, E-28.
func TestBusSlowReader(t *testing.T) {
	t.Parallel()
	const many = 100
	b, _ := newBureau(t, "")
	slow, quick, far := b.clerk("HO:slow"), b.clerk("HO:quick"), b.clerk("HO:far")
	conn, err := net.Dial("unix", b.Path("state/api.sock"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /api/sse/events?actor=HO:slow HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", slow.Credential)
	require.NoError(t, err)
	e := quick.listens("", "")
	var sent, heard []stage.Mail
	payload := fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 20<<10))
	for range many {
		sent = append(sent, far.send("HO:slow", stage.Direct, payload))
		heard = append(heard, far.send("HO:quick", stage.Direct, `{}`))
	}
	require.Equal(t, heard, e.hears(many))
	began := time.Now()
	left := func() bool { return strings.Contains(b.Stderr.All(), "was too slow") }
	// The server's timeout is as long as waitForThat waits, so there are two waits.
	stage.WaitFor(t, "half of its patience", func() bool { return left() || time.Since(began) > 20*time.Second })
	stage.WaitFor(t, "end of its patience", left)
	require.Contains(t, b.Stderr.All(), "actor HO:slow")
	heard = append(heard, far.send("HO:quick", stage.Direct, `{}`))
	require.Equal(t, heard, e.hears(many+1))

	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	on := &ear{t: t}
	on.listen(answer.Body) // the events sent already
	taken := on.hears(1)
	require.Less(t, len(taken), many)
	rest := slow.listens("", fmt.Sprint(taken[len(taken)-1].Seq)).hears(many - len(taken))
	require.Equal(t, sent, append(taken, rest...))
	require.Equal(t, sent, slow.polls(""))
	b.Stop()
}
