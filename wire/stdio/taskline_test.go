package stdio

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// whose returns a reader of the lines of an agent that has all tasks, or none.
func whose(agent string, given bool) *Reader {
	return &Reader{Agent: agent, Depth: 64, Given: func(string) bool { return given }}
}

// refusedLine parses a line of kitchen, which has no task, and requires a refusal.
func refusedLine(t *testing.T, line string) *wire.Refused {
	t.Helper()
	m := whose("kitchen", false).Parse([]byte(line))
	refused, ok := m.(*wire.Refused)
	require.True(t, ok, "%#v\n%s", m, line)
	require.True(t, refused.Request)
	return refused
}

// requireOutlived requires that a parsed message does not change when its line is overwritten.
func requireOutlived(t *testing.T, m wire.Message, line []byte) {
	t.Helper()
	switch m := m.(type) {
	case *wire.Session:
	case *wire.Request:
		if m.Body == nil {
			return
		}
	case *wire.AgentEvent:
		if m.Body == nil {
			return
		}
	case *wire.Refused:
		if m.Form != dialect.TaskRequest && m.Form != dialect.TaskAct {
			return
		}
	default:
		return
	}
	room := append([]byte(nil), line...)
	again := reader().Parse(room)
	for i := range room {
		room[i] = 'x'
	}
	require.Equal(t, m, again, "%q", line)
}

// requireNotHeard requires that the reply to a refused message is log output. Otherwise an agent
// that prints its input would get replies forever.
func requireNotHeard(t *testing.T, m wire.Message) {
	t.Helper()
	refused, ok := m.(*wire.Refused)
	if !ok || !refused.Request {
		return
	}
	answer := noon.AppendRefused(nil, refused.Form, refused.ID, refused.Err)
	keysOf(t, answer)
	require.IsType(t, wire.Log{}, reader().Parse(answer[:len(answer)-1]), "%s", answer)
	require.IsType(t, wire.Log{}, reader().ParseHead(answer[:len(answer)/2], "cut"), "%s", answer)
}

// Rows: D-01, D-02, D-03, D-04, D-10, D-17, D-39.
func TestTaskRequestsOnALine(t *testing.T) {
	line := string(encoded(t, fullRequest(t)))
	want := requested(t, line)
	for _, text := range []string{line, " " + line + "\r", strings.Replace(line, `"kitchen","target"`, "\r \"kitchen\"\r ,\"target\"", 1)} {
		room := []byte(text)
		m, ok := whose("kitchen", false).Parse(room).(*wire.Request)
		require.True(t, ok, text)
		clear(room)
		body := m.Body.(*delegation.Request)
		require.Equal(t, want.Routing, body.Routing)
		require.NotContains(t, string(body.Document), "\r")
		body.Document = want.Document
		require.Equal(t, &wire.Request{ID: want.ID, Operation: "submit-task-request", Body: want, Sum: want.Sum, Form: dialect.TaskRequest}, m)
		require.Equal(t, string(object.Quote(want.ID)), string(m.RawID()))
	}
	bare := []byte(`{"id":"tea-7","type":"weigh_tea","payload":{}}`)
	require.IsType(t, &wire.Request{}, (&Reader{Agent: "kitchen", Depth: 64}).Parse(bare), "nobody has a task")
}

// TestTaskRequestsOfOthers checks that an agent cannot make a request in the name of another.
//
// Rows: D-10, K-06, T-02.
func TestTaskRequestsOfOthers(t *testing.T) {
	line := string(encoded(t, fullRequest(t)))
	m, ok := whose("scale", false).Parse([]byte(line)).(*wire.Refused)
	require.True(t, ok)
	err := object.Denied("/routing/source", `source is "kitchen", but this is the stream of "scale"`)
	require.Equal(t, &wire.Refused{ID: object.Quote(fullRequest(t)["id"].(string)), Type: "task:request", Request: true, Form: dialect.TaskRequest, Err: err}, m)
	for _, own := range []string{`"source":"scale"`, `"source":""`, `"source":null`, `"later":1`} {
		require.IsType(t, &wire.Request{}, whose("scale", false).Parse([]byte(strings.Replace(line, `"source":"kitchen"`, own, 1))), own)
	}
}

