package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A source has events for a Notifier.
type source struct {
	mu    sync.Mutex
	all   []wire.Event
	grown chan struct{}
}

func (s *source) add(kind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, wire.Event{Seq: int64(len(s.all) + 1), At: "2026-11-21T14:00:00.000Z", Kind: kind, Agent: "coder", Text: text})
	close(s.grown)
	s.grown = make(chan struct{})
}

func (s *source) events(ctx context.Context, since int64, send func(wire.Event) error) error {
	for {
		s.mu.Lock()
		found, grown := s.all[since:], s.grown
		s.mu.Unlock()
		for _, e := range found {
			if err := send(e); err != nil {
				return err
			}
			since = e.Seq
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); !what(); <-again.C {
		require.True(t, time.Now().Before(end))
	}
}

func newSource() *source { return &source{grown: make(chan struct{})} }

// A receiver is a webhook.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []Message
	bodies [][]byte
	signed []string
	asked  int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		if r.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(r.status)
		if r.status == http.StatusOK {
			var m Message
			_ = json.Unmarshal(body, &m)
			r.got, r.bodies, r.signed = append(r.got, m), append(r.bodies, body), append(r.signed, q.Header.Get(SignatureHeader))
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *receiver) texts() (texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.got {
		texts = append(texts, m.Text)
	}
	return texts
}

func options(s *source, dir string) Options {
	return Options{Team: "shop", On: []string{"question", "failed", "done"}, Dir: dir, Events: s.events, Log: hclog.NewNullLogger()}
}

// The webhook gets each message once, signed and in order, also when a Notifier ends and another continues.
func TestWebhook(t *testing.T) {
	t.Parallel()
	s, r := newSource(), newReceiver(t)
	o := options(s, t.TempDir())
	o.URL, o.Key = r.URL+"/hook", "key"
	n := Start(o)
	s.add(events.TaskStarted, "is nothing")
	s.add(events.QuestionAsked, "Which \x1b[31mport?\nAnd why?")
	s.add(events.AgentLimited, "is not wanted")
	waitFor(t, func() bool { return len(r.texts()) == 1 })
	r.answer(http.StatusServiceUnavailable)
	s.add(events.TaskFailed, "fails")
	waitFor(t, func() bool { return r.attempts() >= 2 })
	n.Close()

	s.add(events.TaskDone, "is done")
	r.answer(http.StatusOK)
	o.Latest = int64(len(s.all))
	n = Start(o)
	waitFor(t, func() bool { return len(r.texts()) == 3 })
	n.Close()
	require.Equal(t, []string{"Question, coder: Which port? And why?", "Failed, coder: fails", "Done, coder: is done"}, r.texts())
	for i, body := range r.bodies {
		require.Equal(t, "sha256="+Sign("key", body), r.signed[i])
	}
	require.NotEqual(t, r.got[0].ID, r.got[1].ID)
}

// The next Notifier sends the notifications that are left when a Notifier ends, and none is sent
// twice.
func TestNextNotifier(t *testing.T) {
	t.Parallel()
	s, r := newSource(), newReceiver(t)
	o := options(s, t.TempDir())
	o.URL = r.URL
	var mu sync.Mutex
	var told []string
	o.Command = func(_ context.Context, text string, _ []byte) error {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
		return nil
	}
	placed := func(want string) bool {
		text, _ := os.ReadFile(filepath.Join(o.Dir, "notify-place"))
		return string(text) == want
	}
	n := Start(o)
	s.add(events.TaskFailed, "first")
	waitFor(t, func() bool { return n.told.Load() == 1 && placed("1") })
	n.Close()
	now := time.Now()
	quiet := o
	quiet.Latest, quiet.Told = int64(len(s.all)), n.Told()
	quiet.From, quiet.To = time.Duration(now.Hour())*time.Hour, time.Duration((now.Hour()+23)%24)*time.Hour
	n = Start(quiet)
	s.add(events.TaskFailed, "second")
	waitFor(t, func() bool { return n.waiting.Load() == 1 })
	n.Close()
	o.Latest, o.Told = int64(len(s.all)), n.Told()
	n = Start(o)
	waitFor(t, func() bool { return n.told.Load() == 2 && placed("2") })
	n.Close()
	require.Equal(t, []string{"Failed, coder: first", "Failed, coder: second"}, told)
	require.Equal(t, told, r.texts())
	require.Equal(t, o.Latest, n.Told())
}

// A message that is refused is a dead letter, and those behind it are delivered. Redirects are not followed.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s, r := newSource(), newReceiver(t)
	dir := t.TempDir()
	o := options(s, dir)
	o.URL = r.URL + "/secret-path"
	var said strings.Builder
	var mu sync.Mutex
	o.Log = hclog.New(&hclog.LoggerOptions{Output: writer(func(b []byte) { mu.Lock(); said.Write(b); mu.Unlock() })})
	n := Start(o)
	for i, status := range []int{http.StatusFound, http.StatusGone} {
		r.answer(status)
		s.add(events.TaskFailed, http.StatusText(status))
		waitFor(t, func() bool { all, _ := ReadDead(dir); return len(all) == i+1 })
	}
	r.answer(http.StatusOK)
	s.add(events.TaskDone, "is done")
	waitFor(t, func() bool { return len(r.texts()) == 1 })
	n.Close()
	require.Equal(t, 3, r.attempts())
	mu.Lock()
	require.Contains(t, said.String(), "cannot be delivered")
	require.NotContains(t, said.String(), "secret-path")
	mu.Unlock()

	all, err := ReadDead(dir)
	require.NoError(t, err)
	require.Equal(t, "it is refused: HTTP 302", all[0].Error)
	require.Contains(t, string(all[1].Message), "Gone")
	require.NoError(t, RemoveDead(dir, all[0]))
	left, err := ReadDead(dir)
	require.NoError(t, err)
	require.Equal(t, all[1:], left)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "notify-dead.jsonl"), []byte(`{"at":"half`), 0o600))
	require.NoError(t, AddDead(dir, all[0]))
	left, err = ReadDead(dir)
	require.NoError(t, err)
	require.Equal(t, all[:1], left, "half a line of a full disk is passed over")
	large := Dead{At: "x", Message: wire.Raw(`"` + strings.Repeat("x", 1<<20) + `"`)}
	for range 6 {
		require.NoError(t, AddDead(dir, large))
	}
	info, err := os.Stat(filepath.Join(dir, "notify-dead.jsonl"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(maxDead))
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// Errors of unreachable receivers never name the URL.
func TestSenderKeepsSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://127.0.0.1:1/secret", "https://h\x7f/secret", "http://127.0.0.1:1/secret?x=secret"} {
		err := NewSender(url, "").Send(t.Context(), "id", nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, NewSender(url, "").Where(), "secret")
	}
}

