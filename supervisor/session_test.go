package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// kitchen is a session of three.
var kitchen = wire.SessionSpec{
	ID: "kitchen", Validation: wire.ValidationStandard, MaxIterations: 3, OnMax: session.EscalateHumanReview,
	Members: []wire.SessionMember{
		{AgentID: "lead", AgentType: session.AgentArchitect}, {AgentID: "coder", AgentType: session.AgentDeveloper}, {AgentID: "critic", AgentType: session.AgentReviewer},
	},
}

// cooks are its members, and who is none. Whoever ends badly comes back.
func cooks(t *testing.T) (agents []Agent, parts map[string]part, lead, coder, critic, guest *talker) {
	agents, parts, all := talkers(t, Agent{Name: "lead"}, Agent{Name: "coder"}, Agent{Name: "critic"}, Agent{Name: "guest"})
	return agents, parts, all[0], all[1], all[2], all[3]
}

// inKitchen are the options of a play with that session.
func inKitchen(record Record) Options {
	return Options{Record: record, Protocol: freely, Sessions: []wire.SessionSpec{kitchen}}
}

// remark is a message of the kitchen that has all it needs, and a space that
// nobody else would put there.
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

// aborted ends the kitchen.
func aborted(id string) string {
	return fmt.Sprintf(`{"message_id":%q,"timestamp":%q,"sequence_number":1,"from_agent":{"agent_id":"lead","agent_type":"architect"},`+
		`"to_agent":{"agent_id":"coder","agent_type":"developer"},"message_type":"abort",`+
		`"payload":{"scope":"session","target_id":"kitchen","reason":"the gas is off","cleanup_required":false}}`, id, noon)
}

// lines are what the agent's run was told so far, as it was written.
func (a *talker) lines() []string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.heard)
}

// undelivered are the details of the refusals that the agent's run was told, with
// the id of the message before them.
func (a *talker) undelivered() (all []string) {
	a.t.Helper()
	for _, line := range a.told() {
		if line.Error != nil {
			d := line.Error.Details
			all = append(all, fmt.Sprint(line.CorrelationID, " ", d["original_message_id"], " ", d["error_type"], " ", d["retry_count"], "/", d["max_retries"]))
		}
	}
	return all
}

// bothWays has something played with a record and without.
func bothWays(t *testing.T, do func(*testing.T, Record)) {
	for name, record := range map[string]func() Record{"record": func() Record { return newLedger() }, "none": func() Record { return nil }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { do(t, record()) })
		})
	}
}

// A message of a session is written to which agent it is for as it came, byte for byte.
// Nobody else hears of it, and whoever said it hears nothing.
//
// Rows: C-01, C-16.
func TestSessionMessagesArePassedOn(t *testing.T) {
	bothWays(t, func(t *testing.T, record Record) {
		agents, parts, lead, coder, critic, _ := cooks(t)
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		line := remark(1, "lead", "coder")
		lead.says(line)
		require.Equal(t, []string{line}, coder.lines())
		require.Empty(t, lead.lines())
		require.Empty(t, critic.lines())
		require.Equal(t, 1, p.count(wire.EventSessionSaid))
		require.Equal(t, 1, p.count(wire.EventSessionDelivered))
		require.Empty(t, p.agents["lead"].lastWords(), "it is no log")
		coder.says(line)
		require.Equal(t, []string{line}, coder.lines(), "an echo is not said again")
		require.NoError(t, p.stop())
	})
}

// Many messages cost few batches and few decisions that wait for one another,
// stay in order and are all there; who says them without a pause is not kept from
// it by answers that never come.
//
// Rows: B-21, C-16.
func TestManySessionMessages(t *testing.T) {
	bothWays(t, func(t *testing.T, record Record) {
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
		require.Equal(t, many, p.count(wire.EventSessionDelivered))
		require.NoError(t, p.stop())
	})
}

// Who asks for a message to be said is answered, once, at whatever door.
//
// Rows: B-21, C-16.
func TestSessionMessagesThatAreAskedFor(t *testing.T) {
	bothWays(t, func(t *testing.T, record Record) {
		agents, parts, lead, coder, _, _ := cooks(t)
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		lead.says(request("1", "send-session-message", `{"message":`+remark(1, "lead", "coder")+`}`))
		require.Equal(t, []string{"1 granted"}, lead.gist())
		require.Len(t, coder.lines(), 1)
		require.NoError(t, p.stop())
	})
}

// What makes no sense is given back to whoever said it, with what became of it,
// and nobody else hears of it. It is in the audit by its type.
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
		require.Empty(t, p.agents["lead"].lastWords())
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

// The same message twice is the same message: it is delivered once, and nobody is
// to blame. Another one with its id is refused. So it is when the record has to
// tell, which is still being written.
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

// A line that is too long, and was cut, is refused like any other, and stays in
// the log: its author should find it.
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
		require.Len(t, p.agents["lead"].lastWords(), 1)
		require.NoError(t, p.stop())
	})
}

// Messages of sessions count against the limit like requests.
//
// Rows: B-63, C-90, T-24.
func TestLimitOfSessionMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		o := inKitchen(newLedger())
		o.Protocol = Protocol{Rate: 1, Burst: 2}
		p := perform(t, o, agents, parts)
		synctest.Wait()
		lead.says(remarks(3, "lead", "coder")...)
		require.Len(t, coder.lines(), 2)
		require.Equal(t, []string{"msg-2 msg-2 rejected 0/3"}, lead.undelivered())
		require.Empty(t, p.agents["lead"].lastWords())
		require.NoError(t, p.stop())
	})
}

// A message that was granted and then could not be recorded was never said:
// nobody hears it, and whoever said it is told so, once.
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

// A disk that hangs: whoever says something is told that it may not have been
// said; it is passed on when the disk goes on, and saying it again is no mistake.
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

// How long a message took is counted from when it came to when it was decided
// about, and is in its log.
//
// Rows: C-99.
func TestSessionMessagesAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, _, _, _, _ := cooks(t)
		record := newLedger()
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		m, err := session.Read([]byte(remark(1, "lead", "coder")), 64)
		require.Nil(t, err)
		from := handlers.Actor{Kind: handlers.Agent, Name: "lead", Run: "run"}
		came := time.Now()
		<-time.After(1500 * time.Microsecond)
		p.dispatcher.submit([]handlers.Input{{At: came, From: from, Message: &wire.Request{
			ID: m.MessageID, Operation: sayOperation, Form: wire.DialectSession,
			Body: &wire.SaySession{Session: wire.Session{ID: m.MessageID, Type: m.MessageType, Message: m, Document: m.Document}},
		}}}, new(work))
		p.dispatcher.settle()
		said := slices.DeleteFunc(record.facts(t), func(r wire.Record) bool { return r.Kind != wire.EventSessionSaid })
		require.Len(t, said, 1)
		require.Contains(t, string(said[0].Payload), `"processing_duration_ms":1.5`)
		require.NoError(t, p.stop())
	})
}