// Rows: D-37, D-38, T-32.
func TestActsOnALine(t *testing.T) {
	for line, want := range map[string]wire.Request{
		`{"id":"tea-7","type":"task.status","payload":{}}`:                     {Operation: "get-task-response", Body: &wire.GetTaskResponse{TaskID: "tea-7", Check: true}},
		`{"id":"tea-7","type":"task.update","payload":{"input":{"n":1.50}}}`:   {Operation: "update-task-request", Body: &wire.UpdateTaskRequest{TaskID: "tea-7", Input: wire.Raw(`{"n":1.50}`)}},
		`{"id":"tea-7","type":"task.update","payload":{"input":null},"x":{}}`:  {Operation: "update-task-request", Body: &wire.UpdateTaskRequest{TaskID: "tea-7", Input: wire.Raw("null")}},
		`{"id":"tea-7","type":"task.cancel","payload":{"reason":"coffee"}}`:    {Operation: "cancel-task", Body: &wire.CancelTask{TaskID: "tea-7", Reason: "coffee"}},
		`{"id":"tea-7","type":"task.cancel","timestamp":"now","payload":{}}`:   {Operation: "cancel-task", Body: &wire.CancelTask{TaskID: "tea-7"}},
		`{"id":"tea\u002d7","type":"task.status","payload":{},"context":null}`: {Operation: "get-task-response", Body: &wire.GetTaskResponse{TaskID: "tea-7", Check: true}},
	} {
		room := []byte(line)
		m := whose("kitchen", false).Parse(room)
		clear(room)
		want.ID, want.Form = "tea-7", dialect.TaskAct
		require.Equal(t, &want, m, line)
		require.IsType(t, wire.Log{}, whose("kitchen", true).Parse([]byte(line)), line)
	}
	for line, want := range map[string]string{
		`{"id":"1","type":"task.status"}`:                        `"1" task:status /payload: payload is missing`,
		`{"id":"1","type":"task.update","payload":{}}`:           `"1" task:update /payload/input: input is missing`,
		`{"id":7,"type":"task.cancel","payload":{}}`:             `7 task:cancel /id: id must be a string`,
		`{"id":null,"type":"task.status","payload":{}}`:          ` task:status /id: id must not be null`,
		`{"id":"1","type":"task.cancel","payload":{"reason":7}}`: `"1" task:cancel /payload/reason: reason must be a string`,
	} {
		m := refusedLine(t, line)
		require.Equal(t, want, string(m.ID)+" "+m.Type+" "+strings.Join(m.Err.Complaints(), "\n"), line)
		require.Equal(t, dialect.TaskAct, m.Form)
	}
}

// Rows: D-18, D-19, D-27, T-33.
func TestTaskResponsesOnALine(t *testing.T) {
	for _, example := range delegatedExamples(t, "task-response") {
		line := encoded(t, example)
		want := &wire.AgentEvent{ID: example["id"].(string), Name: wire.ReportTaskResponse, Body: responded(t, string(line))}
		require.Equal(t, wire.Log{}, whose("scale", false).Parse(line), "of a task that it has not")
		require.Equal(t, wire.Log{}, (&Reader{Agent: "scale", Depth: 64}).Parse(line), "nobody has a task")
		m := whose("scale", true).Parse(line)
		clear(line)
		require.Equal(t, want, m)
	}
	m, ok := whose("scale", true).Parse([]byte(`{"id":"tea-7","status":"in_progress","result":{},"metadata":{"duration_ms":-1}}`)).(*wire.Refused)
	require.True(t, ok)
	require.Equal(t, []string{
		"/result: result must not be set with the status in_progress: only completed has it",
		"/metadata/duration_ms: metadata.duration_ms must be a whole number from 0 to 9007199254740991",
	}, m.Err.Complaints())
	m.Err = nil
	require.Equal(t, &wire.Refused{ID: []byte(`"tea-7"`), Type: "task:response", Request: true, Form: dialect.TaskAct}, m)
}

