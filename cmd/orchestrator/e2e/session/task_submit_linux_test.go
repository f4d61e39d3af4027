package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/trace"
)

// A delegationManual has the samples of the page on delegation.
type delegationManual struct {
	hcl             []string
	request, answer string
	completion      string
	acts            []string
	agent           string
}

func readDelegationManual(t *testing.T) (m delegationManual) {
	t.Helper()
	for _, sample := range source.Fences(t, "../../help/delegation.md") {
		text := strings.Join(sample.Lines, "\n") + "\n"
		switch {
		case sample.Lang == "hcl":
			m.hcl = append(m.hcl, text)
		case sample.Lang == "sh":
			m.agent = text
		case sample.Lang == "json" && len(sample.Lines) > 1:
			m.acts = sample.Lines
		case sample.Lang == "json" && strings.Contains(text, `"status"`):
			m.answer = text
		case sample.Lang == "json" && strings.Contains(text, `"request:complete-task"`):
			m.completion = text
		case sample.Lang == "json":
			m.request = text
		}
	}
	return m
}

// The samples of the page on delegation are valid.
func TestTheManualsDelegationMakesSense(t *testing.T) {
	m := readDelegationManual(t)
	file := t.TempDir() + "/orchestrator.hcl"
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(m.hcl, "")), 0o600))
	c, problems := config.Load(file, config.Options{})
	require.Empty(t, problems)
	require.Equal(t, 3, c.Scheduler.DelegationRetries)
	request, wrong := wire.ReadTaskRequest([]byte(m.request), project.CheckedDepth)
	require.Nil(t, wrong)
	require.Empty(t, request.Notes)
	response, wrong := wire.ReadTaskResponse([]byte(m.answer), project.CheckedDepth)
	require.Nil(t, wrong)
	require.Empty(t, response.Notes)
	require.Equal(t, request.ID, response.ID)
	var completion struct{ Payload json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(m.completion), &completion))
	_, wrong = wire.ReadRequest("complete-task", completion.Payload, project.CheckedDepth)
	require.Nil(t, wrong)
	require.Len(t, m.acts, 3)
	for _, line := range m.acts {
		act, wrong := wire.ReadTaskAct([]byte(line), project.CheckedDepth)
		require.Nil(t, wrong, line)
		require.Equal(t, request.ID, act.ID)
	}
}

