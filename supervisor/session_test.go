package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
	"orchestrator/wire/session"
)

// kitchen is a session with three members.
var kitchen = session.Spec{
	ID: "kitchen", Validation: session.ValidationStandard, MaxIterations: 3, OnMax: session.EscalateHumanReview,
	Members: []session.Member{
		{AgentID: "lead", AgentType: session.AgentArchitect}, {AgentID: "coder", AgentType: session.AgentDeveloper}, {AgentID: "critic", AgentType: session.AgentReviewer},
	},
}

// cooks returns its members and an agent that is not a member. An agent that fails is restarted.
func cooks(t *testing.T) (agents []settings.Agent, parts map[string]part, lead, coder, critic, guest *talker) {
	agents, parts, all := talkers(t, settings.Agent{Name: "lead"}, settings.Agent{Name: "coder"}, settings.Agent{Name: "critic"}, settings.Agent{Name: "guest"})
	return agents, parts, all[0], all[1], all[2], all[3]
}

// inKitchen returns the options of a play with that session.
func inKitchen(record dispatch.Record) Options {
	return Options{Record: record, Protocol: freely, Sessions: []session.Spec{kitchen}}
}

// remark returns a complete message of the kitchen, with a space that no encoder puts there.
func remark(number int, from, to string) string {
	kind := func(name string) string {
		for _, m := range kitchen.Members {
			if m.AgentID == name {
				return m.AgentType
			}
		}
		return session.AgentDeveloper
	}
	return fmt.Sprintf(`{"message_id":"msg-%d","timestamp":%q,"sequence_number":%d,"from_agent":{"agent_id":%q,"agent_type":%q},`+
		`"to_agent":{"agent_id":%q,"agent_type":%q},"message_type":"feedback","correlation_id":"hum", "payload":`+
		`{"feedback_type":"question","subject":"The hum","content":"Does it matter?","action_required":false}}`,
		number, noon, number, from, kind(from), to, kind(to))
}

func remarks(n int, from, to string) (lines []string) {
	for i := range n {
		lines = append(lines, remark(i, from, to))
	}
	return lines
}

// aborted returns a message that aborts the kitchen.
func aborted(id string) string {
	return fmt.Sprintf(`{"message_id":%q,"timestamp":%q,"sequence_number":1,"from_agent":{"agent_id":"lead","agent_type":"architect"},`+
		`"to_agent":{"agent_id":"coder","agent_type":"developer"},"message_type":"abort",`+
		`"payload":{"scope":"session","target_id":"kitchen","reason":"the gas is off","cleanup_required":false}}`, id, noon)
}

// lines returns the lines written to the agent's run so far.
func (t *talker) lines() []string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.heard)
}

// undelivered returns the details of the refusals written to the agent's run, each after the id
// of its message.
func (t *talker) undelivered() (all []string) {
	t.t.Helper()
	for _, line := range t.told() {
		if line.Error != nil {
			d := line.Error.Details
			all = append(all, fmt.Sprint(line.CorrelationID, " ", d["original_message_id"], " ", d["error_type"], " ", d["retry_count"], "/", d["max_retries"]))
		}
	}
	return all
}

// bothWays runs a play with a log and without one.
func bothWays(t *testing.T, do func(*testing.T, dispatch.Record)) {
	for name, record := range map[string]func() dispatch.Record{"record": func() dispatch.Record { return newLedger() }, "none": func() dispatch.Record { return nil }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { do(t, record()) })
		})
	}
}

// TestSessionMessagesArePassedOn checks that a message of a session is written to its receiver byte
// for byte. No other agent gets it, and its sender gets no reply.
//
// Rows: C-01, C-16.
func TestSessionMessagesArePassedOn(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		agents, parts, lead, coder, critic, _ := cooks(t)
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		line := remark(1, "lead", "coder")
		lead.says(line)
		require.Equal(t, []string{line}, coder.lines())
		require.Empty(t, lead.lines())
		require.Empty(t, critic.lines())
		require.Equal(t, 1, p.count(events.SessionMessage))
		require.Equal(t, 1, p.count(events.SessionDelivered))
		require.Empty(t, p.life.agents["lead"].lastWords(), "it is no log")
		coder.says(line)
		require.Equal(t, []string{line}, coder.lines(), "an echo is not said again")
		require.NoError(t, p.stop())
	})
}

