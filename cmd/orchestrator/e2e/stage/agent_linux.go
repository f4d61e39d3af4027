package stage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// A Team is a stage whose agents are scripted agents.
type Team struct {
	*Orchestrator
	doors map[string]*net.UnixListener
}

// NewTeam makes a team. The command of a scripted agent in the configuration is ["scripted", "NAME"],
// where NAME is the socket of the test.
func NewTeam(t *testing.T, hcl string, names ...string) *Team {
	t.Helper()
	h := &Team{Orchestrator: New(t, hcl), doors: make(map[string]*net.UnixListener)}
	for _, name := range names {
		door, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.Path(name), Net: "unix"})
		require.NoError(t, err)
		t.Cleanup(func() { _ = door.Close() })
		h.doors[name] = door
	}
	return h
}

// Scripted returns the configuration of scripted agents with the default role.
func Scripted(names ...string) string {
	hcl := QuickStop
	for _, name := range names {
		hcl += fmt.Sprintf("\nagent %q {\n  command = [\"scripted\", %q]\n}\n", name, name)
	}
	return hcl
}

// An Agent is one run of a scripted agent.
type Agent struct {
	T    *testing.T
	Name string
	Pid  int
	Run  string
	Conn *net.UnixConn
	code *net.UnixConn

	Mu      sync.Mutex
	said    int // ids so far
	Heard   []string
	read    []Message     // the decoded part of heard
	Changed chan struct{} // closed when there is a new line, or the stream has ended
	Ended   bool
}

// NextRun waits for the next run of a scripted agent.
func (t *Team) NextRun(name string) *Agent {
	t.T.Helper()
	a := &Agent{T: t.T, Name: name, Changed: make(chan struct{})}
	door := t.doors[name]
	require.NoError(t.T, door.SetDeadline(time.Now().Add(Patience)))
	var err error
	a.Conn, err = door.AcceptUnix()
	require.NoError(t.T, err, "%s does not enter", name)
	a.code, err = door.AcceptUnix()
	require.NoError(t.T, err)
	_, err = fmt.Fscan(a.code, &a.Pid, &a.Run)
	require.NoError(t.T, err)
	listened := make(chan struct{})
	go func() { // ends with the scripted agent
		defer close(listened)
		a.listen()
	}()
	t.T.Cleanup(func() {
		_, _ = a.Conn.Close(), a.code.Close()
		<-listened
	})
	return a
}

// StartAll starts the orchestrator and waits for its scripted agents, in their order.
func (t *Team) StartAll(names ...string) []*Agent {
	t.T.Helper()
	t.Up("--json")
	var all []*Agent
	for _, name := range names {
		all = append(all, t.NextRun(name))
	}
	return all
}

// listen stores the lines that arrive on the scripted agent's stdin.
func (a *Agent) listen() {
	in := bufio.NewReaderSize(a.Conn, 1<<20)
	for {
		line, err := in.ReadString('\n')
		a.Mu.Lock()
		if line != "" {
			a.Heard = append(a.Heard, strings.TrimSuffix(line, "\n"))
		}
		a.Ended = err != nil
		close(a.Changed)
		a.Changed = make(chan struct{})
		a.Mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Say prints bytes unchanged.
func (a *Agent) Say(text string) {
	a.T.Helper()
	_, err := io.WriteString(a.Conn, text)
	require.NoError(a.T, err)
}

// Exit ends the scripted agent after all its output is printed.
func (a *Agent) Exit(code byte) {
	a.T.Helper()
	_, err := a.code.Write([]byte{code})
	require.NoError(a.T, err)
	require.NoError(a.T, a.Conn.CloseWrite())
}

// Kill kills the scripted agent.
func (a *Agent) Kill() { require.NoError(a.T, syscall.Kill(a.Pid, syscall.SIGKILL)) }

// A Message is a line from the orchestrator.
type Message struct {
	Type          string          `json:"type"`
	ID            string          `json:"id"`
	CorrelationID json.RawMessage `json:"correlationId"`
	Timestamp     string          `json:"timestamp"`
	Payload       json.RawMessage `json:"payload"`
	Error         *Refusal        `json:"error"`

	Keys    []string `json:"-"`
	Line    string   `json:"-"`
	request *string  // the id that it answers; nil if none
}

// To reports whether a message answers a request.
func (m *Message) To(id string) bool { return m.request != nil && *m.request == id }

type Refusal struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// All returns the messages so far. Every line must be a message.
func (a *Agent) All() []Message {
	a.T.Helper()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.messages()
}

// messages decodes new lines and returns all messages. The caller holds the lock.
func (a *Agent) messages() []Message {
	a.T.Helper()
	for _, line := range a.Heard[len(a.read):] {
		a.read = append(a.read, Received(a.T, line))
	}
	return a.read[:len(a.read):len(a.read)]
}

func Received(t *testing.T, line string) Message {
	t.Helper()
	m := Message{Line: line}
	require.NoError(t, json.Unmarshal([]byte(line), &m), "%.300q", line)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(line), &members))
	for key := range members {
		m.Keys = append(m.Keys, key)
	}
	slices.Sort(m.Keys)
	_ = json.Unmarshal(m.CorrelationID, &m.request) // "undefined" is not an id
	return m
}

