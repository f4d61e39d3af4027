package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
)

// real lists messages as agents send them.
var real = []string{
	`{"type":"request:query-agents","id":"a1","timestamp":"2026-11-21T10:00:00Z","payload":{"role":"worker","status":"idle","capabilities":["go"]}}`,
	`{"type":"request:query-tasks","id":"a2","timestamp":"2026-11-21T10:00:00Z","payload":{"status":"queued","requiredRole":"worker","limit":10}}`,
	`{"type":"request:submit-task","id":"a3","timestamp":"2026-11-21T10:00:00Z","payload":{"type":"t","name":"n","payload":{"n":1e3},"requiredRole":"reviewer","requiredCapabilities":["x"],"dependencies":[],"priority":2}}`,
	`{"type":"request:get-task","id":"a4","timestamp":"2026-11-21T10:00:00Z","payload":{"taskId":"t"}}`,
	`{"type":"request:ask-user","id":"a5","timestamp":"2026-11-21T10:00:00Z","payload":{"question":"which?","options":[{"label":"A","value":"a"}],"timeout":5}}`,
	`{"type":"request:complete-task","id":"a6","timestamp":"2026-11-21T10:00:00Z","payload":{"taskId":"t","result":{"ok":true}}}`,
	`{"type":"event:progress","id":"a7","timestamp":"2026-11-21T10:00:00Z","payload":{"taskId":"t","progress":0.5,"message":"half"}}`,
	`{"type":"event:log","id":"a8","timestamp":"2026-11-21T10:00:00Z","payload":{"level":"info","message":"m","context":{"k":[1,2]}}}`,
	`{"type":"event:error","id":"a9","timestamp":"2026-11-21T10:00:00Z","payload":{"taskId":"t","error":"e","stack":"s","recoverable":false}}`,
	`{"type":"event:question","id":"b1","timestamp":"2026-11-21T10:00:00Z","payload":{"question":"q","context":{}}}`,
	`{"type":"response:success","id":"b2","correlationId":"a1","timestamp":"2026-11-21T10:00:00Z","payload":{}}`,
	`{"message_type":"task_progress","message_id":"m","from_agent":{"agent_id":"noise"},"to_agent":{"agent_id":"x"},"payload":{}}`,
	`{"type":"weigh_salt","id":"d1","payload":{"text":"é €"},"context":{"traceId":"t"},"routing":{"source":"noise"}}`,
	`{"type":"weigh_salt","id":"d2","payload":{"url":"x"},"context":{"priority":"high"},"observability":{"traceId":"t","baggage":{"k":1}}}`,
	`{"id":"d2","type":"task.status","payload":{}}`,
	`{"id":"d2","type":"task.update","payload":{"input":[1.0]}}`,
	`{"id":"d2","type":"task.cancel","payload":{"reason":"enough"}}`,
	`{"id":"d3","status":"completed","result":{"a":1},"artifacts":[{"name":"n","type":"t","content":"c"}]}`,
	`{"from_actor":"W:1","to_actor":"GO","topic":"task.progress","payload":{},"idempotency_key":"k"}`,
	`{"jsonrpc":"2.0","id":1,"method":"bus_poll","params":{}}`,
}

// mutation returns a real message with a few random changes.
func mutation(chance *rand.Rand) []byte {
	line := []byte(real[chance.IntN(len(real))])
	for range 1 + chance.IntN(4) {
		if len(line) == 0 {
			break
		}
		at, to := chance.IntN(len(line)), chance.IntN(len(line))
		from, end := min(at, to), max(at, to)
		switch chance.IntN(8) {
		case 0:
			line[at] = byte(chance.IntN(256))
		case 1:
			line = append(line[:at:at], line[min(at+1+chance.IntN(8), len(line)):]...)
		case 2:
			line = append(line[:end:end], line[from:]...)
		case 3:
			line = line[:at]
		case 4:
			line[at] ^= 1 << chance.IntN(8)
		case 5:
			odd := []string{`""`, `null`, `[]`, `{}`, `-1e999`, `"\ud800"`, `{"a":{"a":`, "\x00", "\u2028", `"type":"event:x",`}[chance.IntN(10)]
			line = append(line[:at:at], append([]byte(odd), line[at:]...)...)
		case 6:
			other := real[chance.IntN(len(real))]
			line = append(line[:at:at], other[chance.IntN(len(other)):]...)
		case 7:
			line = bytes.ToUpper(line)
		}
	}
	return line
}

// echoing reports everything that it is given as completed.
func echoing(p *player) int {
	for line := p.read(); line != ""; line = p.read() {
		var about struct{ ID string }
		if json.Unmarshal([]byte(line), &about) == nil {
			p.say(fmt.Sprintf(`{"id":%q,"status":"completed","result":{}}`, about.ID))
		}
	}
	return 0
}

// TestAMillionMutations checks that a million mutated messages leave a healthy orchestrator. It
// answers, its agents run, and no fault was logged.
//
// Rows: B-03, B-05, B-76, T-01, T-03.
func TestAMillionMutations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perChunk = 500
		lines := rounds(1_000_000)
		answers := make(chan string, 1)
		noise := func(p *player) int {
			go func() { // reads, so that no other agent ever waits for it
				for {
					line := p.read()
					if line == "" {
						return
					}
					if strings.Contains(line, `"correlationId":"sane"`) {
						answers <- line
					}
				}
			}()
			chance := rand.New(rand.NewPCG(1, 2))
			var chunk []byte
			for range lines / perChunk {
				chunk = chunk[:0]
				for range perChunk {
					chunk = append(append(chunk, mutation(chance)...), '\n')
				}
				split := chance.IntN(len(chunk))
				p.spec.Listener.Output(child.Stdout, chunk[:split])
				p.spec.Listener.Output(child.Stdout, chunk[split:])
			}
			p.say(`{"type":"request:query-agents","id":"sane","timestamp":"2026-11-21T10:00:00Z","payload":{}}`)
			<-p.signals
			return 0
		}
		var log bytes.Buffer // hclog locks its output
		options := Options{
			Record:   newLedger(),
			Protocol: dispatch.Protocol{Rate: 1 << 30, Burst: 1 << 30},
			Log:      hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Error}),
		}
		cook := worker("cook", 4)
		cook.Offers = []string{"weigh_salt"}
		p := perform(t, options, []settings.Agent{{Name: "noise"}, cook}, map[string]part{"noise": noise, "cook": echoing})
		answer := <-answers
		require.Contains(t, answer, `"type":"response:success"`)
		require.Contains(t, answer, `"id":"noise"`)
		require.EqualValues(t, "running", p.view("noise").State)
		p.cancel()
		require.NoError(t, <-p.result)
		require.Empty(t, log.String(), "a decision failed")
	})
}
