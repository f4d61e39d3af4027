package supervisor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// TestMemberThatDoesNotRead checks that a member that does not read affects no other agent.
// Messages without room are retried in order when it reads, and their sender hears of the progress.
//
// Rows: C-91, T-04.
func TestMemberThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 12
		agents, parts, lead, coder, critic, _ := cooks(t)
		agents[1].Mailbox = stdin.Limits{Messages: 4, Bytes: 1 << 20}
		record := newLedger()
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		again := p.deafen(coder)
		lines := remarks(many, "lead", "coder")
		for _, line := range lines {
			lead.says(line)
			synctest.Wait()
		}
		lead.says(remark(99, "lead", "critic"))
		require.Len(t, critic.lines(), 1)
		require.LessOrEqual(t, p.view("coder").Mailbox.Messages, 4)
		require.Empty(t, kinds(record.facts(t), events.SessionDelivered)[1:], "not before it was written")
		require.NotEmpty(t, lead.undelivered())
		for _, words := range lead.undelivered() {
			require.Contains(t, words, "timeout 0/3")
		}
		again()
		<-time.After(time.Minute)
		require.Equal(t, lines, coder.lines(), "each once, in order")
		require.Len(t, kinds(record.facts(t), events.SessionDelivered), many+1)
		require.NoError(t, p.stop())
	})
}

// TestRunThatEndsBeforeItIsTold checks that messages that a run has not read before its end are
// written to the next one.
//
// Rows: C-16, C-91.
func TestRunThatEndsBeforeItIsTold(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		agents, parts, lead, coder, _, _ := cooks(t)
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		again := p.deafen(coder)
		lines := remarks(3, "lead", "coder")
		lead.says(lines...)
		synctest.Wait()
		require.Zero(t, p.count(events.SessionDelivered))
		coder.exit <- 1
		synctest.Wait()
		again()
		<-time.After(time.Minute)
		require.Equal(t, lines, coder.lines())
		require.Equal(t, len(lines), p.count(events.SessionDelivered))
		require.NoError(t, p.stop())
	})
}

// TestMemberThatDoesNotComeBack checks that messages for an agent that will not restart are given
// up at once, and that their sender hears it. The agent has ended well, or was stopped between two
// runs.
//
// Rows: C-90, C-91.
func TestMemberThatDoesNotComeBack(t *testing.T) {
	for name, leave := range map[string]func(*play, *talker){
		"well": func(_ *play, coder *talker) { coder.exit <- 0 },
		"between": func(p *play, coder *talker) {
			coder.exit <- 1
			synctest.Wait()
			require.Equal(p.t, control.StateBackoff, p.view("coder").State)
			p.ask(p.StopAgents, "coder")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agents, parts, lead, coder, _, _ := cooks(t)
				p := perform(t, inKitchen(newLedger()), agents, parts)
				synctest.Wait()
				again := p.deafen(coder)
				lead.says(remark(1, "lead", "coder"))
				synctest.Wait()
				leave(p, coder)
				synctest.Wait()
				again()
				require.Equal(t, 1, p.count(events.SessionUndelivered))
				told := lead.undelivered()
				require.NotEmpty(t, told)
				require.Contains(t, told[len(told)-1], "msg-1 msg-1 timeout")
				require.NoError(t, p.stop())
			})
		})
	}
}

// TestAbortedSessionStops checks that the abort of a session reaches its members, and that they are
// stopped and stay stopped. Other agents continue. The session is new at the next start of the
// orchestrator.
//
// Rows: C-70, C-72.
func TestAbortedSessionStops(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		agents, parts, lead, coder, critic, guest := cooks(t)
		p := perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		line := aborted("msg-1")
		lead.says(line)
		synctest.Wait()
		for _, member := range []*talker{coder, critic} {
			heard := member.lines()
			require.NotEmpty(t, heard)
			require.Contains(t, heard[len(heard)-1], "notify:shutdown")
			require.Contains(t, heard[len(heard)-1], "its session was aborted: the gas is off")
		}
		require.Contains(t, coder.lines()[0], `"message_type":"abort"`)
		<-time.After(time.Minute)
		for _, member := range []*talker{lead, coder, critic} {
			require.Equal(t, control.StateStopped, p.view(member.name).State, member.name)
		}
		require.Equal(t, control.StateRunning, p.view("guest").State)
		require.Empty(t, guest.lines())
		require.NoError(t, p.stop())
		if record == nil {
			return
		}
		p = perform(t, inKitchen(record), agents, parts)
		synctest.Wait()
		for _, member := range []*talker{lead, coder, critic} {
			require.Equal(t, control.StateRunning, p.view(member.name).State, "it is not stopped once more")
		}
		lead.says(remark(7, "lead", "coder"))
		require.Len(t, coder.lines(), 1, "and the session is open")
		require.NoError(t, p.stop())
	})
}