// look returns the messages so far, a channel that is closed at the next change, and whether the
// stream has ended.
func (a *Agent) look() (messages []Message, changed <-chan struct{}, ended bool) {
	a.T.Helper()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.messages(), a.Changed, a.Ended
}

// Wait waits for a message for which fits returns true, and returns the first.
func (a *Agent) Wait(what string, fits func(*Message) bool) Message {
	a.T.Helper()
	late := time.After(Patience)
	for seen := 0; ; {
		messages, changed, ended := a.look()
		for i := range messages[seen:] {
			if m := &messages[seen+i]; fits(m) {
				return *m
			}
		}
		seen = len(messages)
		require.False(a.T, ended, "%s has heard no %s", a.Name, what)
		select {
		case <-changed:
		case <-late:
			require.Fail(a.T, a.Name+" does not hear "+what)
		}
	}
}

// Answer waits for the answer to a request.
func (a *Agent) Answer(id string) Message {
	a.T.Helper()
	return a.Wait("answer to "+id, func(m *Message) bool { return m.To(id) })
}

// Answers returns the answers to one request so far.
func (a *Agent) Answers(id string) (found []Message) {
	a.T.Helper()
	for _, m := range a.All() {
		if m.To(id) {
			found = append(found, m)
		}
	}
	return found
}

// Notices returns the notices of one kind so far.
func (a *Agent) Notices(kind string) (found []Message) {
	a.T.Helper()
	for _, m := range a.All() {
		if m.Type == "notify:"+kind {
			found = append(found, m)
		}
	}
	return found
}

const Noon = "2026-11-21T14:00:00Z"

// Request sends a request and returns its id.
func (a *Agent) Request(operation, payload string) string {
	a.T.Helper()
	a.Mu.Lock()
	a.said++
	id := fmt.Sprintf("req-%s-%d", a.Name, a.said)
	a.Mu.Unlock()
	a.Say(Request(id, operation, payload) + "\n")
	return id
}

// Request returns a request.
func Request(id, operation, payload string) string {
	return fmt.Sprintf(`{"type":"request:%s","id":%q,"timestamp":"%s","payload":%s}`, operation, id, Noon, payload)
}

// Event returns an event.
func Event(id, name, payload string) string {
	return fmt.Sprintf(`{"type":"event:%s","id":%q,"timestamp":"%s","payload":%s}`, name, id, Noon, payload)
}

// Granted sends a request that must succeed, and decodes the payload of the answer into v.
func (a *Agent) Granted(v any, operation, payload string) Message {
	a.T.Helper()
	m := a.Answer(a.Request(operation, payload))
	require.Nil(a.T, m.Error, "%s", m.Line)
	require.Equal(a.T, "response:success", m.Type)
	if v != nil {
		require.NoError(a.T, json.Unmarshal(m.Payload, v))
	}
	return m
}

// Refused sends a request that must be refused.
func (a *Agent) Refused(code, operation, payload string) *Refusal {
	a.T.Helper()
	m := a.Answer(a.Request(operation, payload))
	require.NotNil(a.T, m.Error, "%s", m.Line)
	require.Equal(a.T, code, m.Error.Code, "%s", m.Line)
	return m.Error
}

// Settle waits until all earlier output of the scripted agent was processed. It sends a request and waits
// for the answer.
func (a *Agent) Settle() {
	a.T.Helper()
	a.Granted(nil, "query-agents", `{}`)
}

// Task is a task as agents receive it.
type Task struct {
	ID, Name, Type, Status, State, Error, Reason string
	RequiredRole, AssignedTo                     *string
	SubmittedBy                                  string
	Dependencies, RequiredCapabilities           []string
	Progress                                     float64
	Message                                      string
	Attempts                                     int
	Result, Payload                              json.RawMessage
}

// Submit submits a task and returns it.
func (a *Agent) Submit(payload string) Task {
	a.T.Helper()
	var reply struct{ Task Task }
	a.Granted(&reply, "submit-task", payload)
	return reply.Task
}

func (a *Agent) Task(id string) Task {
	a.T.Helper()
	var reply struct{ Task Task }
	a.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task
}

// Assigned waits until the scripted agent is notified of a task.
func (a *Agent) Assigned(id string) Message {
	a.T.Helper()
	return a.Wait("notice of task "+id, func(m *Message) bool {
		return m.Type == "notify:task-assigned" && strings.Contains(string(m.Payload), id)
	})
}

// Door returns a client of the orchestrator's socket.
func (s *Orchestrator) Door() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.State(), "api.sock"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}
}

