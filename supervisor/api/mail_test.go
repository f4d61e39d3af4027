package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/mail"
)

// mailDoor returns an API with only the mail.
func mailDoor(p *post) *API { return &API{Callers: &fakeCallers{do: new(hearsay).do, mail: p.open}} }

// TestMailAsEvents checks that each message is one event, byte for byte, sent as soon as it
// exists.
//
// Rows: E-08, E-22, T-36.
func TestMailAsEvents(t *testing.T) {
	h := buildHub(t, nil)
	stream := h.as(withToken("far")).listen(t, "?actor=HO:far").begins(t)
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		require.Equal(t, []string{want}, stream.response.Header.Values(name))
	}
	require.Empty(t, stream.response.Header.Get("Content-Length"))
	require.Equal(t, []opening{{from: identity.Caller{Kind: identity.Outsider, Name: "HO:far"}, actor: "HO:far"}}, h.post.taken())

	h.post.send(someMail(7))
	stream.hears(t, "id: 7\nevent: task.assigned\ndata: "+mailText+"\n\n")
	odd := someMail(8)
	odd.From, odd.Topic, odd.ReplyTo = "IO:bo\u2028b", "täsk.\u0085.:x", new(int64(7))
	odd.Payload = wire.Raw("{\r\n \"a\": \"\\n\\r\\n\\ndata: x\\u0000\u2028\",\n\"a\":1.0}")
	huge := someMail(9)
	huge.Payload = wire.Raw(`{"x":"` + strings.Repeat("x", mail.MaxPayload) + `"}`)
	h.post.send(odd, huge)
	stream.hears(t, event("8", "täsk.\u0085.:x", `{"seq":8,"from_actor":"IO:bo`+"\u2028"+`b","to_actor":"HO:far","topic":"täsk.`+"\u0085"+`.:x",`+
		`"payload":{"a":"\n\r\n\ndata: x\u0000`+"\u2028"+`","a":1.0},"reply_to":7,"created_at":"`+morning+`"}`))
	stream.hears(t, event("9", "task.assigned", strings.NewReplacer(`"seq":7`, `"seq":9`, `{"n":1.50}`, string(huge.Payload)).Replace(mailText)))
	stream.leave()
	<-h.post.left
}

// TestMailThatIsNoLine checks that a message that would break an event is not sent.
func TestMailThatIsNoLine(t *testing.T) {
	for _, change := range []func(*mail.Message){
		func(m *mail.Message) { m.Topic = "a\nid: 9" },
		func(m *mail.Message) { m.Topic = "a\rb" },
		func(m *mail.Message) { m.Payload = wire.Raw("{\"a\":\"\n\"}") },
		func(m *mail.Message) { m.Payload = wire.Raw(`{"a":1`) },
	} {
		m := someMail(7)
		change(&m)
		_, err := appendEvent(nil, &m)
		require.Error(t, err)
		p := newPost()
		p.send(someMail(6), m, someMail(8))
		visitAsOperator(t, mailDoor(p), func(t *testing.T, c *http.Client, _ *pipes) {
			stream := asks{client: c}.listen(t, "").begins(t)
			text, err := stream.rest()
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Equal(t, event("6", "task.assigned", strings.Replace(mailText, `"seq":7`, `"seq":6`, 1)), text, "what is before it was sent")
		})
	}
}

// TestMailIsResumed checks that a reader that reconnects continues where it was.
//
// Rows: E-08, E-34, E-40.
func TestMailIsResumed(t *testing.T) {
	h := buildHub(t, nil)
	h.post.send(someMail(7), someMail(8))
	eighth := event("8", "task.assigned", strings.Replace(mailText, `"seq":7`, `"seq":8`, 1))
	seventh := event("7", "task.assigned", mailText)
	for _, test := range []struct {
		query, last string
		cursor      any
		want        string
	}{
		{"", "", nil, seventh + eighth},
		{"?cursor=0", "", int64(0), seventh + eighth},
		{"?cursor=7", "", int64(7), eighth},
		{"", "7", int64(7), eighth},
		{"?cursor=0", "7", int64(7), eighth},
		{"?cursor=7&actor=HO:far", "0", int64(0), seventh + eighth},
	} {
		by := h.as(withKey("coder"))
		if test.last != "" {
			by.header.Set("Last-Event-ID", test.last)
		}
		stream := by.listen(t, test.query).begins(t)
		stream.hears(t, test.want)
		opened := h.post.taken()
		require.Len(t, opened, 1)
		require.Equal(t, test.cursor, opened[0].cursor, "%+v", test)
		stream.leave()
	}
}

