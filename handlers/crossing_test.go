package handlers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A crossing is a task that is submitted in one protocol and done in another.
type crossing struct {
	*player
	from, to string // the protocols
	worker   string // the agent that has the task
	id       string // of the task
	line     string // that the worker's stdin has got with it
}

// A submitted task has members that its protocol requires, or that the worker needs.
type submitted struct {
	protocol string
	script   string
	members  []string
	workers  string // the protocols of those who may do it
}

var crossings = []submitted{
	{"A", `> operator s hub:submit-task {"title":"bake it","spec":"with flour","acceptance_criteria":["it rises"],"requirements":{"tools":["bake"]}}`,
		[]string{"bake it", "with flour", "it rises"}, "ABE"},
	{"B", `> boss s submit-task {"type":"bake","name":"bake it","description":"with flour","payload":{"file":"src/oven.ts"},"requiredCapabilities":["bake"]}`,
		[]string{"bake it", "with flour", "src/oven.ts"}, "ABE"},
	{"C", `say boss dev msg-1 task_assignment says=with+flour task.acceptance_criteria=["it-rises"]`,
		[]string{"with+flour", "it-rises"}, "BC"},
	{"D", `request boss job-1 bake payload.file=src/oven.ts conversation=talk`,
		[]string{"bake", "src/oven.ts", "talk"}, "ABDE"},
}

// cross submits a task, and brings it to a worker that speaks another protocol.
func cross(t *testing.T, s *submitted, to string) *crossing {
	c := &crossing{player: newPlayer(t), from: s.protocol, to: to, worker: "dev"}
	if s.protocol == "C" {
		c.play("session shop architect=boss developer=dev")
	}
	c.play(`able dev {"tools":["bake"]}`)
	if to == "A" {
		c.worker = "far"
		c.play("agents: boss(planner)")
		c.play("> operator r issue-registration {}")
		c.play(`> newcomer r register-agent {"name":"far","registration_token":"$TOKEN","capabilities":{"tools":["bake"]}}`)
	} else {
		c.play("agents: boss(planner) dev(worker; bake)")
	}
	c.play("up")
	c.play("start boss")
	if to != "A" {
		c.play("start dev")
	}
	came := c.play(s.script)
	require.NotContains(t, came, "response:error")
	for _, l := range c.last.Letters {
		if l.To.Name == "dev" && l.Notice == "" {
			c.line = c.written(&l)
		}
	}
	require.Len(t, c.state.Tasks.List, 1)
	c.id = c.state.Tasks.List[0].View.ID
	if s.protocol == "A" && c.state.Tasks.List[0].View.AssignedTo == "" {
		c.play(`> operator m auto-assign {"taskId":"` + c.id + `"}`)
	}
	require.Equal(t, c.worker, c.state.Tasks.List[0].View.AssignedTo)
	return c
}

// written returns the line of a letter.
func (c *crossing) written(l *Letter) string {
	if l.Kept == 0 {
		return string(l.Line)
	}
	line, err := state.LineOf(c.records[l.Kept-1])
	require.NoError(c.t, err)
	return string(line)
}

// ask has an agent or a person send a request, which must be granted, and returns the lines that follow.
func (c *crossing) ask(who, operation, payload string) string {
	c.chance++
	came := c.play(fmt.Sprintf("> %s %d %s %s", who, c.chance, operation, payload))
	require.NotContains(c.t, came, "response:error", "%s %s", operation, payload)
	return came
}

// read returns the text of the task that the worker reads, in its protocol.
func (c *crossing) read() string {
	about := `{"taskId":"` + c.id + `"}`
	switch c.to {
	case "A":
		c.ask(c.worker, "poll-tasks", "{}")
		polled, ok := c.last.Letters[0].Payload.(*wire.TaskList)
		require.True(c.t, ok)
		require.Len(c.t, polled.Tasks, 1)
		text, err := object.Encode(polled.Tasks[0].Hub())
		require.NoError(c.t, err)
		return string(text)
	case "E":
		mail := c.ask(c.worker, "poll-messages", "{}")
		require.Contains(c.t, mail, `"topic":"task.assigned"`)
		require.Contains(c.t, mail, `"ticket_id":`)
		return c.ask(c.worker, "get-task", about)
	case "C", "D": // the line that its stdin has got
		return c.line
	}
	return c.ask(c.worker, "get-task", about)
}