// Operate sends a request to the API, as an operator or with a key.
func (s *Orchestrator) Operate(operation, payload string, key ...string) (status int, body []byte) {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), http.MethodPost, "http://orchestrator/api/v1/operations/"+operation, strings.NewReader(payload))
	require.NoError(s.T, err)
	if len(key) > 0 {
		r.Header.Set("X-API-Key", key[0])
	}
	answer, err := s.Door().Do(r)
	require.NoError(s.T, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	require.NoError(s.T, err)
	return answer.StatusCode, bytes.TrimSpace(body)
}

// Operated sends a request to the API that must succeed.
func (s *Orchestrator) Operated(v any, operation, payload string) {
	s.T.Helper()
	status, body := s.Operate(operation, payload)
	require.Equal(s.T, http.StatusOK, status, "%s", body)
	if v != nil {
		require.NoError(s.T, json.Unmarshal(body, v))
	}
}

// Tap runs a program and writes its input and output to one file each. An input line is in the
// file before the program gets it.
const Tap = `
name=$1
shift
rm -f "$name.in" "$name.out"
mkfifo "$name.in" "$name.out"
exec 3<&0
tee "$name.in" <&3 >>"$name.heard" &
hears=$!
tee -a "$name.said" <"$name.out" &
says=$!
"$@" <"$name.in" >"$name.out" 3<&-
code=$?
wait $says
kill $hears
exit $code
`

// Readers returns agents that only read.
func Readers(names ...string) (hcl string) {
	for _, name := range names {
		hcl += fmt.Sprintf("\nagent %q {\n  command = [\"sh\", \"-c\", \"exec cat >>%[1]s.ear\"]\n}\n", name)
	}
	return hcl
}

// NewQuickTeam makes a team that also has the tap.
func NewQuickTeam(t *testing.T, hcl string, names ...string) *Team {
	t.Helper()
	h := NewTeam(t, QuickStop+hcl, names...)
	h.Write("tap.sh", Tap)
	return h
}

// ScriptedAgents returns only the agent blocks of scripted agents.
func ScriptedAgents(names ...string) string { return strings.TrimPrefix(Scripted(names...), QuickStop) }

// Rounds returns the number of rounds; ORC_TEST_ROUNDS overrides it.
func Rounds(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("ORC_TEST_ROUNDS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func Payload(name string) string {
	return fmt.Sprintf(`{"key":%q,"n":12345678901234567890,"filler":%q}`, name, strings.Repeat("<&>", 50))
}

// Question returns the n-th question of the asker, the same in each of its runs.
func Question(n int) string {
	return Request(fmt.Sprint("why-", n), "ask-user", fmt.Sprintf(`{"question":"why %d?","timeout":3600000}`, n)) + "\n"
}

// Unlimited removes the rate limit of scripted agents.
const Unlimited = `
protocol {
  rate  = 1000000
  burst = 1000000
}
`

// Lines returns the unparsed lines so far.
func (a *Agent) Lines() []string {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.Heard[:len(a.Heard):len(a.Heard)]
}

// RequireNoGaps requires that the event numbers from the API have no gaps, and returns the last
// one.
func RequireNoGaps(t *testing.T, s *Orchestrator) int64 {
	t.Helper()
	return RequireNoGapsAfter(t, s, 0)
}

func RequireNoGapsAfter(t *testing.T, s *Orchestrator, last int64) int64 {
	t.Helper()
	for line := range strings.Lines(s.Ask("events", "--since", fmt.Sprint(last), "--json")) {
		var e wire.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, last+1, e.Seq, "%s", line)
		last = e.Seq
	}
	return last
}

// Questions returns the open questions from the API.
func (s *Orchestrator) Questions() []wire.Question {
	s.T.Helper()
	var list wire.QuestionList
	s.Operated(&list, "list-questions", `{}`)
	return list.Questions
}

func (s *Orchestrator) WaitForQuestions(n int) []wire.Question {
	s.T.Helper()
	var found []wire.Question
	WaitFor(s.T, fmt.Sprintf("%d questions", n), func() bool {
		found = s.Questions()
		return len(found) == n
	})
	return found
}

// AnswerQuestion answers a question as a person would. It waits until the question has arrived.
func (s *Orchestrator) AnswerQuestion(id, answer string) {
	s.T.Helper()
	WaitFor(s.T, "question "+id, func() bool {
		status, _ := s.Operate("answer-question", fmt.Sprintf(`{"questionId":%q,"answer":%q}`, id, answer))
		return status == http.StatusOK
	})
}

// ScriptedWith returns a scripted agent with a role and one capability.
func ScriptedWith(name, role, capability string) string {
	return fmt.Sprintf(`
agent %[1]q {
  command = ["scripted", %[1]q]
  role    = %[2]q
  capabilities {
    names = [%[3]q]
  }
}
`, name, role, capability)
}

func (a *Agent) Tasks(filter string) (ids []string) {
	a.T.Helper()
	var reply struct{ Tasks []Task }
	a.Granted(&reply, "query-tasks", filter)
	for _, one := range reply.Tasks {
		ids = append(ids, one.ID)
		require.NotNil(a.T, one.Dependencies, "null")
	}
	return ids
}
