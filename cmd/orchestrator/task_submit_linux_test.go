package main

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
	for _, sample := range source.Fences(t, "help/delegation.md") {
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

// serving waits until the orchestrator answers.
func (s *stage) serving() {
	s.t.Helper()
	waitForThat(s.t, "an orchestrator", func() bool { _, _, code := s.call("status"); return code == cli.ExitOK })
}

// The agent of the page does the request of the page, and the commands show its response.
//
// Rows: D-05, D-36.
func TestTaskSubmit(t *testing.T) {
	t.Parallel()
	m := readDelegationManual(t)
	s := newStage(t, strings.Join(m.hcl, ""), "linguist.sh", m.agent, "request.json", m.request).up("--json")
	s.serving()
	shown := s.ask("task", "submit", "request.json", "--wait")
	require.Regexp(t, `^greeting-1 (pending|in_progress|completed), with linguist`, shown)
	require.Regexp(t, `(?m)^greeting-1  completed\n  agent      linguist\n`, shown)
	require.Contains(t, shown, "\n  result     {\"text\":\"bonjour\"}\n  artifacts  greeting.txt  text/plain  7 bytes\n")

	// views of the response
	require.Equal(t, "bonjour", s.ask("task", "response", "greet", "--artifact", "greeting.txt"))
	require.Contains(t, s.ask("task", "response", "greeting-1"), "  artifacts  greeting.txt  text/plain  7 bytes\n")
	shown = s.ask("task", "show", "greet")
	for _, row := range []string{
		`  asked by      orchestrator`, `  asked of      linguist`, `  by way of     orchestrator`, `  conversation  guide`,
		`  trace         [0-9a-f]{32}`, `  span          [0-9a-f]{16}`, `  artifacts     greeting.txt  text/plain  7 bytes`,
	} {
		require.Regexp(t, "(?m)^"+row+"$", shown)
	}
	require.NotContains(t, shown, "requires")

	// a repeat has no effect; JSON output
	require.Equal(t, "greeting-1\n", s.ask("task", "submit", "request.json", "-q"))
	var document struct {
		FormatVersion string              `json:"format_version"`
		ID            string              `json:"id"`
		Status        string              `json:"status"`
		Metadata      delegation.Metadata `json:"metadata"`
	}
	for _, more := range [][]string{{"--json"}, {"--json", "--wait"}} {
		require.NoError(t, json.Unmarshal([]byte(s.ask(append([]string{"task", "submit", "request.json"}, more...)...)), &document))
		require.Equal(t, []string{wire.FormatVersion, "greeting-1", "completed"}, []string{document.FormatVersion, document.ID, document.Status})
		require.Equal(t, "linguist", document.Metadata.Agent)
	}

	// a request without an id gets a new one each time
	s.write("other.json", `{"type": "translate",`+"\n"+` "payload": {"n": 1.00E+2}}`)
	first, second := s.ask("task", "submit", "other.json", "-q"), s.ask("task", "submit", "other.json", "-q")
	require.NotEqual(t, first, second)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`, first)
	require.Contains(t, s.ask("task", "show", strings.TrimSpace(first), "--json"), `"payload":{"n":1.00E+2}`)
	s.ask("task", "wait", strings.TrimSpace(first), strings.TrimSpace(second))

	// tasks of a conversation
	require.Equal(t, "greeting-1\n", s.ask("task", "ls", "--conversation", "guide", "-q"))
	require.Contains(t, s.ask("task", "ls", "--conversation", "nothing"), "No task is like that.")
	require.Len(t, strings.Fields(s.ask("task", "ls", "-q")), 3)
	s.stop()
}

// An invalid request is reported with its place before it is sent. Other refusals come from the
// orchestrator.
//
// Rows: D-10, D-16, D-39.
func TestTaskSubmitRefused(t *testing.T) {
	t.Parallel()
	m := readDelegationManual(t)
	s := newStage(t, strings.Join(m.hcl, ""), "linguist.sh", m.agent, "request.json", m.request)
	refused := func(exit int, request string, lines ...string) {
		t.Helper()
		s.write("odd.json", request)
		stdout, said, code := s.call("task", "submit", "odd.json", "--wait")
		require.Equal(t, exit, code, said)
		require.Empty(t, stdout)
		require.Equal(t, "Error: "+strings.Join(lines, "\n  = ")+"\n", said)
	}
	const hint = "What one looks like: orchestrator help delegation"
	refused(cli.ExitNo, `{"type":7,"payload":[],"routing":{"source":3},"context":{"priority":"soon"}}`,
		"odd.json is no task request: type must be a string", "/type: type must be a string", "/payload: payload must be an object",
		`/context/priority: context.priority must be one of low, normal, high or urgent, not "soon"`, "/routing/source: routing.source must be a string", hint)
	refused(cli.ExitNo, `{"id":null,"type":"translate","payload":{}}`, "odd.json is no task request: id must not be null", "/id: id must not be null", hint)
	_, said, code := s.call("task", "submit", "odd.json", "--json")
	require.Equal(t, cli.ExitNo, code)
	require.Empty(t, said)
	for _, request := range []string{"nope", "[1]", "null", "", `{"a":`} {
		s.write("odd.json", request)
		_, said, code := s.call("task", "submit", "odd.json")
		require.Equal(t, cli.ExitNo, code, request)
		require.Contains(t, said, "Error: odd.json is no task request: ")
	}
	for _, args := range [][]string{
		{"request.json", "--format", "e"}, {"nowhere.json"}, {}, {"request.json", "request.json"},
	} {
		_, said, code = s.call(append([]string{"task", "submit"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, said)
	}
	refused(cli.ExitNotRunning, m.request, "no orchestrator is running for "+s.state(), "Start it: orchestrator up --state-dir "+s.state())

	s.up("--json")
	s.serving()
	refused(cli.ExitNotFound, `{"type":"translate","payload":{},"routing":{"target":"linguis"}}`,
		`no agent is called "linguis".  Did you mean "linguist"?`, "See which there are: orchestrator agent ls")
	refused(cli.ExitNotFound, `{"type":"cook","payload":{}}`, `no agent does "cook"`, "See who does what: orchestrator agent show NAME")
	refused(cli.ExitDenied, `{"type":"translate","payload":{},"routing":{"source":"linguist"}}`,
		`"linguist" is an agent, and does not ask for this itself`, "At /routing/source")
	s.ask("task", "submit", "request.json", "--wait")
	s.write("odd.json", strings.Replace(m.request, "morning", "evening", 1))
	_, said, code = s.call("task", "submit", "odd.json")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, said, "Give every request an id of its own")

	// commands on delegated tasks fail in the same way
	_, said, code = s.call("task", "response", "greet", "--artifact", "greetings.txt")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, said, `Did you mean "greeting.txt"?`)
	_, _, code = s.call("task", "response", "greet", "--artifact", "x", "--json")
	require.Equal(t, cli.ExitUsage, code)
	_, _, code = s.call("task", "input", "greet", "more")
	require.Equal(t, cli.ExitConflict, code, "it has ended")
	for _, args := range [][]string{{"greet"}, {"greet", "x", "--json-input", "1"}, {"greet", "--json-input", "{"}} {
		_, said, code = s.call(append([]string{"task", "input"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, said)
	}
	_, _, code = s.call("task", "response", "nobody")
	require.Equal(t, cli.ExitNotFound, code)
	s.stop()
}

// aCook returns a theatre with one puppet, which has started and read all its input.
func aCook(t *testing.T) (*theatre, *actor) {
	t.Helper()
	h := troupe(t, puppets("cook"), "cook")
	cook := h.cast("cook")[0]
	cook.quiet()
	return h, cook
}

// delegated waits for a line about a task.
func (a *actor) delegated(kind, id string) message {
	a.t.Helper()
	return a.wait(kind+" of "+id, func(m *message) bool { return m.Type == kind && m.ID == id })
}

// responds sends a response.
func (a *actor) responds(id, status, more string) {
	a.t.Helper()
	a.say(fmt.Sprintf(`{"id":%q,"status":%q%s}`+"\n", id, status, more))
}

// waitForResponse waits until the command line shows this status of a task.
func (s *stage) waitForResponse(id, status string) {
	s.t.Helper()
	waitForThat(s.t, id+" "+status, func() bool {
		return strings.HasPrefix(s.ask("task", "response", id), id+"  "+status+"\n")
	})
}

// A task that needs input shows its question, and gets the answer from the inbox or by a
// command. It stays the same task.
//
// Rows: D-25, D-37, D-38, K-22.
func TestTaskSubmitAsks(t *testing.T) {
	t.Parallel()
	h, cook := aCook(t)
	h.write("request.json", `{"id":"stew","type":"cook","payload":{"for":4},"routing":{"target":"cook"}}`)
	require.Equal(t, "stew pending, with cook\n", h.ask("task", "submit", "request.json"))
	require.Contains(t, cook.delegated("cook", "stew").line, `"routing":{"target":"cook","source":"orchestrator","delegationChain":["orchestrator"]}`)
	h.waitForResponse("stew", "pending")
	cook.responds("stew", "in_progress", "")
	h.waitForResponse("stew", "in_progress")
	require.Contains(t, h.ask("task", "submit", "request.json"), "stew in_progress, with cook")

	// the inbox answers
	cook.responds("stew", "input_required", `,"message":"How hot?","input":{"question":"How hot?","options":[{"value":"mild"},{"value":"hot","label":"as at home"}]}`)
	h.waitForResponse("stew", "input_required")
	shown := h.ask("task", "response", "stew")
	require.Contains(t, shown, "  question  How hot?\n")
	require.Regexp(t, `(?m)^  answers +mild\n +hot  as at home$`, shown)
	asked := h.waitForQuestions(1)[0]
	h.ask("inbox", "answer", asked.ID, "hot")
	require.Contains(t, cook.delegated("task.update", "stew").line, `"payload":{"input":"hot"}`)
	h.waitForResponse("stew", "in_progress")

	// the next question is answered directly, not in the inbox
	cook.responds("stew", "input_required", `,"message":"How many?"`)
	h.waitForQuestions(1)
	require.Equal(t, "stew in_progress, with cook\n", h.ask("task", "input", "stew", "--json-input", `{"plates": 4.0}`))
	cook.wait("the plates", func(m *message) bool { return strings.Contains(m.line, `"payload":{"input":{"plates":4.0}}`) })
	h.waitForQuestions(0)
	large := strings.Repeat("soup ", 40_000)
	cook.responds("stew", "completed", fmt.Sprintf(`,"result":[1.0,"hot"],"artifacts":[{"name":"bill","type":"text/plain","content":%q},{"name":"photo","type":"image/png","ref":"https://example.com/1"}]`, large))
	h.ask("task", "wait", "stew")
	require.Equal(t, large, h.ask("task", "response", "stew", "--artifact", "bill"))
	_, said, code := h.call("task", "response", "stew", "--artifact", "photo")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, said, "It is at https://example.com/1")
	require.Contains(t, said, "Get it from there")
	require.Contains(t, h.ask("task", "show", "stew"), "  artifacts  bill   text/plain  195K\n             photo  image/png   at https://example.com/1\n")
	require.Equal(t, "stew\n", h.ask("task", "ls", "-q"), "one task throughout")
	cook.exit(0)
	h.stop()
}

// Interrupting --wait leaves the task alone. It exits with ExitNo if the task fails or is
// cancelled. A reload changes the number of retries.
//
// Rows: D-24, D-29, D-44.
func TestTaskSubmitWaits(t *testing.T) {
	t.Parallel()
	h, cook := aCook(t)
	request := func(id string) {
		h.write("request.json", fmt.Sprintf(`{"id":%q,"type":"cook","payload":{},"routing":{"target":"cook"}}`, id))
	}
	begin := func(id string) (*exec.Cmd, *transcript, *transcript) {
		request(id)
		cmd := exec.Command(h.program, "task", "submit", "request.json", "--wait", "--state-dir", h.state())
		out, cried := new(transcript), new(transcript)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, h.environ(), out, cried
		require.NoError(t, cmd.Start())
		cook.delegated("cook", id)
		return cmd, out, cried
	}
	waits, out, cried := begin("rice")
	waitForThat(t, "its first word", func() bool { return strings.Contains(out.all(), "rice pending, with cook\n") })
	require.NoError(t, waits.Process.Signal(os.Interrupt))
	require.Error(t, waits.Wait())
	require.Equal(t, cli.ExitInterrupted, waits.ProcessState.ExitCode(), "%s", cried.all())
	require.Contains(t, cried.all(), "Nothing was stopped. Wait again: orchestrator task wait rice")
	h.waitForResponse("rice", "pending")
	require.Contains(t, h.ask("why", "rice"), "cook was brought it, and has not said that it has begun.")
	h.ask("task", "cancel", "rice", "-m", "there is no hunger left")
	require.Contains(t, cook.delegated("task.cancel", "rice").line, `"reason":"there is no hunger left"`)

	const burnt = `,"error":{"code":"POT_LOST","message":"It has burnt","details":{"pot":7.0},"recoverable":true}`
	waits, out, _ = begin("peas")
	cook.responds("peas", "failed", burnt)
	require.Error(t, waits.Wait())
	require.Equal(t, cli.ExitNo, waits.ProcessState.ExitCode())
	require.Contains(t, out.all(), "\n  error    POT_LOST: It has burnt\n  details  {\"pot\":7.0}\n")
	require.Contains(t, out.all(), "another try may go well\n")

	h.write("orchestrator.hcl", puppets("cook")+"scheduler {\n  delegation_retries = 1\n}\n")
	require.Contains(t, h.ask("reload"), "scheduler.delegation_retries")
	waits, out, _ = begin("beans")
	cook.responds("beans", "failed", burnt)
	waitForThat(t, "another try", func() bool {
		n := 0
		for _, m := range cook.all() {
			if m.Type == "cook" && m.ID == "beans" {
				n++
			}
		}
		return n == 2
	})
	cook.responds("beans", "completed", "")
	require.NoError(t, waits.Wait(), out.all())
	require.Regexp(t, `(?m)^  tried again  once$`, out.all())
	cook.exit(0)
	h.stop()
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
		answer, err := h.door().Do(r)
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
	require.Contains(t, cook.delegated("cook", "soup").line, `"observability":{"baggage":{"n":1.0},"traceId":"`+traceID+`","spanId":"`+span+`"}`)
	answer, _ = post("operations/get-task-response", `{"taskId":"soup"}`)
	require.Equal(t, own("soup"), answer.Header.Get("Traceparent"))
	answer, id := post("tasks", `{"title":"Lay the table","spec":"for four"}`)
	require.Equal(t, own(id), answer.Header.Get("Traceparent"))
	require.Regexp(t, `(?m)^  trace +`+traceID+`$`, h.ask("task", "show", id))
	cook.exit(0)
	h.stop()
}
