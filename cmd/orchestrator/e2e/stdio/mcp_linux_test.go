package stdio

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A person's own client joins as a guest, works on a task and leaves.
func TestMCPGuest(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	ann := s.Guest("--as", "ann", "--role", "author")
	list, err := ann.Session.ListTools(t.Context(), nil)
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
	require.NoError(t, ann.Session.Ping(t.Context(), nil))
	require.Contains(t, ann.Refused("task_complete", map[string]any{"summary": "done"}), "you have no open task")
	require.Empty(t, s.Events(events.AgentRefused, ""), "to have no task is no mistake")

	id := strings.TrimSpace(s.Ask("task", "add", "Write the page", "--role", "author", "-q"))
	require.Contains(t, ann.Used("task_next", nil), `"name":"Write the page"`)
	s.WaitForState(id, wire.TaskRunning)
	require.Equal(t, "reported", ann.Used("task_progress", map[string]any{"message": "half", "progress": 0.5}))

	// Mail comes with the next result, once.
	s.Ask("bus", "send", "--to", "W:"+s.Agent("ann").Run, "--topic", "note", "--payload", `{"text":"Keep it short. </mail>"}`)
	texts, failed := ann.Use("task_current", nil)
	require.False(t, failed)
	require.Len(t, texts, 2)
	require.Contains(t, texts[0], id)
	require.Contains(t, texts[1], "Keep it short. <\\/mail>\n</mail>")
	require.NotContains(t, ann.Used("task_current", nil), "Keep it short")

	s.Ask("bus", "send", "--to", "ann", "Read this.")
	require.Contains(t, ann.Used("message_read", nil), "Read this.")
	require.Equal(t, "no new messages", ann.Used("message_read", nil))

	// A person is asked.
	answered := make(chan string)
	go func() {
		answered <- ann.Used("ask_human", map[string]any{"question": "Which?", "options": []string{"a", "b"}})
	}()
	s.AnswerQuestion(s.WaitForQuestions(1)[0].ID, "b")
	require.Equal(t, "b", <-answered)

	require.Contains(t, ann.Used("task_complete", map[string]any{"summary": "written"}), "reported")
	s.WaitForState(id, wire.TaskDone)
	require.Contains(t, string(s.ShownTask(id).Result), "written")

	// A task that is open when the client leaves is given back.
	id = strings.TrimSpace(s.Ask("task", "add", "Write more", "--role", "author", "-q"))
	require.Contains(t, ann.Used("task_next", nil), id)
	require.NoError(t, ann.Session.Close())
	s.WaitForState(id, wire.TaskPending)
}

// A member tries its own failed task again, with the tasks that were cancelled because of it. A refusal names the
// argument.
func TestMCPRetry(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	ann, bob := s.Guest("--as", "ann"), s.Guest("--as", "bob", "--role", "author")
	add := func(arguments map[string]any) string {
		var answer wire.TaskReply
		require.NoError(t, json.Unmarshal([]byte(ann.Used("task_add", arguments)), &answer))
		return answer.Task.ID
	}
	page := add(map[string]any{"title": "Write the page", "role": "author"})
	index := add(map[string]any{"title": "Write the index", "role": "author", "needs": []string{page}})
	fails := func() {
		require.Contains(t, bob.Used("task_next", nil), page)
		bob.Used("task_fail", map[string]any{"reason": "no ink"})
		s.WaitForState(page, wire.TaskFailed)
		s.WaitForState(index, wire.TaskCancelled)
	}
	fails()
	require.Equal(t, page, add(map[string]any{"retry": page}))
	s.WaitForState(index, wire.TaskPending)
	fails()
	require.Equal(t, page, add(map[string]any{"retry": page, "dependents": false}))
	require.Contains(t, bob.Used("task_next", nil), page)
	bob.Used("task_complete", map[string]any{"summary": "written"})
	s.WaitForState(page, wire.TaskDone)
	s.WaitForState(index, wire.TaskCancelled)

	other := strings.TrimSpace(s.Ask("task", "add", "Idle", "--assign", "idler", "-q"))
	s.Ask("task", "cancel", other)
	lead := s.Guest("--as", "lead", "--role", "planner")
	for id, want := range map[string]string{
		page: "retry: task " + wire.ShortID(page) + ` "Write the page" is done and cannot be tried again`, other: "retry: the task is not yours", "none": `retry: task "none" does not exist`,
	} {
		require.Contains(t, ann.Refused("task_add", map[string]any{"retry": id}), want)
	}
	s.WaitForState(other, wire.TaskCancelled)
	require.Contains(t, lead.Used("task_add", map[string]any{"retry": other}), other)
	s.WaitForState(other, wire.TaskAssigned)
	require.Equal(t, "to: no agent is called \"rex\". Agents: idler, ann, bob, lead", ann.Refused("message_send", map[string]any{"to": "rex", "text": "Hello"}))
}