// TestTasksCrossProtocols submits a task in each protocol to a worker of each other one. The worker reads every
// member that the protocol of the submission requires.
//
// Rows: K-24.
func TestTasksCrossProtocols(t *testing.T) {
	for i := range crossings {
		s := &crossings[i]
		for to := range strings.SplitSeq(s.workers, "") {
			t.Run(s.protocol+" to "+to, func(t *testing.T) {
				c := cross(t, s, to)
				text := c.read()
				for _, member := range s.members {
					require.Contains(t, text, member)
				}
				c.requireReplay()
			})
		}
	}
}

// TestQuestionsCrossProtocols has a worker of each protocol ask about a task that was submitted in each. The
// question is in the inbox and on the bus, the submitter hears of it if its protocol can say so, and the worker
// reads the answer.
//
// Rows: K-25.
func TestQuestionsCrossProtocols(t *testing.T) {
	for i := range crossings {
		s := &crossings[i]
		for to := range strings.SplitSeq(s.workers, "") {
			for _, answerer := range []string{"a person", "the source"} {
				if answerer == "the source" && s.protocol != "D" {
					continue // only a source gives input
				}
				t.Run(s.protocol+" to "+to+", "+answerer, func(t *testing.T) {
					c := cross(t, s, to)
					c.asksHow()
					inbox := c.ask("operator", "list-questions", "{}")
					require.Contains(t, inbox, `"How?"`)
					require.Contains(t, c.ask("operator", "poll-messages", `{"actor":"GO"}`), `"topic":"alert.fired"`)
					c.answered(answerer, c.state.Questions.Open[0].View.ID)
					require.Empty(t, c.state.Questions.Open)
					c.requireReplay()
				})
			}
		}
	}
}

// asksHow has the worker ask a question, and checks that the submitter hears it.
func (c *crossing) asksHow() {
	var came string
	if c.to == "D" {
		came = c.play("respond dev " + c.id + " input_required message=How?")
	} else {
		c.ask(c.worker, "start-task", `{"taskId":"`+c.id+`"}`)
		came = c.ask(c.worker, "request-help", `{"taskId":"`+c.id+`","question":"How?"}`)
	}
	switch c.from {
	case "C":
		require.Contains(c.t, came, "boss <- notify:task-updated")
		require.Contains(c.t, came, "dev asks a person: How?")
	case "D":
		require.Regexp(c.t, `boss <= .*response job-1 input_required .*How\?`, came)
	}
}

// answered has the question answered, and checks that the worker reads the answer.
func (c *crossing) answered(by, question string) {
	var came string
	if by == "the source" {
		came = c.play(`act boss job-1 update "so-so"`)
	} else {
		came = c.ask("operator", "answer-question", `{"questionId":"`+question+`","answer":"so-so"}`)
	}
	switch {
	case c.to == "A":
		c.ask("far", "get-task", `{"taskId":"`+c.id+`"}`)
		task := c.last.Letters[0].Payload.(*wire.TaskReply).Task
		require.Equal(c.t, "so-so", task.Hub().Help.Answer)
	case c.from == "D":
		require.Contains(c.t, came, `dev <= task.update job-1 payload {"input":"so-so"}`)
	default:
		require.Contains(c.t, came, "dev <- notify:task-updated")
		require.Contains(c.t, came, "Answer: so-so")
	}
}

// TestErrorCodesCrossProtocols checks that the source of a task request gets the error code of its worker.
//
// Rows: K-24.
func TestErrorCodesCrossProtocols(t *testing.T) {
	for _, to := range []string{"A", "D", "E"} {
		t.Run(to, func(t *testing.T) {
			c := cross(t, &crossings[3], to)
			came := ""
			switch to {
			case "D":
				came = c.play("respond dev job-1 failed code=MCP_ERROR says=no")
			default: // a server sends mail, too
				c.ask(c.worker, "start-task", `{"taskId":"job-1"}`)
				came = c.ask(c.worker, "send-message", `{"to_actor":"GO","topic":"task.failed","payload":{"task_id":"job-1","error_code":"MCP_ERROR"}}`)
			}
			require.Regexp(t, `boss <= .*response job-1 failed error \{"code":"MCP_ERROR"`, came)
		})
	}
}