// Messages that come while the command runs are sent together. A hundred make one text.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := newSource()
	o := options(s, t.TempDir())
	told, goOn := make(chan string), make(chan struct{})
	o.Command = func(ctx context.Context, text string, document []byte) error {
		require.True(t, json.Valid(document))
		select {
		case told <- text:
		case <-ctx.Done():
			return ctx.Err()
		}
		<-goOn
		return nil
	}
	n := Start(o)
	s.add(events.QuestionAsked, "first")
	require.Equal(t, "Question, coder: first", <-told)
	for range 100 {
		s.add(events.TaskDone, "is done")
	}
	waitFor(t, func() bool { return n.waiting.Load() == 101 })
	close(goOn)
	require.Equal(t, "Done, coder: is done (and 99 more: 100 done)", <-told)
	n.Close()
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		when, err := time.Parse("2006-01-02 15:04", text)
		require.NoError(t, err)
		return when
	}
	const night, morning = 22 * time.Hour, 7 * time.Hour
	require.Equal(t, at("2026-11-22 07:00"), Quiet(at("2026-11-21 22:00"), night, morning))
	require.Equal(t, at("2026-11-21 07:00"), Quiet(at("2026-11-21 06:59"), night, morning))
	require.True(t, Quiet(at("2026-11-21 07:00"), night, morning).IsZero())
	require.True(t, Quiet(at("2026-11-21 21:59"), night, morning).IsZero())
	require.Equal(t, at("2026-11-21 22:00"), Quiet(at("2026-11-21 12:00"), morning, night))
	require.True(t, Quiet(at("2026-11-21 23:00"), morning, night).IsZero())
	require.True(t, Quiet(at("2026-11-21 23:00"), 0, 0).IsZero())
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TERM": "xterm-256color"}
	asks := &wire.Event{Kind: events.QuestionAsked, Agent: "coder", Text: "Which;\x07port?"}
	signal := func(t *Terminal) string {
		t.On, t.Getenv = []string{"question"}, func(name string) string { return env[name] }
		return t.Signal(asks)
	}
	require.Empty(t, signal(&Terminal{}))
	require.Equal(t, "\a", signal(&Terminal{Bell: true}))
	require.Equal(t, "\x1b]9;Question, coder: Which;\\x07port?\x1b\\\a", signal(&Terminal{Bell: true, OSC: true}))
	env["VTE_VERSION"] = "7000"
	require.Equal(t, "\x1b]777;notify;orchestrator;Question, coder: Which,\\x07port?\x1b\\", signal(&Terminal{OSC: true}))
	env["TMUX"] = "x"
	require.Contains(t, signal(&Terminal{OSC: true}), "\x1bPtmux;\x1b\x1b]777")
	often := &Terminal{Bell: true}
	require.Equal(t, "\a", signal(often))
	require.Empty(t, signal(often), "once a second")
	require.Empty(t, often.Signal(&wire.Event{Kind: events.TaskDone}))
	clock := time.Duration(time.Now().Hour()) * time.Hour
	require.Empty(t, signal(&Terminal{Bell: true, From: clock, To: (clock + 2*time.Hour) % (24 * time.Hour)}), "quiet hours")
}
