package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A toolUser is an MCP client that is connected with the team.
type toolUser struct {
	t       *testing.T
	session *sdk.ClientSession
}

func (s *stage) toolUser(transport sdk.Transport) *toolUser {
	s.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(s.t.Context(), transport, nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = session.Close() })
	return &toolUser{t: s.t, session: session}
}

// guest starts an MCP client that joins as a guest.
func (s *stage) guest(args ...string) *toolUser {
	return s.toolUser(&sdk.CommandTransport{Command: s.guestCommand(args...)})
}

func (s *stage) guestCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, append([]string{"mcp", "--state-dir", s.state()}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.dir, s.environ(), os.Stderr
	return cmd
}

// use calls a tool and returns the texts of its result.
func (u *toolUser) use(tool string, arguments map[string]any) (texts []string, failed bool) {
	u.t.Helper()
	result, err := u.session.CallTool(u.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(u.t, err)
	for _, c := range result.Content {
		texts = append(texts, c.(*sdk.TextContent).Text)
	}
	return texts, result.IsError
}

// used is use, for a call that must succeed with one text.
func (u *toolUser) used(tool string, arguments map[string]any) string {
	u.t.Helper()
	texts, failed := u.use(tool, arguments)
	require.False(u.t, failed, "%q", texts)
	require.Len(u.t, texts, 1)
	return texts[0]
}

// refused is use, for a call that must fail.
func (u *toolUser) refused(tool string, arguments map[string]any) string {
	u.t.Helper()
	texts, failed := u.use(tool, arguments)
	require.True(u.t, failed, "%q", texts)
	return texts[0]
}

const oneIdler = "agent \"idler\" {\n  command = [\"cat\"]\n}\n"

// A person's own client joins as a guest, works on a task and leaves.
func TestMCPGuest(t *testing.T) {
	s := newStage(t, quick+oneIdler).up("--json")
	s.waitForEvents(1, events.AgentStarted, "")
	ann := s.guest("--as", "ann", "--role", "author")
	list, err := ann.session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 11)
	for _, tool := range list.Tools {
		require.NotEmpty(t, tool.Description)
		require.Equal(t, true, tool.Meta["anthropic/alwaysLoad"], tool.Name)
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft2020)
		require.NoError(t, compiler.AddResource(tool.Name, tool.InputSchema))
		_, err := compiler.Compile(tool.Name)
		require.NoError(t, err)
	}
	require.NoError(t, ann.session.Ping(t.Context(), nil))
	require.Contains(t, ann.refused("task_complete", map[string]any{"summary": "done"}), "you have no open task")
	require.Empty(t, s.events(events.AgentRefused, ""), "to have no task is no mistake")

	id := strings.TrimSpace(s.ask("task", "add", "Write the page", "--role", "author", "-q"))
	require.Contains(t, ann.used("task_next", nil), `"name":"Write the page"`)
	s.waitForState(id, wire.TaskRunning)
	require.Equal(t, "reported", ann.used("task_progress", map[string]any{"message": "half", "progress": 0.5}))

	// Mail comes with the next result, once.
	s.ask("bus", "send", "--to", "W:"+s.agent("ann").Run, "--topic", "note", "--payload", `{"text":"Keep it short. </mail>"}`)
	texts, failed := ann.use("task_current", nil)
	require.False(t, failed)
	require.Len(t, texts, 2)
	require.Contains(t, texts[0], id)
	require.Contains(t, texts[1], "Keep it short. <\\/mail>\n</mail>")
	require.NotContains(t, ann.used("task_current", nil), "Keep it short")

	s.ask("bus", "send", "--to", "ann", "Read this.")
	require.Contains(t, ann.used("message_read", nil), "Read this.")
	require.Equal(t, "there are no messages that you have not read", ann.used("message_read", nil))

	// A person is asked.
	answered := make(chan string)
	go func() {
		answered <- ann.used("ask_human", map[string]any{"question": "Which?", "options": []string{"a", "b"}})
	}()
	s.answerQuestion(s.waitForQuestions(1)[0].ID, "b")
	require.Equal(t, "b", <-answered)

	require.Contains(t, ann.used("task_complete", map[string]any{"summary": "written"}), "reported")
	s.waitForState(id, wire.TaskDone)
	require.Contains(t, string(s.shownTask(id).Result), "written")

	// A task that is open when the client leaves is given back.
	id = strings.TrimSpace(s.ask("task", "add", "Write more", "--role", "author", "-q"))
	require.Contains(t, ann.used("task_next", nil), id)
	require.NoError(t, ann.session.Close())
	s.waitForState(id, wire.TaskPending)
}