// TestEchoesOfDelegatedWork checks that an agent that prints its input starts nothing. The lines
// are about a task that it has or one that it delegated.
//
// Rows: D-17, T-02, T-32.
func TestEchoesOfDelegatedWork(t *testing.T) {
	request := requested(t, string(encoded(t, fullRequest(t))))
	told := [][]byte{request.Forwarded(delegation.Forwarding{Source: "kitchen", Target: "scale", Chain: []string{"kitchen"}})}
	for _, kind := range delegation.Acts {
		told = append(told, delegation.AppendAct(nil, &delegation.Act{ID: request.ID, Type: kind, Input: wire.Raw("1"), Reason: "r"}))
	}
	for _, line := range told {
		m, ok := whose("scale", true).Parse(line).(wire.Log)
		require.True(t, ok, "%s", line)
		require.Contains(t, m.Why, "an echo of ")
		for cut := range line {
			require.IsType(t, wire.Log{}, whose("scale", true).ParseHead(line[:cut], "cut"), "%s", line[:cut])
		}
		require.IsType(t, wire.Log{}, whose("scale", true).Parse([]byte(twice(string(line), "payload"))))
	}
	for _, status := range delegation.Statuses {
		line := delegation.AppendResponse(nil, &delegation.Response{ID: request.ID, Status: status})
		require.Equal(t, wire.Log{}, whose("kitchen", false).Parse(line))
		for cut := range line {
			require.IsType(t, wire.Log{}, whose("kitchen", false).ParseHead(line[:cut], "cut"))
		}
	}
}

// TestSpoiledTaskMessages checks that an unreadable request for work is refused if the line must
// be one.
//
// Rows: D-01, D-10, T-02.
func TestSpoiledTaskMessages(t *testing.T) {
	const ask = `{"id":"tea-7","type":"weigh_tea",`
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	spoiled := map[string]*wire.Refused{
		ask + `"payload":{"x":"\ud800"}}`:                                             {Type: "task:request", Form: dialect.TaskRequest},
		ask + `"payload":{"x":` + deep + `}}`:                                         {Type: "task:request", Form: dialect.TaskRequest},
		ask + `"payload":{},"x":` + deep + `}`:                                        {Type: "task:request", Form: dialect.TaskRequest},
		ask + `"routing":{"source":"kitchen"},"payload":` + deep + `}`:                {Type: "task:request", Form: dialect.TaskRequest},
		ask + `"payload":{},"payload":{}}`:                                            {Type: "task:request", Form: dialect.TaskRequest},
		`{"id":"tea-8",` + ask[1:] + `"payload":{}}`:                                  {Type: "task:request", Form: dialect.TaskRequest},
		ask + `"payload":{},"id":8}`:                                                  nil,
		ask + `"payload":{},"context":{},"context":{}}`:                               {Type: "task:request", Form: dialect.TaskRequest},
		ask + `"timestamp":"x","context":{},"payload":{},"payload":7}`:                {Type: "task:request", Form: dialect.TaskRequest},
		`{"id":"tea-7","type":"task.update","payload":{"input":` + deep + `}}`:        {Type: "task:update", Form: dialect.TaskAct},
		`{"id":"tea-7","type":"task.status","payload":{},"payload":{}}`:               {Type: "task:status", Form: dialect.TaskAct},
		`{"id":"tea-7","type":"task.cancel","payload":{},"timestamp":1,"x":tru`:       nil,
		ask + `"payload":{},"type":"weigh_milk"}`:                                     nil,
		ask + `"payload":{},"routing":{},"routing":{}}`:                               nil,
		ask + `"payload":{},"routing":{"source":"scale"},"x":"\ud800"}`:               nil,
		ask + `"payload":{},"routing":{"source":7},"x":"\ud800"}`:                     nil,
		ask + `"payload":{},"routing":{"source":"kitchen","source":""},"x":"\ud800"}`: nil,
		ask + `"payload":{},"routing":{"x":` + deep + `}}`:                            nil,
		ask + `"timestamp":"x","payload":{"x":"\ud800"}}`:                             nil,
		ask + `"timestamp":"x","payload":{},"payload":{}}`:                            nil,
		ask + `"x":"\ud800"}`:                                                         nil,
		`{"id":7,"type":"weigh_tea","payload":{"x":"\ud800"}}`:                        nil,
		`{"type":"weigh_tea","payload":{"x":"\ud800"}}`:                               nil,
		`{"id":"tea-7","type":"notify:x","payload":{},"payload":{}}`:                  nil,
		ask + `"jsonrpc":"2.0","payload":{},"payload":{}}`:                            nil,
		ask + `"message_type":"x","payload":{},"payload":{}}`:                         nil,
		ask + `"from_actor":"GO","payload":{},"payload":{}}`:                          nil,
		ask + `"from_actor":"GO","payload":{"x":"\ud800"}}`:                           nil,
		ask + `"from_actor":"GO","seq":1,"created_at":"x","payload":{},"payload":1}`:  nil,
		`{"id":"tea-7","status":"completed","result":"\ud800"}`:                       nil,
		`{"id":"tea-7","status":"completed","type":7,"result":"\ud800"}`:              nil,
	}
	for line, want := range spoiled {
		room := []byte(line)
		m := whose("kitchen", false).Parse(room)
		clear(room)
		require.IsType(t, wire.Log{}, whose("kitchen", true).Parse([]byte(strings.Replace(line, "status\":\"completed", "x\":\"", 1))), line)
		refused, ok := m.(*wire.Refused)
		require.Equal(t, want != nil, ok, "%#v\n%s", m, line)
		if !ok {
			require.IsType(t, wire.Log{}, m, line)
			continue
		}
		require.Contains(t, refused.Err.Message, "the message cannot be taken: ")
		require.Equal(t, wire.CodeInvalid, refused.Err.Code)
		want.ID, want.Request, want.Err = []byte(`"tea-7"`), true, refused.Err
		require.Equal(t, want, refused, line)
	}
}

