package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tests of messages between agents, people and the orchestrator, with the real program. The
// agents are puppets: real processes whose stdout the test writes, byte for byte, and whose
// stdin it reads.

// A theatre is a stage whose agents are puppets.
type theatre struct {
	*stage
	doors map[string]*net.UnixListener
}

// troupe makes a theatre. The command of a puppet in the configuration is ["puppet", "NAME"],
// where NAME is the socket of the test.
func troupe(t *testing.T, hcl string, names ...string) *theatre {
	t.Helper()
	h := &theatre{stage: newStage(t, hcl), doors: make(map[string]*net.UnixListener)}
	for _, name := range names {
		door, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.path(name), Net: "unix"})
		require.NoError(t, err)
		t.Cleanup(func() { _ = door.Close() })
		h.doors[name] = door
	}
	return h
}

// puppets returns the configuration of puppets with the default role.
func puppets(names ...string) string {
	hcl := quick
	for _, name := range names {
		hcl += fmt.Sprintf("\nagent %q {\n  command = [\"puppet\", %q]\n}\n", name, name)
	}
	return hcl
}

// An actor is one run of a puppet.
type actor struct {
	t    *testing.T
	name string
	pid  int
	run  string
	conn *net.UnixConn
	code *net.UnixConn

	mu      sync.Mutex
	said    int // ids so far
	heard   []string
	read    []message     // the decoded part of heard
	changed chan struct{} // closed when there is a new line, or the stream has ended
	ended   bool
}

// enter waits for the next run of a puppet.
func (t *theatre) enter(name string) *actor {
	t.t.Helper()
	a := &actor{t: t.t, name: name, changed: make(chan struct{})}
	door := t.doors[name]
	require.NoError(t.t, door.SetDeadline(time.Now().Add(patience)))
	var err error
	a.conn, err = door.AcceptUnix()
	require.NoError(t.t, err, "%s does not enter", name)
	a.code, err = door.AcceptUnix()
	require.NoError(t.t, err)
	_, err = fmt.Fscan(a.code, &a.pid, &a.run)
	require.NoError(t.t, err)
	listened := make(chan struct{})
	go func() { // ends with the puppet
		defer close(listened)
		a.listen()
	}()
	t.t.Cleanup(func() {
		_, _ = a.conn.Close(), a.code.Close()
		<-listened
	})
	return a
}

// cast starts the orchestrator and waits for its puppets, in their order.
func (t *theatre) cast(names ...string) []*actor {
	t.t.Helper()
	t.up("--json")
	var all []*actor
	for _, name := range names {
		all = append(all, t.enter(name))
	}
	return all
}

// listen stores the lines that arrive on the puppet's stdin.
func (a *actor) listen() {
	in := bufio.NewReaderSize(a.conn, 1<<20)
	for {
		line, err := in.ReadString('\n')
		a.mu.Lock()
		if line != "" {
			a.heard = append(a.heard, strings.TrimSuffix(line, "\n"))
		}
		a.ended = err != nil
		close(a.changed)
		a.changed = make(chan struct{})
		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// say prints bytes unchanged.
func (a *actor) say(text string) {
	a.t.Helper()
	_, err := io.WriteString(a.conn, text)
	require.NoError(a.t, err)
}

// exit ends the puppet after all its output is printed.
func (a *actor) exit(code byte) {
	a.t.Helper()
	_, err := a.code.Write([]byte{code})
	require.NoError(a.t, err)
	require.NoError(a.t, a.conn.CloseWrite())
}

// die kills the puppet.
func (a *actor) die() { require.NoError(a.t, syscall.Kill(a.pid, syscall.SIGKILL)) }

// A message is a line from the orchestrator.
type message struct {
	Type          string          `json:"type"`
	ID            string          `json:"id"`
	CorrelationID json.RawMessage `json:"correlationId"`
	Timestamp     string          `json:"timestamp"`
	Payload       json.RawMessage `json:"payload"`
	Error         *refusal        `json:"error"`

	keys    []string
	line    string
	request *string // the id that it answers; nil if none
}

// to reports whether a message answers a request.
func (m *message) to(id string) bool { return m.request != nil && *m.request == id }

type refusal struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// all returns the messages so far. Every line must be a message.
func (a *actor) all() []message {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.messages()
}

// messages decodes new lines and returns all messages. The caller holds the lock.
func (a *actor) messages() []message {
	a.t.Helper()
	for _, line := range a.heard[len(a.read):] {
		a.read = append(a.read, heardAs(a.t, line))
	}
	return a.read[:len(a.read):len(a.read)]
}

func heardAs(t *testing.T, line string) message {
	t.Helper()
	m := message{line: line}
	require.NoError(t, json.Unmarshal([]byte(line), &m), "%.300q", line)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(line), &members))
	for key := range members {
		m.keys = append(m.keys, key)
	}
	slices.Sort(m.keys)
	_ = json.Unmarshal(m.CorrelationID, &m.request) // "undefined" is not an id
	return m
}

