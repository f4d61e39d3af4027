package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// TestStreamsEndWithTheirToken checks that a stream sends no more after its token was revoked, and
// is cut off when its token expires.
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
				d.Signer.Tokens = issued(func(string) bool { return !revoked.Load() })
				d.Lists = map[string]List{"events": linesOf(next)}
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

// TestMailEndsWithItsCredential checks that a stream sends no more after its credential became
// invalid, and that an idle stream ends too.
//
// Rows: E-05, E-77, K-18.
func TestMailEndsWithItsCredential(t *testing.T) {
	for name, test := range map[string]struct {
		credential string // "": a token of ann
		ttl        time.Duration
		over       bool // the stream ends by itself
	}{
		"an actor's token is void":              {credential: "orc_actor"},
		"an actor's token is another's":         {credential: "orc_moved"},
		"an actor's token is an agent's":        {credential: "orc_turned"},
		"an agent's key is void":                {credential: "orc_agent"},
		"an agent's key is another's":           {credential: "orc_given"},
		"an operator's token is revoked":        {ttl: time.Hour},
		"the time of an operator's token comes": {ttl: 50*time.Second - leeway, over: true},
	} {
		for _, mail := range []bool{false, true} {
			var void atomic.Bool
			p := newPost()
			d := mailDoor(p)
			fakeOf(d).agent = func(key string) (agent string, ok bool) {
				switch {
				case key == "orc_given" && void.Load():
					return "reviewer", true
				case key == "orc_given":
					return "coder", true
				case key == "orc_turned":
					return "HO:far", void.Load()
				}
				return "coder", key == "orc_agent" && !void.Load()
			}
			fakeOf(d).actor = func(token string) (id string, ok bool) {
				if token == "orc_moved" && void.Load() {
					return "HO:near", true
				}
				return "HO:far", token == "orc_moved" || token == "orc_turned" || token == "orc_actor" && !void.Load()
			}
			d.Signer = signer(t)
			d.Signer.Tokens = issued(func(string) bool { return !void.Load() || test.over })
			visitAs(t, identity.Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
				credential := test.credential
				if credential == "" {
					var err error
					credential, err = d.Signer.Sign(Claims{ID: "t", Subject: "ann", Role: wire.PersonViewer, ExpiresAt: time.Now().Add(test.ttl)})
					require.NoError(t, err)
				}
				begun := time.Now()
				stream := asks{client: c, header: http.Header{"Authorization": {"Bearer " + credential}}}.listen(t, "").begins(t)
				stream.hears(t, streamIdles)
				p.send(someMail(7))
				stream.hears(t, event("7", "task.assigned", mailText))
				void.Store(true)
				if mail && !test.over {
					p.send(someMail(8))
				}
				text, err := stream.rest()
				require.NoError(t, err)
				switch {
				case test.over:
					require.Equal(t, 50*time.Second, time.Since(begun), name)
					require.Equal(t, streamIdles+streamIdles, text, "%s: until then it was told", name)
				case mail:
					require.Empty(t, text, name)
					require.Equal(t, keepAlive, time.Since(begun), "%s: at once", name)
				default:
					require.Empty(t, text, name)
					require.Equal(t, 2*keepAlive, time.Since(begun), "%s: with the next sign of life", name)
				}
				synctest.Wait()
				require.Empty(t, d.readers.open)
			})
		}
	}
}

// TestLinesEndWithTheirKey checks that a stream of lines to a server ends with the server's key.
func TestLinesEndWithTheirKey(t *testing.T) {
	var void atomic.Bool
	lines := make(chan string, 1)
	h := build(t, func(d *API) {
		fakeOf(d).agent = func(key string) (name string, ok bool) { return "coder", key == "orc_coder" && !void.Load() }
		d.Streams = map[string]Stream{"query-tasks": func(_ context.Context, _ []byte, send func(any) error) error {
			for line := range lines {
				if err := send(line); err != nil {
					return err
				}
			}
			return nil
		}}
	}, TCP{})
	lines <- "first"
	request, err := http.NewRequest(http.MethodPost, h.tcp.URL()+"/api/v1/operations/query-tasks", nil)
	require.NoError(t, err)
	request.Header.Set("X-API-Key", "orc_coder")
	response, err := over("").Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	first := make([]byte, len("\"first\"\n"))
	_, err = io.ReadFull(response.Body, first)
	require.NoError(t, err)
	void.Store(true)
	lines <- "second"
	_, err = response.Body.Read(make([]byte, 1))
	require.Error(t, err)
}