// TestUnfinishedTaskMessages checks the beginnings of lines that are too long.
//
// Rows: D-01, D-18.
func TestUnfinishedTaskMessages(t *testing.T) {
	for _, test := range []struct {
		head  string
		given bool
		kind  string
	}{
		{`{"id":"tea-7","type":"weigh_tea","payload":{"x":"`, false, "task:request"},
		{`{"id":"tea-7","type":"weigh_tea","payload":{"x":"`, true, ""},
		{`{"type":"weigh_tea","id":"tea-7","context":{},"timestamp":"x","pay\u006coad" : {`, false, "task:request"},
		{`{"id":"tea-7","type":"weigh_tea","timestamp":"x","payload":{`, false, ""},
		{`{"id":"tea-7","type":"weigh_tea","payload`, false, ""},
		{`{"id":"tea-7","type":"weigh_tea","payload"`, false, ""},
		{`{"id":"tea-7","type":"weigh_tea"`, false, ""},
		{`{"payload":{"x":"`, false, ""}, {`{`, false, ""}, {``, false, ""}, {`x`, false, ""},
		{`{"id":"tea-7","type":"weigh_tea","payload":{},"routing":{"sou`, false, ""},
		{`{"id":"tea-7","type":"weigh_tea","payload":{},"routing":{"source":"scale"},"x":"`, false, ""},
		{`{"id":"tea-7","type":"info","message":"`, false, ""},
		{`{"id":"tea-7","type":"task.update","payload":{"input":"`, false, "task:update"},
		{`{"id":"tea-7","type":"task.update","payload":{"input":"`, true, ""},
		{`{"id":"tea-7","status":"completed","artifacts":[{"`, true, "task:response"},
		{`{"id":"tea-7","status":"completed","artifacts":[{"`, false, ""},
		{`{"id":"tea-7","status":"running","title":"`, true, ""},
	} {
		m := whose("kitchen", test.given).ParseHead([]byte(test.head), "its line is 17 MiB long")
		if test.kind == "" {
			require.Equal(t, wire.Log{Why: "its line is 17 MiB long"}, m, test.head)
			continue
		}
		refused, ok := m.(*wire.Refused)
		require.True(t, ok, test.head)
		require.Equal(t, test.kind, refused.Type)
		require.Equal(t, `"tea-7"`, string(refused.ID))
		require.Equal(t, "the message cannot be taken: its line is 17 MiB long", refused.Err.Message)
	}
}