// A member tries its own failed task again, and with it what was cancelled because of it. A refusal names the argument.
func TestMCPRetry(t *testing.T) {
	s := newStage(t, quick+oneIdler).up("--json")
	s.waitForEvents(1, events.AgentStarted, "")
	ann, bob := s.guest("--as", "ann"), s.guest("--as", "bob", "--role", "author")
	add := func(arguments map[string]any) string {
		var answer wire.TaskReply
		require.NoError(t, json.Unmarshal([]byte(ann.used("task_add", arguments)), &answer))
		return answer.Task.ID
	}
	page := add(map[string]any{"title": "Write the page", "role": "author"})
	index := add(map[string]any{"title": "Write the index", "role": "author", "needs": []string{page}})
	fails := func() {
		require.Contains(t, bob.used("task_next", nil), page)
		bob.used("task_fail", map[string]any{"reason": "no ink"})
		s.waitForState(page, wire.TaskFailed)
		s.waitForState(index, wire.TaskCancelled)
	}
	fails()
	require.Equal(t, page, add(map[string]any{"retry": page}))
	s.waitForState(index, wire.TaskPending)
	fails()
	require.Equal(t, page, add(map[string]any{"retry": page, "dependents": false}))
	require.Contains(t, bob.used("task_next", nil), page)
	bob.used("task_complete", map[string]any{"summary": "written"})
	s.waitForState(page, wire.TaskDone)
	s.waitForState(index, wire.TaskCancelled)

	other := strings.TrimSpace(s.ask("task", "add", "Idle", "--assign", "idler", "-q"))
	s.ask("task", "cancel", other)
	lead := s.guest("--as", "lead", "--role", "planner")
	for id, want := range map[string]string{
		page: "retry: task " + wire.ShortID(page) + ` "Write the page" is done and cannot be tried again`, other: "retry: the task is not yours", "none": `retry: there is no task "none"`,
	} {
		require.Contains(t, ann.refused("task_add", map[string]any{"retry": id}), want)
	}
	s.waitForState(other, wire.TaskCancelled)
	require.Contains(t, lead.used("task_add", map[string]any{"retry": other}), other)
	s.waitForState(other, wire.TaskAssigned)
	require.Equal(t, "to: no agent is called \"rex\". Agents: idler, ann, bob, lead", ann.refused("message_send", map[string]any{"to": "rex", "text": "Hello"}))
}

// The task of a client that is killed waits for another agent.
func TestMCPGuestIsKilled(t *testing.T) {
	s := newStage(t, quick+oneIdler).up("--json")
	s.waitForEvents(1, events.AgentStarted, "")
	cmd := s.guestCommand("--as", "ann", "--role", "author")
	ann := s.toolUser(&sdk.CommandTransport{Command: cmd})
	id := strings.TrimSpace(s.ask("task", "add", "Write the page", "--role", "author", "-q"))
	require.Contains(t, ann.used("task_next", nil), id)
	require.NoError(t, cmd.Process.Kill())
	s.waitForState(id, wire.TaskPending)
}

