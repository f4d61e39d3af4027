package handlers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestAllRepeats checks that a repeated request of an agent returns the same answer and has no
// second effect. It repeats at once, after a restart from a snapshot, and after one from the
// records.
//
// Rows: B-30, D-39, T-23.
func TestAllRepeats(t *testing.T) {
	requests := []string{ // each follows from those before it
		`boss r submit-task {"type":"t","name":"up"}`,
		`boss r submit-task {"type":"t","name":"x","requirements":{"languages":["go"]},"dependencies":[{"depends_on_task_id":"$up","dependency_type":"input","contract_key":"k"}]}`,
		`boss r add-dependency {"taskId":"$x","dependsOnTaskId":"$up"}`,
		`boss r remove-dependency {"taskId":"$x","dependencyId":"d2"}`,
		`boss r add-note {"taskId":"$x","content":"c"}`,
		`boss r update-task {"taskId":"$x","description":"d"}`,
		`boss r assign-task {"taskId":"$up","agent":"dev","requirePlan":true}`,
		`dev r submit-plan {"taskId":"$up","plan":"p"}`,
		`boss r revise-plan {"taskId":"$up","feedback":"f"}`,
		`dev r submit-plan {"taskId":"$up","plan":"q"}`,
		`boss r approve-plan {"taskId":"$up"}`,
		`dev r request-help {"taskId":"$up","question":"?"}`,
		`dev r start-task {"taskId":"$up"}`,
		`dev r complete-task {"taskId":"$up","result":{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{"k":{"status":"fulfilled","data":1}}}}`,
		`dev r update-capabilities {"capabilities":{"languages":["sql"],"max_concurrent_tasks":3}}`,
		`boss r cancel-task {"taskId":"$x"}`,
		`boss r submit-task {"type":"t","name":"y","requirements":{"languages":["sql"]}}`,
		`boss r auto-assign {"taskId":"$y"}`,
		`dev r start-task {"taskId":"$y"}`,
		`dev r report-progress {"taskId":"$y","message":"half","progress":0.5,"kind":"words"}`,
		`dev r fail-task {"taskId":"$y","error":"e"}`,
		`boss r submit-task {"type":"t","name":"v"}`,
		`boss r assign-task {"taskId":"$v","agent":"dev"}`,
		`dev r start-task {"taskId":"$v"}`,
		`dev r return-task {"taskId":"$v","reason":"tired"}`,
		`dev r ask-user {"question":"?"}`,
		`dev r ask-permission {"tool":"Bash","title":"go test","input":{"command":"go test"},"choices":[{"id":"yes","kind":"allow_once"}]}`,
		`dev r withdraw-question {"questionId":"q2"}`,
		`boss r send-session-message {"message":{"message_id":"msg-1","timestamp":"2026-11-21T14:00:00Z","sequence_number":1,"from_agent":{"agent_id":"boss","agent_type":"architect"},"to_agent":{"agent_id":"dev","agent_type":"developer"},"message_type":"status_query","payload":{}}}`,
		`boss r submit-task-request {"id":"z","type":"sql","payload":{}}`,
		`boss r update-task-request {"taskId":"z","input":1}`,
	}
	known := make(map[string]bool)
	p := newPlayer(t)
	for _, line := range []string{"session team architect=boss developer=dev", `able dev {"languages":["go"]}`, "agents: boss(planner) dev(worker)", "up", "start boss", "start dev"} {
		p.play(line)
	}
	for i, request := range requests {
		words := strings.Fields(request)
		who, id := words[0], string(rune('a'+i))
		known[words[2]] = true
		first := p.play("> " + strings.Replace(request, " r ", " "+id+" ", 1))
		require.Nil(t, p.last.Refused, "%s", first)
		require.NotEmpty(t, p.last.Records, "%s", request)
		for _, restart := range []func(){
			func() {},
			func() { p.state = restored(t, p.rules, spelled(t, p.state)) },
			func() { p.state = p.replayed() },
		} {
			restart()
			again := p.play("resend " + who + " " + id)
			require.Empty(t, p.last.Records, "%s", request)
			if !strings.HasPrefix(words[2], "ask-") {
				require.Len(t, p.last.Letters, 1)
				require.Contains(t, first, again, "the same answer")
			} else {
				require.True(t, p.last.Waits)
			}
		}
	}
	for _, o := range operations {
		if o.Writes && o.Audience <= wire.ForAgents {
			require.True(t, known[o.Name], "%s is repeated nowhere", o.Name)
		}
	}
}