// TestMailKeepsAlive checks that an idle stream sends comments.
//
// Rows: E-08.
func TestMailKeepsAlive(t *testing.T) {
	for _, every := range []time.Duration{0, time.Minute} {
		p := newPost()
		d := mailDoor(p)
		d.KeepAlive = every
		visitAsOperator(t, d, func(t *testing.T, c *http.Client, _ *pipes) {
			want := every
			if want == 0 {
				want = 15 * time.Second
			}
			begun := time.Now()
			stream := asks{client: c}.listen(t, "").begins(t)
			require.Zero(t, time.Since(begun), "it begins at once")
			for i := range 20 { // longer than the timeouts of a request and of a write
				stream.hears(t, ": keep-alive\n\n")
				require.Equal(t, want*time.Duration(i+1), time.Since(begun))
			}
			<-time.After(want / 2)
			p.send(someMail(7))
			stream.hears(t, event("7", "task.assigned", mailText))
			told := time.Now()
			stream.hears(t, ": keep-alive\n\n")
			require.Equal(t, want, time.Since(told), "counted from the last that was told")
			stream.leave()
		})
	}
}

// TestMailForOneWhoTakesNothing checks that a reader that does not read is cut off, and does not
// delay other readers.
//
// Rows: E-08, E-09.
func TestMailForOneWhoTakesNothing(t *testing.T) {
	for _, begins := range []bool{false, true} {
		var said bytes.Buffer
		p := newPost()
		d := mailDoor(p)
		visitAs(t, identity.Caller{Kind: identity.Agent, Name: "coder", Run: "run-1"}, d, func(t *testing.T, c *http.Client, ways *pipes) {
			d.Log = hclog.New(&hclog.LoggerOptions{Output: &said})
			conn, err := ways.dial(t.Context(), "", "")
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET /api/sse/events?actor=W:1&cursor=5 HTTP/1.1\r\nHost: x\r\n\r\n")
			require.NoError(t, err)
			after := "after 5"
			if begins { // and reads one message
				response, err := http.ReadResponse(bufio.NewReader(&oneByOne{conn}), nil)
				require.NoError(t, err)
				p.send(someMail(6))
				first := make([]byte, len(streamBegins+event("6", "task.assigned", mailText)))
				_, err = io.ReadFull(response.Body, first)
				require.NoError(t, err)
				_, err = io.ReadFull(conn, make([]byte, len("\r\n"))) // the end of the chunk
				require.NoError(t, err)
				after = "after 6"
			}
			other := asks{client: c}.listen(t, "?cursor=6").begins(t)
			begun := time.Now()
			for seq := range int64(100) {
				p.send(someMail(100 + seq))
				other.hears(t, event(fmt.Sprint(100+seq), "task.assigned", strings.Replace(mailText, `"seq":7`, fmt.Sprintf(`"seq":%d`, 100+seq), 1)))
			}
			require.Zero(t, time.Since(begun), "it has waited for nobody")
			<-time.After(patience + time.Second)
			rest, err := io.ReadAll(conn)
			require.NoError(t, err, "it has been left")
			require.NotContains(t, string(rest), `"seq":101`)
			p.send(someMail(300))
			other.hears(t, streamIdles) // it has not read for a while either, but not too long
			other.hears(t, event("300", "task.assigned", strings.Replace(mailText, `"seq":7`, `"seq":300`, 1)))
			synctest.Wait() // the rest of its response is on the way
			other.leave()
			synctest.Wait()
			require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
			for _, word := range []string{"[WARN]", "was too slow", `reader="agent coder"`, "actor=W:1", "patience=30s", "it can resume " + after} {
				require.Contains(t, said.String(), word)
			}
		})
	}
}