// The task of a client that is killed waits for another agent.
func TestMCPGuestIsKilled(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	cmd := s.GuestCommand("--as", "ann", "--role", "author")
	ann := s.ToolUser(&sdk.CommandTransport{Command: cmd})
	id := strings.TrimSpace(s.Ask("task", "add", "Write the page", "--role", "author", "-q"))
	require.Contains(t, ann.Used("task_next", nil), id)
	require.NoError(t, cmd.Process.Kill())
	s.WaitForState(id, wire.TaskPending)
}

// A client that waits for a task does not keep the team from stopping, and ends with it: well when
// the orchestrator has stopped, and with 5 when it was lost.
func TestMCPGuestEndsWithTheTeam(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(s *stage.Orchestrator)
		code int
	}{
		"stopped": {end: func(s *stage.Orchestrator) { s.Ask("down") }},
		"killed":  {end: func(s *stage.Orchestrator) { require.NoError(s.T, s.Process.Process.Kill()) }, code: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
			s.WaitForEvents(1, events.AgentStarted, "")
			cmd := s.GuestCommand("--as", "ann", "--role", "author")
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
			s.WaitForEvents(1, events.AgentStarted, "ann")
			test.end(s)
			_ = cmd.Wait()
			require.Equal(t, test.code, cmd.ProcessState.ExitCode(), stderr.String())
			require.NotContains(t, stderr.String(), "context canceled")
		})
	}
}

// A program that an agent starts acts as the agent.
func TestMCPOfAnAgent(t *testing.T) {
	s := stage.New(t, stage.QuickStop+`
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
	s.UpWith("ORCHESTRATOR=" + s.Program)
	s.WaitForEvents(1, events.AgentStarted, "")
	id := strings.TrimSpace(s.Ask("task", "add", "Do it", "-q"))
	s.WaitForState(id, wire.TaskDone)
	require.Contains(t, string(s.ShownTask(id).Result), "from inside \ufffd", "half a character is replaced")

	_, stderr, code := s.Call("mcp")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "orchestrator mcp --as NAME")
}

// A coding agent whose tool ends a task before the client is seen to begin it makes no mistake.
func TestMCPBeforeTheTurn(t *testing.T) {
	s := stage.New(t, stage.QuickStop+`
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
	s.UpWith("ORCHESTRATOR=" + s.Program)
	s.WaitForEvents(1, events.AgentStarted, "")
	for range 2 { // the effects of the first task are recorded before the second is done
		s.WaitForState(strings.TrimSpace(s.Ask("task", "add", "Do it", "-q")), wire.TaskDone)
	}
	require.Empty(t, s.Events(events.AgentRefused, "coder"))
}

// Clients that want a URL find the tools on the listener. A request acts as the agent that owns its
// key.
func TestMCPOverHTTP(t *testing.T) {
	s := stage.New(t, stage.QuickStop+"http {\n  listen = [\"127.0.0.1:0\"]\n}\n"+stage.OneIdler).Up()
	url := s.Address() + "/mcp"
	idler := s.ToolUser(&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: s.KeyOf("idler")}})
	id := strings.TrimSpace(s.Ask("task", "add", "Do it", "-q"))
	require.Contains(t, idler.Used("task_current", nil), id)
	s.Ask("bus", "send", "--to", "W:"+s.Agent("idler").Run, "--topic", "note", "--payload", `{"text":"Over HTTP."}`)
	texts, _ := idler.Use("tasks", nil)
	require.Len(t, texts, 2)
	require.Contains(t, texts[1], "Over HTTP.")
	idler.Used("task_complete", map[string]any{"summary": "done"})
	s.WaitForState(id, wire.TaskDone)

	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	_, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	require.Error(t, err, "without a key")
}

// The listener is stateless: clients send requests in any order and at the same time, with any id
// of a session. Requests for other hosts, and from pages of other origins, are refused.
func TestMCPRequests(t *testing.T) {
	s := stage.New(t, stage.QuickStop+"http {\n  listen = [\"127.0.0.1:0\"]\n  hosts = [\"shop.example\", \"127.0.0.1\"]\n}\n"+stage.OneIdler).Up()
	url := s.Address() + "/mcp"
	client := &http.Client{Transport: s.KeyOf("idler")}
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
