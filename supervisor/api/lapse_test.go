package api

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestStreamsEndWithTheirToken checks that a stream sends nothing after its token was revoked,
// and is cut off when its token expires.
//
// Rows: A-33, K-18.
func TestStreamsEndWithTheirToken(t *testing.T) {
	for _, test := range []struct {
		name string
		ttl  time.Duration
		end  func(revoked *atomic.Bool)
	}{
		{"revoked", time.Hour, func(revoked *atomic.Bool) { revoked.Store(true) }},
		{"over", -leeway + 3*time.Second, func(*atomic.Bool) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var revoked atomic.Bool
			next := make(chan string)
			h := build(t, func(d *API) {
				d.Signer.Revoked = func(string) bool { return revoked.Load() }
				d.Lists = map[string]List{"events": func(ctx context.Context, _ url.Values, send func(any) error) error {
					for {
						select {
						case line := <-next:
							if err := send(line); err != nil {
								return err
							}
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					}
				}}
			}, TCP{})
			token, err := h.door.Signer.Sign(Claims{ID: "t", Subject: "ann", Role: wire.PersonViewer, ExpiresAt: time.Now().Add(test.ttl)})
			require.NoError(t, err)
			request, err := http.NewRequest(http.MethodGet, h.tcp.URL()+"/api/v1/events", nil)
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+token)
			go func() { next <- "first" }()
			response, err := over("").Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			lines := bufio.NewScanner(response.Body)
			require.True(t, lines.Scan())
			require.Equal(t, `"first"`, lines.Text())
			test.end(&revoked)
			go func() {
				select {
				case next <- "second":
				case <-request.Context().Done():
				case <-t.Context().Done():
				}
			}()
			if test.ttl > 0 {
				require.False(t, lines.Scan(), lines.Text())
				return
			}
			for lines.Scan() { // lines before the end may still arrive
			}
			require.Error(t, lines.Err(), "it is cut off, and does not look complete")
		})
	}
}