// TestManySessionMessages checks that many messages take few batches and decisions, keep their
// order and all arrive. A sender without a pause is not blocked, because it waits for no replies.
//
// Rows: B-21, C-16.
func TestManySessionMessages(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		const many = 300
		agents, parts, lead, coder, _, _ := cooks(t)
		agents[0].Mailbox = stdin.Limits{Messages: 4, Bytes: 1 << 20}
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		log, kept := record.(*ledger)
		before := 0
		if kept {
			before = len(log.tried())
		}
		lines := remarks(many, "lead", "coder")
		lead.says(lines...)
		require.Equal(t, lines, coder.lines())
		require.Empty(t, lead.lines())
		if kept {
			require.LessOrEqual(t, len(log.tried())-before, 20)
		}
		require.Equal(t, many, p.count(events.SessionDelivered))
		require.NoError(t, p.stop())
	})
}

// TestSessionMessagesThatAreAskedFor checks that a request to send a message has one reply, over
// any transport.
//
// Rows: B-21, C-16.
func TestSessionMessagesThatAreAskedFor(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		agents, parts, lead, coder, _, _ := cooks(t)
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		lead.says(request("1", "send-session-message", `{"message":`+remark(1, "lead", "coder")+`}`))
		require.Equal(t, []string{"1 granted"}, lead.gist())
		require.Len(t, coder.lines(), 1)
		require.NoError(t, p.stop())
	})
}

// TestSessionMessagesThatAreRefused checks that an invalid message is returned to its sender
// with the outcome, and reaches no other agent. The audit has it by its type.
//
// Rows: B-81, C-08, C-09, C-90, C-97, K-06, T-53.
func TestSessionMessagesThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, critic, guest := cooks(t)
		dir := t.TempDir()
		o := inKitchen(newLedger())
		o.StateDir = dir
		p := perform(t, o, agents, parts)
		synctest.Wait()
		lead.says(
			strings.Replace(remark(1, "lead", "coder"), `"subject"`, `"sujet"`, 1),
			remark(2, "lead", "nobody"),
			remark(3, "lead", "critic"),
		)
		require.Equal(t, []string{"msg-1 msg-1 malformed 0/3", "msg-2 msg-2 rejected 0/3"}, lead.undelivered())
		guest.says(remark(4, "guest", "coder"))
		require.Equal(t, []string{"msg-4 msg-4 rejected 0/3"}, guest.undelivered())
		require.Equal(t, []string{remark(3, "lead", "critic")}, critic.lines())
		require.Empty(t, coder.lines())
		require.Empty(t, p.life.agents["lead"].lastWords())
		require.NoError(t, p.stop())
		var trailed []string
		for _, line := range trail(t, dir) {
			trailed = append(trailed, fmt.Sprint(line["actor"], " ", line["type"], " ", line["id"], " ", line["outcome"]))
		}
		require.Equal(t, []string{
			"agent:lead session:feedback msg-1 invalid", "agent:lead session:feedback msg-2 denied",
			"agent:lead session:feedback msg-3 granted", "agent:guest session:feedback msg-4 denied",
		}, trailed)
	})
}

// TestSessionMessagesThatComeAgain checks that a repeated message is delivered once, without an
// error. Another message with its id is refused. The same holds while the first is still being
// recorded.
//
// Rows: C-02, T-23, T-26.
func TestSessionMessagesThatComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		record := newLedger()
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		line := remark(1, "lead", "coder")
		release := record.hold()
		lead.says(line, line)
		lead.says(line)
		require.Empty(t, coder.lines(), "it is not recorded")
		release()
		lead.says(line)
		require.Equal(t, []string{line}, coder.lines())
		require.Empty(t, lead.lines())
		lead.says(strings.Replace(line, "matter", "hum", 1))
		require.Equal(t, []string{"msg-1 msg-1 malformed 0/3"}, lead.undelivered())
		require.Len(t, coder.lines(), 1)
		require.NoError(t, p.stop())
	})
}

