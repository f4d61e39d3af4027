package api

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/identity"
)

// lines counts the lines of the audit that requests would have.
type lines struct {
	mu      sync.Mutex
	decided []string
	noted   []identity.Request
	refused []*wire.Error
	more    chan struct{} // has one for each line
}

func (l *lines) decide(operation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decided = append(l.decided, operation)
	l.more <- struct{}{}
}

func (l *lines) note(r identity.Request, refusal *wire.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted = append(l.noted, r)
	l.refused = append(l.refused, refusal)
	l.more <- struct{}{}
}

// count returns the number of lines, and forgets none.
func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.decided) + len(l.noted)
}

// TestEveryRequestHasOneLine asks every route and operation as an operator with a token, as a viewer, as an
// agent and without a credential. Each request has one line in the audit, and a stream has two.
func TestEveryRequestHasOneLine(t *testing.T) {
	var seen *lines
	h := buildHub(t, func(d *API) {
		whole := everything()
		d.Operations, d.Metrics, d.SignIns = whole.Operations, whole.Metrics, whole.SignIns
		one := func(_ context.Context, send func(any) error) error { return send(1) }
		d.Streams = map[string]Stream{"down": func(ctx context.Context, _ []byte, send func(any) error) error { return one(ctx, send) }}
		list := func(ctx context.Context, _ url.Values, send func(any) error) error { return one(ctx, send) }
		d.Lists = map[string]List{"events": list, "logs": list, "messages": list}
		d.Pipes = map[string]Pipe{"pipe": func(_ context.Context, _ url.Values, accept func() (*Conn, error)) error {
			_, err := accept()
			return err
		}}
		d.Pages = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) })
		d.Link = func(string, string, net.Conn, *bufio.Reader) error { return nil }
		d.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
		callers := fakeOf(d)
		callers.note = func(r identity.Request, refusal *wire.Error) { seen.note(r, refusal) }
		callers.ask = func(_ context.Context, _ identity.Caller, operation string, _ []byte) (any, error) {
			seen.decide(operation)
			return nil, nil
		}
		answer := callers.do
		callers.do = func(ctx context.Context, from identity.Caller, operation string, body any) (any, error) {
			seen.decide(operation)
			return answer(ctx, from, operation, body)
		}
	})
	for _, pattern := range patterns(h.door) {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{id}", "t-1", "{dep_id}", "d-1").Replace(path)
		for name, header := range map[string]http.Header{
			"admin":    {"Authorization": {"Bearer " + h.token(t, wire.PersonAdmin)}},
			"viewer":   {"Authorization": {"Bearer " + h.token(t, wire.PersonViewer)}},
			"agent":    {"X-Api-Key": {"orc_a_coder"}},
			"host":     {"X-Api-Key": {"orc_c_far"}},
			"stranger": {},
		} {
			seen = &lines{more: make(chan struct{}, 10)}
			r, err := http.NewRequestWithContext(t.Context(), method, h.tcp.URL()+path, nil)
			require.NoError(t, err)
			r.Header = header.Clone()
			if path == hostlink.Path {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", hostlink.Protocol)
			}
			client := over("")
			response, err := client.Do(r)
			require.NoError(t, err, pattern)
			if response.Header.Get("Content-Type") == inEvents { // it would last for ever
				_ = response.Body.Close()
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			want := 1
			if path == operationsPath+"down" && name == "admin" || response.Header.Get("Content-Type") == inEvents || response.StatusCode == http.StatusSwitchingProtocols {
				want = 2
			}
			for range want {
				select {
				case <-seen.more:
				case <-time.After(patience):
					require.FailNow(t, "a line is missing", "%s by %s", pattern, name)
				}
			}
			require.Equal(t, want, seen.count(), "%s by %s: %v %v", pattern, name, seen.decided, seen.noted)
			for i := range seen.noted {
				n := &seen.noted[i]
				require.Contains(t, n.From.Via, `"address":"127.0.0.1:`, pattern)
				if n.From.Kind != identity.Unknown {
					require.Contains(t, n.From.Via, `"credential":"`, "%s by %s", pattern, name)
				}
				require.Equal(t, response.StatusCode < 400, seen.refused[i] == nil, "%s by %s", pattern, name)
			}
			if want == 2 {
				require.Equal(t, identity.Begin, seen.noted[0].Stage)
				require.Equal(t, identity.End, seen.noted[1].Stage)
			}
		}
	}
}