// look returns the messages so far, a channel that is closed at the next change, and whether the
// stream has ended.
func (a *actor) look() (messages []message, changed <-chan struct{}, ended bool) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.messages(), a.changed, a.ended
}

// wait waits for a message for which fits returns true, and returns the first.
func (a *actor) wait(what string, fits func(*message) bool) message {
	a.t.Helper()
	late := time.After(patience)
	for seen := 0; ; {
		messages, changed, ended := a.look()
		for i := range messages[seen:] {
			if m := &messages[seen+i]; fits(m) {
				return *m
			}
		}
		seen = len(messages)
		require.False(a.t, ended, "%s has heard no %s", a.name, what)
		select {
		case <-changed:
		case <-late:
			require.Fail(a.t, a.name+" does not hear "+what)
		}
	}
}

// answer waits for the answer to a request.
func (a *actor) answer(id string) message {
	a.t.Helper()
	return a.wait("answer to "+id, func(m *message) bool { return m.to(id) })
}

// answers returns the answers to one request so far.
func (a *actor) answers(id string) (found []message) {
	a.t.Helper()
	for _, m := range a.all() {
		if m.to(id) {
			found = append(found, m)
		}
	}
	return found
}

// notices returns the notices of one kind so far.
func (a *actor) notices(kind string) (found []message) {
	a.t.Helper()
	for _, m := range a.all() {
		if m.Type == "notify:"+kind {
			found = append(found, m)
		}
	}
	return found
}

const noon = "2026-11-21T14:00:00Z"

// request sends a request and returns its id.
func (a *actor) request(operation, payload string) string {
	a.t.Helper()
	a.mu.Lock()
	a.said++
	id := fmt.Sprintf("req-%s-%d", a.name, a.said)
	a.mu.Unlock()
	a.say(asking(id, operation, payload) + "\n")
	return id
}

// asking returns a request.
func asking(id, operation, payload string) string {
	return fmt.Sprintf(`{"type":"request:%s","id":%q,"timestamp":"%s","payload":%s}`, operation, id, noon, payload)
}

// telling returns an event.
func telling(id, name, payload string) string {
	return fmt.Sprintf(`{"type":"event:%s","id":%q,"timestamp":"%s","payload":%s}`, name, id, noon, payload)
}

// granted sends a request that must succeed, and decodes the payload of the answer into v.
func (a *actor) granted(v any, operation, payload string) message {
	a.t.Helper()
	m := a.answer(a.request(operation, payload))
	require.Nil(a.t, m.Error, "%s", m.line)
	require.Equal(a.t, "response:success", m.Type)
	if v != nil {
		require.NoError(a.t, json.Unmarshal(m.Payload, v))
	}
	return m
}

// refused sends a request that must be refused.
func (a *actor) refused(code, operation, payload string) *refusal {
	a.t.Helper()
	m := a.answer(a.request(operation, payload))
	require.NotNil(a.t, m.Error, "%s", m.line)
	require.Equal(a.t, code, m.Error.Code, "%s", m.line)
	return m.Error
}

// quiet waits until all earlier output of the puppet was processed. It sends a request and waits
// for the answer.
func (a *actor) quiet() {
	a.t.Helper()
	a.granted(nil, "query-agents", `{}`)
}

// aTask is a task as agents receive it.
type aTask struct {
	ID, Name, Type, Status, State, Error, Reason string
	RequiredRole, AssignedTo                     *string
	SubmittedBy                                  string
	Dependencies, RequiredCapabilities           []string
	Progress                                     float64
	Message                                      string
	Attempts                                     int
	Result, Payload                              json.RawMessage
}

// submit submits a task and returns it.
func (a *actor) submit(payload string) aTask {
	a.t.Helper()
	var reply struct{ Task aTask }
	a.granted(&reply, "submit-task", payload)
	return reply.Task
}

func (a *actor) task(id string) aTask {
	a.t.Helper()
	var reply struct{ Task aTask }
	a.granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task
}

// assigned waits until the puppet is notified of a task.
func (a *actor) assigned(id string) message {
	a.t.Helper()
	return a.wait("notice of task "+id, func(m *message) bool {
		return m.Type == "notify:task-assigned" && strings.Contains(string(m.Payload), id)
	})
}

// door returns a client of the orchestrator's socket.
func (s *stage) door() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.state(), "api.sock"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}
}

// operate sends a request to the API, as an operator or with a key.
func (s *stage) operate(operation, payload string, key ...string) (status int, body []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://orchestrator/api/v1/operations/"+operation, strings.NewReader(payload))
	require.NoError(s.t, err)
	if len(key) > 0 {
		r.Header.Set("X-API-Key", key[0])
	}
	answer, err := s.door().Do(r)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, bytes.TrimSpace(body)
}

// operated sends a request to the API that must succeed.
func (s *stage) operated(v any, operation, payload string) {
	s.t.Helper()
	status, body := s.operate(operation, payload)
	require.Equal(s.t, http.StatusOK, status, "%s", body)
	if v != nil {
		require.NoError(s.t, json.Unmarshal(body, v))
	}
}