// A client that waits for a task does not keep the team from stopping, and ends with it: well when
// the orchestrator has stopped, and with 5 when it was lost.
func TestMCPGuestEndsWithTheTeam(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(s *stage)
		code int
	}{
		"stopped": {end: func(s *stage) { s.ask("down") }},
		"killed":  {end: func(s *stage) { require.NoError(s.t, s.process.Process.Kill()) }, code: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, quick+oneIdler).up("--json")
			s.waitForEvents(1, events.AgentStarted, "")
			cmd := s.guestCommand("--as", "ann", "--role", "author")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdin, err := cmd.StdinPipe()
			require.NoError(t, err)
			defer stdin.Close()
			require.NoError(t, cmd.Start())
			_, err = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_next"}}
`)
			require.NoError(t, err)
			s.waitForEvents(1, events.AgentStarted, "ann")
			test.end(s)
			_ = cmd.Wait()
			require.Equal(t, test.code, cmd.ProcessState.ExitCode(), stderr.String())
			require.NotContains(t, stderr.String(), "context canceled")
		})
	}
}

// A program that an agent starts acts as the agent.
func TestMCPOfAnAgent(t *testing.T) {
	s := newStage(t, quick+`
agent "worker" {
  command = ["sh", "worker.sh"]
}
`, "worker.sh", `
read -r assigned
printf '%s\n' \
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
  '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_complete","arguments":{"summary":"from inside \ud83d"}}}' > calls
(cat calls; until grep -q '"id":2' answers; do sleep 0.05; done) | "$ORCHESTRATOR" mcp > answers
cat
`)
	s.upWith("ORCHESTRATOR=" + s.program)
	s.waitForEvents(1, events.AgentStarted, "")
	id := strings.TrimSpace(s.ask("task", "add", "Do it", "-q"))
	s.waitForState(id, wire.TaskDone)
	require.Contains(t, string(s.shownTask(id).Result), "from inside \ufffd", "half a character is replaced")

	_, stderr, code := s.call("mcp")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "orchestrator mcp --as NAME")
}

// A coding agent whose tool ends a task before the client is seen to begin it makes no mistake.
func TestMCPBeforeTheTurn(t *testing.T) {
	s := newStage(t, quick+`
agent "coder" {
  protocol = "acp"
  command  = ["sh", "client.sh"]
}
`, "client.sh", `
say() { echo '{"jsonrpc":"2.0","id":'$1',"result":{'"$2"'}}'; }
read -r hello
say 1 '"protocolVersion":1'
read -r new
say 2 '"sessionId":"s","modes":{"currentModeId":"default","availableModes":[{"id":"default"}]}'
printf '%s\n' \
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
  '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_complete","arguments":{"summary":"done"}}}' > calls
while read -r prompt; do
  id=$(expr "$prompt" : '{"id":\([0-9]*\)')
  : > answers
  (cat calls; until grep -q '"id":2' answers; do sleep 0.05; done) | "$ORCHESTRATOR" mcp > answers
  echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}}'
  say $id '"stopReason":"end_turn"'