// TestSessionThatIsOver checks that a session stops its agents as a person does. Unknown agents
// are ignored, and a record without agents stops none.
func TestSessionThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, _, coder, _, _ := cooks(t)
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		p.life.SessionClosed(&wire.Record{Kind: events.SessionClosed, Payload: []byte(`{"session_id":"x","reason":"none"}`)})
		p.life.SessionClosed(&wire.Record{Kind: events.SessionClosed, Payload: []byte(`{"session_id":"x","reason":"why not","stop":["coder","far","coder"]}`)})
		require.Contains(t, coder.lines()[0], "its session was aborted: why not")
		<-time.After(time.Minute)
		require.Equal(t, control.StateStopped, p.view("coder").State)
		require.Equal(t, control.StateRunning, p.view("lead").State)
		p.ask(p.StartAgents, "coder")
		<-time.After(time.Minute)
		require.Equal(t, control.StateRunning, p.view("coder").State)
		require.NoError(t, p.stop())
	})
}

// TestMembersKnowTheirSession checks that a run of a member knows its session, the first one if
// it has several. It has no variables of other sessions.
//
// Rows: C-72.
func TestMembersKnowTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, guest := cooks(t)
		o := inKitchen(newLedger())
		o.Sessions = append(o.Sessions, session.Spec{
			ID: "cellar", Validation: session.ValidationStandard, MaxIterations: 3, OnMax: session.EscalateAbort,
			Members: []session.Member{{AgentID: "coder", AgentType: session.AgentArchitect}},
		})
		p := perform(t, o, agents, parts)
		synctest.Wait()
		document := func(a *talker) (entries []string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, entry := range a.run.spec.Env {
				if strings.HasPrefix(entry, "ORC_SESSION") {
					entries = append(entries, entry)
				}
			}
			return entries
		}
		require.Equal(t, []string{"ORC_SESSION=kitchen", "ORC_SESSION_TYPE=architect"}, document(lead))
		require.Equal(t, []string{"ORC_SESSION=kitchen", "ORC_SESSION_TYPE=developer"}, document(coder))
		require.Empty(t, document(guest))

		_, err := p.Apply(t.Context(), nil, o.Sessions[1:])
		require.NoError(t, err)
		coder.exit <- 1
		lead.exit <- 1
		<-time.After(time.Minute)
		require.Equal(t, []string{"ORC_SESSION=cellar", "ORC_SESSION_TYPE=architect"}, document(coder))
		require.Empty(t, document(lead))
		require.NoError(t, p.stop())
	})
}

// TestReloadChangesSessions checks that a reload opens and closes sessions without affecting
// their members.
//
// Rows: C-72.
func TestReloadChangesSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, coder, _, _ := cooks(t)
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		lead.says(remark(1, "lead", "coder"))
		require.Equal(t, []string{"msg-1 msg-1 rejected 0/3"}, lead.undelivered())
		_, err := p.Apply(t.Context(), nil, []session.Spec{kitchen})
		require.NoError(t, err)
		synctest.Wait()
		lead.says(remark(2, "lead", "coder"))
		require.Len(t, coder.lines(), 1)
		_, err = p.Apply(t.Context(), nil, nil)
		require.NoError(t, err)
		synctest.Wait()
		lead.says(remark(3, "lead", "coder"))
		require.Len(t, lead.undelivered(), 2)
		require.Len(t, coder.lines(), 1)
		require.ElementsMatch(t, []string{"+lead", "+coder", "+critic", "+guest"}, p.sequence())
		require.NoError(t, p.stop())
	})
}

// TestMemberAtAPipe checks that an agent that joined by a pipe can be a member. Messages for one
// that leaves are given up; another one of that name gets later messages.
//
// Rows: C-16, C-91.
func TestMemberAtAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, lead, _, _, _ := cooks(t)
		p := perform(t, inKitchen(newLedger()), agents[:1], parts)
		synctest.Wait()
		c := p.join("coder")
		line := remark(1, "lead", "coder")
		lead.says(line)
		require.Equal(t, line, c.hear())
		c.say(remark(2, "coder", "lead"))
		require.Equal(t, []string{remark(2, "coder", "lead")}, lead.lines())
		lead.says(remark(3, "lead", "coder"))
		synctest.Wait()
		c.vanish()
		require.NoError(t, c.over())
		require.Equal(t, 1, p.count(events.SessionUndelivered))
		c = p.join("coder")
		lead.says(remark(4, "lead", "coder"))
		require.Equal(t, remark(4, "lead", "coder"), c.hear())
		c.vanish()
		require.NoError(t, c.over())
		require.NoError(t, p.stop())
	})
}