// TestMailEndsWithItsRun checks that a stream ends with its run, over its socket and over TCP.
//
// Rows: E-08, K-18.
func TestMailEndsWithItsRun(t *testing.T) {
	h := buildHub(t, nil)
	for _, way := range []string{"socket", "token"} {
		env, end := h.run(t, "run-"+way)
		by := asks{client: over(env[EnvSocket])}
		if way == "token" {
			by = h.as(http.Header{"X-Api-Key": {env[EnvToken]}})
		}
		stream := by.listen(t, "").begins(t)
		require.Equal(t, []opening{{from: identity.Caller{Kind: identity.Agent, Name: "coder", Run: "run-" + way}}}, h.post.taken())
		end()
		text, _ := stream.rest()
		require.Empty(t, text)
		<-h.post.left
	}
}

// TestMailForTooManyReaders checks that a caller may have a limited number of open streams, and
// that other callers are not affected.
//
// Rows: E-08, K-06.
func TestMailForTooManyReaders(t *testing.T) {
	p := newPost()
	d := mailDoor(p)
	var noted []string
	fakeOf(d).note = func(r identity.Request, err *wire.Error) {
		if r.Stage == "" {
			noted = append(noted, displayName(r.From)+" "+r.Operation+" "+string(err.Code))
		}
	}
	fakeOf(d).actor = func(token string) (id string, ok bool) { return token[len(KeyPrefix):], true }
	visitAs(t, identity.Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
		by := func(actor string) asks {
			return asks{client: c, header: http.Header{"X-Api-Key": {KeyPrefix + actor}}}
		}
		var open []*listener
		for range maxReaders {
			open = append(open, by("a").listen(t, "").begins(t))
		}
		p.taken()
		for range 2 {
			response, text := by("a").do(t, http.MethodGet, "/api/sse/events", "")
			requireRefused(t, response, text, http.StatusTooManyRequests, wire.CodeLimited)
			require.Equal(t, busPause, response.Header.Get("Retry-After"))
			require.Contains(t, text, "actor a has 16 streams open")
		}
		require.Empty(t, p.taken(), "nobody is asked for their mail")
		require.Equal(t, []string{"actor a follow-messages limited", "actor a follow-messages limited"}, noted)
		open = append(open, by("b").listen(t, "").begins(t))

		open[0].leave()
		synctest.Wait()
		open = append(open, by("a").listen(t, "").begins(t))
		response, _ := by("a").do(t, http.MethodGet, "/api/sse/events", "")
		require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
		for _, stream := range open {
			stream.leave()
		}
		synctest.Wait()
		require.Empty(t, d.readers.open, "who has none is forgotten")
	})
}

func TestReadersAreCounted(t *testing.T) {
	var s readers
	full := func(c identity.Caller) (leave func()) {
		for range maxReaders {
			var refusal *wire.Error
			leave, refusal = s.enter(c, maxReaders)
			require.Nil(t, refusal)
		}
		_, refusal := s.enter(c, maxReaders)
		require.NotNil(t, refusal)
		return leave
	}
	leave := full(identity.Caller{Kind: identity.Agent, Name: "a", Run: "1"})
	full(identity.Caller{Kind: identity.Agent, Name: "a", Run: "2"})
	full(identity.Caller{Kind: identity.Agent, Name: "a"})
	full(identity.Caller{Kind: identity.Operator, Name: "a"})
	leave()
	_, refusal := s.enter(identity.Caller{Kind: identity.Agent, Name: "a", Run: "1", Via: `,"credential":"k1"`}, maxReaders)
	require.Nil(t, refusal, "whichever of its credentials it shows")
}

// linesOf returns a list with lines from a channel. It ends with its request.
func linesOf(next <-chan string) List {
	return func(ctx context.Context, _ url.Values, send func(any) error) error {
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
	}
}