// oneByOne reads a byte at a time, so that no byte is read ahead.
type oneByOne struct{ io.Reader }

func (o *oneByOne) Read(p []byte) (int, error) { return o.Reader.Read(p[:min(1, len(p))]) }

// TestMailForOneWhoIsSlow checks that a slow reader is not cut off.
//
// Rows: E-09.
func TestMailForOneWhoIsSlow(t *testing.T) {
	p := newPost()
	m := someMail(7)
	m.Payload = wire.Raw(`{"x":"` + strings.Repeat("x", 10*maxAtOnce) + `"}`)
	p.send(m)
	visitAsOperator(t, mailDoor(p), func(t *testing.T, c *http.Client, _ *pipes) {
		begun := time.Now()
		stream := asks{client: c}.listen(t, "").begins(t)
		for want := event("7", "task.assigned", strings.Replace(mailText, `{"n":1.50}`, string(m.Payload), 1)); want != ""; {
			part := min(len(want), maxAtOnce)
			stream.hears(t, want[:part])
			want = want[part:]
			<-time.After(patience / 2)
		}
		require.Greater(t, time.Since(begun), 4*patience)
		stream.leave()
	})
}

// TestMailThatCannotBeRead checks that a stream is cut off when the mail cannot be read, and
// that the reason is logged.
func TestMailThatCannotBeRead(t *testing.T) {
	var said bytes.Buffer
	p := newPost()
	d := mailDoor(p)
	visitAsOperator(t, d, func(t *testing.T, c *http.Client, _ *pipes) {
		d.Log = hclog.New(&hclog.LoggerOptions{Output: &said})
		stream := asks{client: c}.listen(t, "?actor=GO").begins(t)
		p.breaks(errors.New("the record is broken"))
		_, err := stream.rest()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Contains(t, said.String(), "the record is broken")
		require.Contains(t, said.String(), "actor=GO")
	})
}

// TestMailOfOthers checks that no mail is sent before the reader is known to be allowed.
//
// Rows: E-32, T-35.
func TestMailOfOthers(t *testing.T) {
	h := buildHub(t, nil)
	h.post.refuse = &wire.Error{Code: wire.CodeDenied, Message: "not yours", Details: map[string]any{"pointer": "/payload/actor"}}
	response, text := h.ask(t, h.as(withToken("far")), http.MethodGet, "/api/sse/events?actor=GO", "")
	require.Equal(t, "/actor", requireRefused(t, response, text, http.StatusForbidden, wire.CodeDenied))
	require.Empty(t, h.door.readers.open, "and none of it counts as open")
}

// TestMailEndsWithTheServer checks that streams end with the server, which does not wait for
// them.
//
// Rows: E-08.
func TestMailEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost()
		d := mailDoor(p)
		d.Log = hclog.NewNullLogger()
		way := newPipes(identity.Caller{Kind: identity.Operator, Wide: true})
		shut := serve(d, way)
		transport := &http.Transport{DialContext: way.dial}
		stream := asks{client: &http.Client{Transport: transport}}.listen(t, "").begins(t)
		begun, over := time.Now(), make(chan struct{})
		go func() {
			defer close(over)
			shut()
		}()
		text, err := stream.rest()
		require.NoError(t, err)
		require.Empty(t, text)
		<-over
		require.Less(t, time.Since(begun), time.Second)
		<-p.left
		transport.CloseIdleConnections()
	})
	require.Equal(t, context.Background(), closing(t.Context()), "what no server answers does not end with one")
}

// someMail returns a message to HO:far.
func someMail(seq int64) mail.Message {
	return mail.Message{Seq: seq, From: "GO", To: "HO:far", Topic: "task.assigned", Payload: wire.Raw(`{"n":1.50}`), CreatedAt: morning}
}