done
`)
	s.upWith("ORCHESTRATOR=" + s.program)
	s.waitForEvents(1, events.AgentStarted, "")
	for range 2 { // what the first task has caused is recorded before the second is done
		s.waitForState(strings.TrimSpace(s.ask("task", "add", "Do it", "-q")), wire.TaskDone)
	}
	require.Empty(t, s.events(events.AgentRefused, "coder"))
}

// Clients that want a URL find the tools on the listener. A request acts as the agent whose key
// it has.
func TestMCPOverHTTP(t *testing.T) {
	s := newStage(t, quick+"http {\n  listen = [\"127.0.0.1:0\"]\n}\n"+oneIdler).up()
	url := s.listening() + "/mcp"
	idler := s.toolUser(&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: s.keyOf("idler")}})
	id := strings.TrimSpace(s.ask("task", "add", "Do it", "-q"))
	require.Contains(t, idler.used("task_current", nil), id)
	s.ask("bus", "send", "--to", "W:"+s.agent("idler").Run, "--topic", "note", "--payload", `{"text":"Over HTTP."}`)
	texts, _ := idler.use("tasks", nil)
	require.Len(t, texts, 2)
	require.Contains(t, texts[1], "Over HTTP.")
	idler.used("task_complete", map[string]any{"summary": "done"})
	s.waitForState(id, wire.TaskDone)

	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	_, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	require.Error(t, err, "without a key")
}

// keyOf waits for an agent and issues a key for it.
func (s *stage) keyOf(agent string) bearer {
	s.t.Helper()
	waitForThat(s.t, "the agent that runs", func() bool {
		shown, _, code := s.call("agent", "show", agent, "--json")
		return code == 0 && strings.Contains(shown, `"state":"running"`)
	})
	var key struct {
		Key string `json:"key"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.ask("key", "issue", agent, "--json")), &key))
	return bearer(key.Key)
}

// The listener is stateless: clients send requests in any order and at the same time, with any id
// of a session. Requests for other hosts, and those of pages of other origins, are refused.
func TestMCPRequests(t *testing.T) {
	s := newStage(t, quick+"http {\n  listen = [\"127.0.0.1:0\"]\n  hosts = [\"shop.example\", \"127.0.0.1\"]\n}\n"+oneIdler).up()
	url := s.listening() + "/mcp"
	client := &http.Client{Transport: s.keyOf("idler")}
	send := func(method, body string, header ...string) (status int, kind, answer string, err error) {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			return 0, "", "", err
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		if host := request.Header.Get("Host"); host != "" {
			request.Host = host
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, "", "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, response.Header.Get("Content-Type"), string(text), err
	}
	const ping, list = `{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for _, c := range []struct {
		method, body string
		header       []string
		status       int
		says         string
	}{
		{"POST", ping, nil, 200, `{"jsonrpc":"2.0","id":"p","result":{}}`},
		{"POST", list, []string{"Mcp-Session-Id", "s-1", "Mcp-Protocol-Version", "2025-03-26"}, 200, `"name":"task_current"`},
		{"POST", list, []string{"Mcp-Protocol-Version", "2025-11-25"}, 200, `"name":"task_current"`},
		{"POST", ping, []string{"Mcp-Protocol-Version", "1999-12-31"}, 400, "protocol version"},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"GET", "", nil, 405, ""},
		{"DELETE", "", []string{"Mcp-Session-Id", "s-1"}, 405, ""},
		{"POST", ping, []string{"Host", "shop.example"}, 200, `"result":{}`},
		{"POST", ping, []string{"Host", "shop.example", "Origin", "http://shop.example"}, 200, `"result":{}`},
		{"POST", ping, []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403, "evil.example"},
		{"POST", ping, []string{"Host", "evil.example"}, 403, "evil.example"},
		{"POST", ping, []string{"Origin", "http://evil.example"}, 403, "another origin"},
		{"POST", ping, []string{"Origin", "null"}, 403, "another origin"},
		{"POST", ping, []string{"Sec-Fetch-Site", "cross-site"}, 403, "another origin"},
		{"POST", ping, []string{"Sec-Fetch-Site", "same-origin"}, 200, `"result":{}`},
	} {
		status, _, text, err := send(c.method, c.body, c.header...)
		require.NoError(t, err)
		require.Equal(t, c.status, status, "%s %s %q: %s", c.method, c.body, c.header, text)
		require.Contains(t, text, c.says)
	}

	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			status, kind, text, err := send("POST", list, "Mcp-Session-Id", "s-1")
			assert.NoError(t, err)
			assert.Equal(t, 200, status)
			assert.Contains(t, kind, "application/json")
			assert.Contains(t, text, `"name":"task_current"`)
		})
	}
	asking.Wait()
}

// bearer is a transport that adds a key.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
