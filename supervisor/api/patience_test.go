package api

import (
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// pipes is a listener with in-memory connections, so that time can be fake.
type pipes struct {
	*Inside
	door listenerInfo
}

func newPipes(c Caller) *pipes { return &pipes{Inside: NewInside(), door: listenerInfo{caller: c}} }

func (p *pipes) entrance() *listenerInfo { return &p.door }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }

// visitAs serves an API to a client in a synctest bubble. The client is the given caller.
func visitAs(t *testing.T, c Caller, d *API, do func(*testing.T, *http.Client, *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		d.MaxBody, d.Log = 1<<20, hclog.NewNullLogger()
		p := newPipes(c)
		shut := serve(d, p)
		transport := &http.Transport{DialContext: p.dial}
		do(t, &http.Client{Transport: transport}, p)
		transport.CloseIdleConnections()
		shut()
	})
}

func visitAsOperator(t *testing.T, d *API, do func(*testing.T, *http.Client, *pipes)) {
	visitAs(t, Caller{Kind: Operator, Wide: true}, d, do)
}

// TestStreamIsSilentForLong checks that a stream that was silent for long ends normally, and so
// does the next request of its connection.
func TestStreamIsSilentForLong(t *testing.T) {
	d := &API{
		Lists: map[string]List{"slow": func(_ context.Context, _ url.Values, send func(any) error) error {
			if err := send(1); err != nil {
				return err
			}
			<-time.After(10 * patience)
			return nil
		}},
		Operations: map[string]Operation{"slow": Do(func(context.Context, struct{}) (any, error) {
			<-time.After(10 * patience)
			return "done", nil
		})},
	}
	visitAsOperator(t, d, func(t *testing.T, c *http.Client, _ *pipes) {
		response, err := c.Get("http://x/api/v1/slow")
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err, "the end of the stream did not arrive")
		require.Equal(t, "1\n", string(text))
		<-time.After(2 * patience)
		for range 2 {
			status, answer := ask(t, c, "slow", "{}")
			require.Equal(t, 200, status)
			require.Equal(t, `"done"`, answer)
			<-time.After(2 * patience)
		}
	})
}

// TestCallerThatTakesNothing checks that a caller that does not read is cut off, even if the
// response is not a stream.
func TestCallerThatTakesNothing(t *testing.T) {
	d := &API{Operations: map[string]Operation{"big": Do(func(context.Context, struct{}) (any, error) {
		return strings.Repeat("x", 1<<20), nil
	})}}
	visitAsOperator(t, d, func(t *testing.T, _ *http.Client, p *pipes) {
		conn, err := p.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST /api/v1/operations/big HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		require.NoError(t, err)
		<-time.After(2 * patience)
		text, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Less(t, len(text), 1<<20, "it was still being written")
	})
}

// TestStreamThatFailsIsCut checks that a failed stream does not look like a complete one.
func TestStreamThatFailsIsCut(t *testing.T) {
	d := &API{Lists: map[string]List{"broken": func(_ context.Context, _ url.Values, send func(any) error) error {
		if err := send(1); err != nil {
			return err
		}
		return io.ErrClosedPipe
	}}}
	visitAsOperator(t, d, func(t *testing.T, c *http.Client, _ *pipes) {
		response, err := c.Get("http://x/api/v1/broken")
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "1\n", string(text))
	})
}

func TestStranger(t *testing.T) {
	for _, test := range []struct {
		uid, self int
		want      bool
	}{{1000, 1000, false}, {0, 1000, false}, {0, 0, false}, {1001, 1000, true}, {1000, 0, true}} {
		require.Equal(t, test.want, stranger(test.uid, test.self), "%+v", test)
	}
}

func TestDial(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	_, err := Dial(t.Context(), socket)
	require.ErrorIs(t, err, fs.ErrNotExist)
	listener, err := Listen(socket)
	require.NoError(t, err)
	defer listener.Close()
	conn, err := Dial(t.Context(), socket)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