const mailText = `{"seq":7,"from_actor":"GO","to_actor":"HO:far","topic":"task.assigned","payload":{"n":1.50},"reply_to":null,"created_at":"` + morning + `"}`

// post is the mail of all actors in memory. Every reader gets all of it.
type post struct {
	mu     sync.Mutex
	mail   []mail.Message
	news   chan struct{} // closed when there is more; nil: no reader waits
	opened []opening
	refuse error // to open
	fail   error // to read
	left   chan struct{}
}

// opening is a call that opened the mail.
type opening struct {
	from   identity.Caller
	actor  string
	cursor any // nil or a number
}

func newPost() *post { return &post{left: make(chan struct{}, 1000)} }

// send adds messages.
func (p *post) send(mail ...mail.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mail = append(p.mail, mail...)
	if p.news != nil {
		close(p.news)
		p.news = nil
	}
}

// breaks makes all reading fail.
func (p *post) breaks(err error) {
	p.mu.Lock()
	p.fail = err
	p.mu.Unlock()
	p.send()
}

func (p *post) open(ctx context.Context, from identity.Caller, actor string, cursor *int64) (func(context.Context) ([]mail.Message, error), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := opening{from: lasting(from), actor: actor}
	reader := &postReader{post: p}
	if cursor != nil {
		o.cursor, reader.last = *cursor, *cursor
	}
	p.opened = append(p.opened, o)
	if p.refuse != nil {
		return nil, p.refuse
	}
	context.AfterFunc(ctx, func() { p.left <- struct{}{} })
	return reader.Next, nil
}

// taken returns the openings since its last call.
func (p *post) taken() []opening {
	p.mu.Lock()
	defer p.mu.Unlock()
	opened := p.opened
	p.opened = nil
	return opened
}

type postReader struct {
	post *post
	last int64
}

func (r *postReader) Next(ctx context.Context) ([]mail.Message, error) {
	for {
		found, news, err := r.look()
		if len(found) > 0 || err != nil {
			return found, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *postReader) look() (found []mail.Message, news chan struct{}, err error) {
	r.post.mu.Lock()
	defer r.post.mu.Unlock()
	for _, m := range r.post.mail {
		if m.Seq > r.last {
			found, r.last = append(found, m), m.Seq
		}
	}
	if r.post.news == nil { // made by the reader, so that a bubble can wait for it
		r.post.news = make(chan struct{})
	}
	return found, r.post.news, r.post.fail
}

func withToken(actor string) http.Header {
	return http.Header{"Authorization": {"Bearer orc_c_" + actor}}
}

// listener reads a stream of mail.
type listener struct {
	response *http.Response
	in       *bufio.Reader
}

// listen opens a stream.
func (a asks) listen(t *testing.T, query string) *listener {
	t.Helper()
	base := a.url
	if base == "" {
		base = "http://x"
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/sse/events"+query, nil)
	require.NoError(t, err)
	for name, values := range a.header {
		request.Header[name] = values
	}
	response, err := a.client.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return &listener{response: response, in: bufio.NewReader(response.Body)}
}

// hears requires that want comes next, byte for byte.
func (l *listener) hears(t *testing.T, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(l.in, got)
	require.Equal(t, want, string(got[:n]))
	require.NoError(t, err)
}

// begins requires the beginning of a stream.
func (l *listener) begins(t *testing.T) *listener {
	t.Helper()
	require.Equal(t, http.StatusOK, l.response.StatusCode)
	l.hears(t, streamBegins)
	return l
}

// rest returns the rest of the stream, and how it ended.
func (l *listener) rest() (string, error) {
	text, err := io.ReadAll(l.in)
	return string(text), err
}

func (l *listener) leave() { _ = l.response.Body.Close() }

// event returns a message as an event of a stream.
func event(seq, topic, data string) string {
	return strings.Join([]string{"id: " + seq, "event: " + topic, "data: " + data, "", ""}, "\n")
}