// TestSessionMessageThatIsTooLong checks that a line that was cut because it is too long is
// refused, and stays in the log for its author.
//
// Rows: C-97, T-01.
func TestSessionMessageThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		p := perform(t, inKitchen(newLedger()), agents, parts)
		synctest.Wait()
		lead.says(`{"message_type":"feedback","message_id":"msg-1","from_agent":{"agent_id":"lead"},"payload":"` + strings.Repeat("hum ", 1<<19) + `"}`)
		require.Equal(t, []string{"msg-1 msg-1 malformed 0/3"}, lead.undelivered())
		require.Empty(t, coder.lines())
		require.Len(t, p.life.agents["lead"].lastWords(), 1)
		require.NoError(t, p.stop())
	})
}

// TestLimitOfSessionMessages checks that session messages count against the limit, as requests
// do.
//
// Rows: B-63, C-90, T-24.
func TestLimitOfSessionMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		o := inKitchen(newLedger())
		o.Protocol = dispatch.Protocol{Rate: 1, Burst: 2}
		p := perform(t, o, agents, parts)
		synctest.Wait()
		lead.says(remarks(3, "lead", "coder")...)
		require.Len(t, coder.lines(), 2)
		require.Equal(t, []string{"msg-2 msg-2 rejected 0/3"}, lead.undelivered())
		require.Empty(t, p.life.agents["lead"].lastWords())
		require.NoError(t, p.stop())
	})
}

// TestSessionMessageThatIsNotRecorded checks that a message that could not be recorded reaches no
// agent, and that its sender hears it once.
//
// Rows: B-21, B-74, C-90.
func TestSessionMessageThatIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		record := newLedger()
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		gate := make(chan struct{})
		full := fmt.Errorf("no space left on device")
		record.meddle(func([]wire.Record) error { <-gate; return full })
		lead.says(remark(1, "lead", "coder"))
		synctest.Wait()
		lead.says(remark(2, "lead", "coder"))
		synctest.Wait()
		close(gate)
		require.ErrorIs(t, p.end(), full)
		require.Equal(t, []string{"msg-1 INTERNAL_ERROR", "msg-2 INTERNAL_ERROR", "notify:shutdown"}, lead.gist())
		require.Equal(t, []string{"notify:shutdown"}, coder.gist())
	})
}

// TestSessionMessageWhileTheDiskHangs checks a disk that hangs. The sender gets the error that its
// message may be lost. It is passed on when the disk continues, and repeating it is not an error.
//
// Rows: B-29, C-02, C-90.
func TestSessionMessageWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		record := newLedger()
		o := inKitchen(record)
		o.Rules.RequestTimeout = 10 * time.Second
		p := perform(t, o, agents, parts)
		synctest.Wait()
		release := record.hold()
		lines := remarks(2, "lead", "coder")
		lead.says(lines[0])
		synctest.Wait()
		lead.says(lines[1])
		<-time.After(11 * time.Second)
		require.Equal(t, []string{"msg-0 msg-0 timeout 0/3", "msg-1 msg-1 timeout 0/3"}, lead.undelivered())
		require.Empty(t, coder.lines())
		release()
		lead.says(lines...)
		require.Equal(t, lines, coder.lines())
		require.Len(t, lead.lines(), 2)
		require.NoError(t, p.stop())
	})
}

// TestSessionMessagesAreTimed checks that the log has the time between the arrival of a message
// and its decision.
//
// Rows: C-99.
func TestSessionMessagesAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, _, _, _, _ := cooks(t)
		record := newLedger()
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		c := p.dispatcher.Channel("lead", "run", func(string, string, int64) {})
		c.Open(stdin.Closed())
		require.True(t, c.Take(line.Line{Text: []byte(remark(1, "lead", "coder"))}, time.Now()))
		<-time.After(1500 * time.Microsecond)
		c.Send(time.Now())
		p.dispatcher.Settle()
		said := slices.DeleteFunc(record.facts(t), func(r wire.Record) bool { return r.Kind != events.SessionMessage })
		require.Len(t, said, 1)
		require.Contains(t, string(said[0].Payload), `"processing_duration_ms":1.5`)
		require.NoError(t, p.stop())
	})
}