// The agent of the page does the request of the page, and the commands show its response.
//
// Rows: D-05, D-36.
func TestTaskSubmit(t *testing.T) {
	t.Parallel()
	m := readDelegationManual(t)
	s := stage.New(t, strings.Join(m.hcl, ""), "linguist.sh", m.agent, "request.json", m.request).Up("--json")
	s.Serving()
	shown := s.Ask("task", "submit", "request.json", "--wait")
	require.Regexp(t, `^greeting-1 (pending|in_progress|completed), with linguist`, shown)
	require.Regexp(t, `(?m)^greeting-1  completed\n  agent      linguist\n`, shown)
	require.Contains(t, shown, "\n  result     {\"text\":\"bonjour\"}\n  artifacts  greeting.txt  text/plain  7 bytes\n")

	// views of the response
	require.Equal(t, "bonjour", s.Ask("task", "response", "greet", "--artifact", "greeting.txt"))
	require.Contains(t, s.Ask("task", "response", "greeting-1"), "  artifacts  greeting.txt  text/plain  7 bytes\n")
	shown = s.Ask("task", "show", "greet")
	for _, row := range []string{
		`  requested by  orchestrator`, `  target        linguist`, `  via           orchestrator`, `  conversation  guide`,
		`  trace         [0-9a-f]{32}`, `  span          [0-9a-f]{16}`, `  artifacts     greeting.txt  text/plain  7 bytes`,
	} {
		require.Regexp(t, "(?m)^"+row+"$", shown)
	}
	require.NotContains(t, shown, "requires")

	// a repeat has no effect; JSON output
	require.Equal(t, "greeting-1\n", s.Ask("task", "submit", "request.json", "-q"))
	var document struct {
		FormatVersion string              `json:"format_version"`
		ID            string              `json:"id"`
		Status        string              `json:"status"`
		Metadata      delegation.Metadata `json:"metadata"`
	}
	for _, more := range [][]string{{"--json"}, {"--json", "--wait"}} {
		require.NoError(t, json.Unmarshal([]byte(s.Ask(append([]string{"task", "submit", "request.json"}, more...)...)), &document))
		require.Equal(t, []string{wire.FormatVersion, "greeting-1", "completed"}, []string{document.FormatVersion, document.ID, document.Status})
		require.Equal(t, "linguist", document.Metadata.Agent)
	}

	// a request without an id gets a new one each time
	s.Write("other.json", `{"type": "translate",`+"\n"+` "payload": {"n": 1.00E+2}}`)
	first, second := s.Ask("task", "submit", "other.json", "-q"), s.Ask("task", "submit", "other.json", "-q")
	require.NotEqual(t, first, second)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`, first)
	require.Contains(t, s.Ask("task", "show", strings.TrimSpace(first), "--json"), `"payload":{"n":1.00E+2}`)
	s.Ask("task", "wait", strings.TrimSpace(first), strings.TrimSpace(second))

	// tasks of a conversation
	require.Equal(t, "greeting-1\n", s.Ask("task", "ls", "--conversation", "guide", "-q"))
	require.Contains(t, s.Ask("task", "ls", "--conversation", "nothing"), "No task matches.")
	require.Len(t, strings.Fields(s.Ask("task", "ls", "-q")), 3)
	s.Stop()
}

// An invalid request is reported with its place before it is sent. Other refusals come from the
// orchestrator.
//
// Rows: D-10, D-16, D-39.
func TestTaskSubmitRefused(t *testing.T) {
	t.Parallel()
	m := readDelegationManual(t)
	s := stage.New(t, strings.Join(m.hcl, ""), "linguist.sh", m.agent, "request.json", m.request)
	refused := func(exit int, request string, lines ...string) {
		t.Helper()
		s.Write("odd.json", request)
		stdout, said, code := s.Call("task", "submit", "odd.json", "--wait")
		require.Equal(t, exit, code, said)
		require.Empty(t, stdout)
		require.Equal(t, "Error: "+strings.Join(lines, "\n  = ")+"\n", said)
	}
	const hint = "The format: orchestrator help delegation"
	refused(cli.ExitNo, `{"type":7,"payload":[],"routing":{"source":3},"context":{"priority":"soon"}}`,
		"odd.json is not a task request: type must be a string", "/type: type must be a string", "/payload: payload must be an object",
		`/context/priority: context.priority must be one of low, normal, high or urgent, not "soon"`, "/routing/source: routing.source must be a string", hint)
	refused(cli.ExitNo, `{"id":null,"type":"translate","payload":{}}`, "odd.json is not a task request: id must not be null", "/id: id must not be null", hint)
	_, said, code := s.Call("task", "submit", "odd.json", "--json")
	require.Equal(t, cli.ExitNo, code)
	require.Empty(t, said)
	for _, request := range []string{"nope", "[1]", "null", "", `{"a":`} {
		s.Write("odd.json", request)
		_, said, code := s.Call("task", "submit", "odd.json")
		require.Equal(t, cli.ExitNo, code, request)
		require.Contains(t, said, "Error: odd.json is not a task request: ")
	}
	for _, args := range [][]string{
		{"request.json", "--format", "e"}, {"nowhere.json"}, {}, {"request.json", "request.json"},
	} {
		_, said, code = s.Call(append([]string{"task", "submit"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, said)
	}
	refused(cli.ExitNotRunning, m.request, "no orchestrator is running for "+s.State(), "Start it: orchestrator up --state-dir "+s.State())

	s.Up("--json")
	s.Serving()
	refused(cli.ExitNotFound, `{"type":"translate","payload":{},"routing":{"target":"linguis"}}`,
		`agent "linguis" does not exist.  Did you mean "linguist"?`, "List them: orchestrator agent ls")
	refused(cli.ExitNotFound, `{"type":"cook","payload":{}}`, `no agent handles "cook"`, "List the task types of an agent: orchestrator agent show NAME")
	refused(cli.ExitDenied, `{"type":"translate","payload":{},"routing":{"source":"linguist"}}`,
		`"linguist" is an agent, and does not ask for this itself`, "At /routing/source")
	s.Ask("task", "submit", "request.json", "--wait")
	s.Write("odd.json", strings.Replace(m.request, "morning", "evening", 1))
	_, said, code = s.Call("task", "submit", "odd.json")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, said, "Use a new id for each request")

	// commands on delegated tasks fail in the same way
	_, said, code = s.Call("task", "response", "greet", "--artifact", "greetings.txt")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, said, `Did you mean "greeting.txt"?`)
	_, _, code = s.Call("task", "response", "greet", "--artifact", "x", "--json")
	require.Equal(t, cli.ExitUsage, code)
	_, _, code = s.Call("task", "input", "greet", "more")
	require.Equal(t, cli.ExitConflict, code, "it has ended")
	for _, args := range [][]string{{"greet"}, {"greet", "x", "--json-input", "1"}, {"greet", "--json-input", "{"}} {
		_, said, code = s.Call(append([]string{"task", "input"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, said)
	}
	_, _, code = s.Call("task", "response", "nobody")
	require.Equal(t, cli.ExitNotFound, code)
	s.Stop()
}

// aCook returns a team with one scripted agent, which has started and read all its input.
func aCook(t *testing.T) (*stage.Team, *stage.Agent) {
	t.Helper()
	h := stage.NewTeam(t, stage.Scripted("cook"), "cook")
	cook := h.StartAll("cook")[0]
	cook.Settle()
	return h, cook
}

// delegated waits for a line about a task.
func delegated(a *stage.Agent, kind, id string) stage.Message {
	a.T.Helper()
	return a.Wait(kind+" of "+id, func(m *stage.Message) bool { return m.Type == kind && m.ID == id })
}

// responds sends a response.
func responds(a *stage.Agent, id, status, more string) {
	a.T.Helper()
	a.Say(fmt.Sprintf(`{"id":%q,"status":%q%s}`+"\n", id, status, more))
}

// waitForResponse waits until the command line shows this status of a task.
func waitForResponse(s *stage.Orchestrator, id, status string) {
	s.T.Helper()
	stage.WaitFor(s.T, id+" "+status, func() bool {
		return strings.HasPrefix(s.Ask("task", "response", id), id+"  "+status+"\n")
	})
}

// A task that needs input shows its question, and gets the answer from the inbox or by a
// command. It stays the same task.
//
// Rows: D-25, D-37, D-38, K-22.
func TestTaskSubmitAsks(t *testing.T) {
	t.Parallel()
	h, cook := aCook(t)
	h.Write("request.json", `{"id":"stew","type":"cook","payload":{"for":4},"routing":{"target":"cook"}}`)
	require.Equal(t, "stew pending, with cook\n", h.Ask("task", "submit", "request.json"))
	require.Contains(t, delegated(cook, "cook", "stew").Line, `"routing":{"target":"cook","source":"orchestrator","delegationChain":["orchestrator"]}`)
	waitForResponse(h.Orchestrator, "stew", "pending")
	responds(cook, "stew", "in_progress", "")
	waitForResponse(h.Orchestrator, "stew", "in_progress")
	require.Contains(t, h.Ask("task", "submit", "request.json"), "stew in_progress, with cook")

	// the inbox answers
	responds(cook, "stew", "input_required", `,"message":"How hot?","input":{"question":"How hot?","options":[{"value":"mild"},{"value":"hot","label":"as at home"}]}`)
	waitForResponse(h.Orchestrator, "stew", "input_required")
	shown := h.Ask("task", "response", "stew")
	require.Contains(t, shown, "  question  How hot?\n")
	require.Regexp(t, `(?m)^  answers +mild\n +hot  as at home$`, shown)
	asked := h.WaitForQuestions(1)[0]
	h.Ask("inbox", "answer", asked.ID, "hot")
	require.Contains(t, delegated(cook, "task.update", "stew").Line, `"payload":{"input":"hot"}`)
	waitForResponse(h.Orchestrator, "stew", "in_progress")

	// the next question is answered directly, not in the inbox
	responds(cook, "stew", "input_required", `,"message":"How many?"`)
	h.WaitForQuestions(1)
	require.Equal(t, "stew in_progress, with cook\n", h.Ask("task", "input", "stew", "--json-input", `{"plates": 4.0}`))
	cook.Wait("the plates", func(m *stage.Message) bool { return strings.Contains(m.Line, `"payload":{"input":{"plates":4.0}}`) })
	h.WaitForQuestions(0)
	large := strings.Repeat("soup ", 40_000)
	responds(cook, "stew", "completed", fmt.Sprintf(`,"result":[1.0,"hot"],"artifacts":[{"name":"bill","type":"text/plain","content":%q},{"name":"photo","type":"image/png","ref":"https://example.com/1"}]`, large))
	h.Ask("task", "wait", "stew")
	require.Equal(t, large, h.Ask("task", "response", "stew", "--artifact", "bill"))
	_, said, code := h.Call("task", "response", "stew", "--artifact", "photo")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, said, "It is at https://example.com/1")
	require.Contains(t, said, "Fetch it from there")
	require.Contains(t, h.Ask("task", "show", "stew"), "  artifacts     bill   text/plain  195K\n                photo  image/png   at https://example.com/1\n")
	require.Equal(t, "stew\n", h.Ask("task", "ls", "-q"), "one task throughout")
	cook.Exit(0)
	h.Stop()
}

// Interrupting --wait leaves the task alone. It exits with ExitNo if the task fails or is
// cancelled. A reload changes the number of retries.
//
// Rows: D-24, D-29, D-44.
func TestTaskSubmitWaits(t *testing.T) {
	t.Parallel()
	h, cook := aCook(t)
	request := func(id string) {
		h.Write("request.json", fmt.Sprintf(`{"id":%q,"type":"cook","payload":{},"routing":{"target":"cook"}}`, id))
	}
	begin := func(id string) (*exec.Cmd, *stage.Output, *stage.Output) {
		request(id)
		cmd := exec.Command(h.Program, "task", "submit", "request.json", "--wait", "--state-dir", h.State())
		out, cried := new(stage.Output), new(stage.Output)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.Dir, h.Environ(), out, cried
		require.NoError(t, cmd.Start())
		delegated(cook, "cook", id)
		return cmd, out, cried
	}
	waits, out, cried := begin("rice")
	stage.WaitFor(t, "its first word", func() bool { return strings.Contains(out.All(), "rice pending, with cook\n") })
	require.NoError(t, waits.Process.Signal(os.Interrupt))
	require.Error(t, waits.Wait())
	require.Equal(t, cli.ExitInterrupted, waits.ProcessState.ExitCode(), "%s", cried.All())
	require.Contains(t, cried.All(), "The tasks continue. Wait again: orchestrator task wait rice")
	waitForResponse(h.Orchestrator, "rice", "pending")
	require.Contains(t, h.Ask("why", "rice"), "cook has received it but has not reported a start.")
	h.Ask("task", "cancel", "rice", "-m", "there is no hunger left")
	require.Contains(t, delegated(cook, "task.cancel", "rice").Line, `"reason":"there is no hunger left"`)

	const burnt = `,"error":{"code":"POT_LOST","message":"It has burnt","details":{"pot":7.0},"recoverable":true}`
	waits, out, _ = begin("peas")
	responds(cook, "peas", "failed", burnt)
	require.Error(t, waits.Wait())
	require.Equal(t, cli.ExitNo, waits.ProcessState.ExitCode())
	require.Contains(t, out.All(), "\n  error    POT_LOST: It has burnt\n  details  {\"pot\":7.0}\n")
	require.Contains(t, out.All(), "a retry may succeed\n")

	h.Write("orchestrator.hcl", stage.Scripted("cook")+"scheduler {\n  delegation_retries = 1\n}\n")
	require.Contains(t, h.Ask("reload"), "scheduler.delegation_retries")
	waits, out, _ = begin("beans")
	responds(cook, "beans", "failed", burnt)
	stage.WaitFor(t, "another try", func() bool {
		n := 0
		for _, m := range cook.All() {
			if m.Type == "cook" && m.ID == "beans" {
				n++
			}
		}
		return n == 2
	})
	responds(cook, "beans", "completed", "")
	require.NoError(t, waits.Wait(), out.All())
	require.Regexp(t, `(?m)^  retries  1$`, out.All())
	cook.Exit(0)
	h.Stop()
}

// A trace is passed on from the header of an HTTP request to the agent, and back in the header
// of the answer.
//
// Rows: D-13, D-15, D-43.
func TestTaskSubmitInATrace(t *testing.T) {
	t.Parallel()
	h, cook := aCook(t)
	const traceID, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	post := func(path, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://orchestrator/api/v1/"+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Traceparent", "00-"+traceID+"-"+span+"-01")
		answer, err := h.Door().Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		var task struct{ ID string }
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&task))
		require.Less(t, answer.StatusCode, 300)
		return answer, task.ID
	}
	own := func(id string) string { return "00-" + traceID + "-" + trace.SpanIDOf([]byte(id)) + "-01" }
	answer, _ := post("operations/submit-task-request", `{"id":"soup","type":"cook","payload":{},"routing":{"target":"cook"},"observability":{"baggage":{"n":1.0}}}`)
	require.Equal(t, own("soup"), answer.Header.Get("Traceparent"))
	require.Contains(t, delegated(cook, "cook", "soup").Line, `"observability":{"baggage":{"n":1.0},"traceId":"`+traceID+`","spanId":"`+span+`"}`)
	answer, _ = post("operations/get-task-response", `{"taskId":"soup"}`)
	require.Equal(t, own("soup"), answer.Header.Get("Traceparent"))
	answer, id := post("tasks", `{"title":"Lay the table","spec":"for four"}`)
	require.Equal(t, own(id), answer.Header.Get("Traceparent"))
	require.Regexp(t, `(?m)^  trace +`+traceID+`$`, h.Ask("task", "show", id))
	cook.Exit(0)
	h.Stop()
}
