package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// someMail returns a message to HO:far.
func someMail(seq int64) wire.Mail {
	return wire.Mail{Seq: seq, From: "GO", To: "HO:far", Topic: "task.assigned", Payload: wire.Raw(`{"n":1.50}`), CreatedAt: morning}
}

const mailText = `{"seq":7,"from_actor":"GO","to_actor":"HO:far","topic":"task.assigned","payload":{"n":1.50},"reply_to":null,"created_at":"` + morning + `"}`

// post is the mail of all actors in memory. Every reader gets all of it.
type post struct {
	mu     sync.Mutex
	mail   []wire.Mail
	news   chan struct{} // closed when there is more; nil: no reader waits
	opened []opening
	refuse error // to open
	fail   error // to read
	left   chan struct{}
}

// opening is a call that opened the mail.
type opening struct {
	from   Caller
	actor  string
	cursor any // nil or a number
}

func newPost() *post { return &post{left: make(chan struct{}, 1000)} }

// send adds messages.
func (p *post) send(mail ...wire.Mail) {
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

func (p *post) open(ctx context.Context, from Caller, actor string, cursor *int64) (MailReader, error) {
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
	return reader, nil
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

func (r *postReader) Next(ctx context.Context) ([]wire.Mail, error) {
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

func (r *postReader) look() (found []wire.Mail, news chan struct{}, err error) {
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

// hears requires that want is what comes next, byte for byte.
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