// TestTaskLinesByChance changes lines of this dialect at random. An agent never requests a task
// that it has, nor responds to one that it does not have. A message does not refer to its line,
// and no reply is read as a message.
//
// Rows: D-17, D-18, T-02, T-32.
func TestTaskLinesByChance(t *testing.T) {
	for name := range taskReaders {
		chance := rand.New(rand.NewPCG(5, uint64(len(name))))
		examples := delegatedExamples(t, name)
		heard, refused, tries := 0, 0, rounds(2000)
		for range tries {
			doc := any(examples[chance.IntN(len(examples))])
			if doc = with(doc, "/id", []string{"mine", "1"}[chance.IntN(2)]); name == "task-request" && chance.IntN(2) == 0 {
				doc = with(doc, "/routing", gone)
			}
			for range chance.IntN(3) {
				doc = mutated(chance, doc)
			}
			line := encoded(t, doc)
			if chance.IntN(8) == 0 && len(line) > 2 && line[0] == '{' {
				line = append([]byte(`{"payload":{"x":1},`), line[1:]...)
			}
			m := reader().Parse(line)
			given := strings.Contains(string(line), `"id":"mine"`)
			switch m := m.(type) {
			case *wire.Request:
				require.False(t, given && m.Form >= dialect.TaskRequest, "%s", line)
				heard++
			case *wire.AgentEvent:
				require.True(t, given, "%s", line)
				heard++
			case *wire.Refused:
				require.False(t, given && m.Form == dialect.TaskRequest, "%s", line)
				require.False(t, !given && m.Type == typeTaskResponse, "%s", line)
				refused++
			}
			requireOutlived(t, m, line)
			requireNotHeard(t, m)
		}
		require.Greater(t, heard, tries/20, name)
		require.Greater(t, refused, tries/100, name)
	}
}

// TestCheckReadsDelegatedWork checks that Check returns the errors of a message, whatever agent
// sends it and whatever tasks it has.
//
// Rows: D-10, D-18.
func TestCheckReadsDelegatedWork(t *testing.T) {
	for _, agent := range []string{"", "me", "kitchen"} {
		r := &Reader{Agent: agent, Depth: 64}
		m, ok := r.Check(encoded(t, fullRequest(t))).(*wire.Request)
		require.True(t, ok, agent)
		require.Equal(t, "kitchen", m.Body.(*delegation.Request).Routing.Source)
		for _, name := range []string{"task-response", "task-act"} {
			for _, example := range delegatedExamples(t, name) {
				switch m := r.Check(encoded(t, example)).(type) {
				case *wire.Request:
					require.Equal(t, "task-act", name)
				case *wire.AgentEvent:
					require.IsType(t, &delegation.Response{}, m.Body)
				default:
					require.Fail(t, "it is none", "%#v\n%v", m, example)
				}
			}
		}
		refused, ok := r.Check([]byte(`{"id":"1","status":"pending","result":1}`)).(*wire.Refused)
		require.True(t, ok, agent)
		require.Equal(t, "task:response", refused.Type)
		refused, ok = r.Check([]byte(`{"id":"1","type":"t","payload":[],"routing":{"source":"x"}}`)).(*wire.Refused)
		require.True(t, ok, agent)
		require.Equal(t, "/payload", refused.Err.Details["pointer"])
		require.Equal(t, wire.Log{}, r.Check([]byte(`{"level":"info","msg":"x"}`)))
	}
	require.Equal(t, wire.Log{}, whose("scale", false).Check([]byte(`{"id":"1","status":"pending","result":1}`)), "somebody knows")
	echo := &Reader{Agent: "coder", Depth: 64}
	require.Equal(t, wire.Log{Why: "an echo of a session message"}, echo.Check([]byte(shortAssignment)))
}
