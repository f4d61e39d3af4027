package handlers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/access"
	"orchestrator/handlers/replies"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// TestMemoryIsLimited checks that only the latest requests are remembered. A State restored from
// a snapshot replies.Kept the same, even if ids were used again.
//
// Rows: B-30, T-23.
func TestMemoryIsLimited(t *testing.T) {
	p := atWork(t)
	submit := func(id int) {
		p.play(fmt.Sprintf(`> planner %d submit-task {"type":"t","name":"n%d"}`, id, id))
		require.Len(t, p.last.Records, 1)
	}
	for id := range replies.Kept {
		submit(id)
	}
	p.play("resend planner 0")
	require.Empty(t, p.last.Records)

	// The next run counts from the start: five ids are used twice.
	p.play("exit planner 0")
	p.play("start planner")
	p.play("at +1s")
	for id := range 5 {
		submit(id)
	}
	other := p.saved()
	for _, player := range []*player{p, &other} {
		for id := range replies.Kept - 5 {
			player.play(fmt.Sprintf(`> planner x%d submit-task {"type":"t","name":"m%d"}`, id, id))
		}
		player.play("resend planner 0")
		require.Empty(t, player.last.Records)
		player.play("resend planner x0")
		require.Empty(t, player.last.Records)
		player.play(`> planner last submit-task {"type":"t","name":"last"}`)
		player.play("resend planner 0")
		require.Len(t, player.last.Records, 1, "it is the oldest, and forgotten")
	}
	require.Equal(t, spelled(t, p.state), spelled(t, other.state))
}

// TestQuestionOutlivesMemory checks that a waiting question is recognized after its request is
// forgotten. Its answer is remembered when it comes.
//
// Rows: B-21, B-30.
func TestQuestionOutlivesMemory(t *testing.T) {
	p := atWork(t)
	p.play(`> planner q ask-user {"question":"?","timeout":60000}`)
	for id := range replies.Kept {
		p.play(fmt.Sprintf(`> planner %d submit-task {"type":"t","name":"n%d"}`, id, id))
	}
	p.play("resend planner q")
	require.True(t, p.last.Waits)
	require.Empty(t, p.last.Records)
	p.play(`> operator a answer-question {"questionId":"q1","answer":"yes"}`)
	require.Len(t, p.last.Letters, 2)
	p.play("resend planner q")
	require.Empty(t, p.last.Records)
	require.Len(t, p.last.Letters, 1)
	require.Nil(t, p.last.Letters[0].Refusal)
	p.requireReplay()
}

// TestNewRunAsksTheSameLater checks that the same id and payload at another time is a new
// request of a new run.
//
// Rows: B-30, T-23.
func TestNewRunAsksTheSameLater(t *testing.T) {
	p := atWork(t)
	const request = `> planner 1 submit-task {"type":"t","name":"n"}`
	p.play(request)
	require.Len(t, p.last.Records, 1)
	p.play("exit planner 1")
	p.play("start planner")
	p.play("resend planner 1")
	require.Empty(t, p.last.Records, "the same line, timestamp and all")
	p.play("at +1s")
	for _, restart := range []func(){
		func() { p.state = restored(t, p.rules, spelled(t, p.state)) },
		func() { p.state = p.replayed() },
	} {
		restart()
	}
	answer := p.play(request)
	require.Len(t, p.last.Records, 1, "a new run counts anew: %s", answer)
	require.Equal(t, events.TaskCreated, p.last.Records[0].Kind)
	p.play("resend planner 1")
	require.Empty(t, p.last.Records)
	p.requireReplay()
}

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
		`boss r retry-task {"taskId":"$y","agent":"dev"}`,
		`boss r cancel-task {"taskId":"$y"}`,
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

// TestClosedSessionsAreForgotten checks that a State keeps only the sessions that closed last. A
// session with a forgotten name is a new one.
func TestClosedSessionsAreForgotten(t *testing.T) {
	c := newCrowded(t, Rules{KeepClosed: 2})
	members := []session.Member{{AgentID: "a", AgentType: session.AgentArchitect}, {AgentID: "b", AgentType: session.AgentDeveloper}}
	sync := func(ids ...string) {
		set := &wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: wire.RolePlanner}, {ID: "b", Role: wire.RoleWorker}}}
		for _, id := range ids {
			set.Sessions = append(set.Sessions, session.Spec{ID: id, Members: members})
		}
		c.do(Actor{}, set)
		requireSound(t, c.state)
	}
	known := func() (ids []string) {
		for _, s := range c.state.Sessions.Order {
			ids = append(ids, s.Spec.ID)
		}
		return ids
	}
	sync("s0", "s1", "s2")
	sync("s0", "s2")
	sync("s2")
	require.Equal(t, []string{"s0", "s1", "s2"}, known())
	sync()
	require.Equal(t, []string{"s0", "s2"}, known(), "s1 closed first")
	c.state = restored(t, c.state.Rules, spelled(t, c.state))
	require.Equal(t, []string{"s0", "s2"}, known())
	sync("s1")
	require.Equal(t, []string{"s0", "s2", "s1"}, known())
	require.Len(t, c.state.Sessions.Seats["a"], 3)
	for i := range 50 {
		sync(fmt.Sprint("t", i))
	}
	require.Equal(t, []string{"t47", "t48", "t49"}, known())
}

// TestServersWithoutKeysAreForgotten checks that a State keeps few servers with revoked keys,
// and every server that has a key.
func TestServersWithoutKeysAreForgotten(t *testing.T) {
	c := newCrowded(t, Rules{KeepClosed: 2})
	register := func(name string) (key string) {
		token := c.ask("issue-registration", &wire.IssueRegistration{}).Letters[0].Payload.(*wire.IssuedRegistration).Token
		c.ask("register-agent", &wire.Register{Token: token, Name: name})
		for k := range c.state.Access.All() {
			if k.Kind == access.Key && k.For == name {
				return k.ID
			}
		}
		return ""
	}
	register("stays")
	early := register("early")
	for i := range 9 {
		c.ask("revoke-key", &wire.Revoke{ID: register(fmt.Sprint("m", i))})
		requireSound(t, c.state)
	}
	c.ask("revoke-key", &wire.Revoke{ID: early}) // it came first, and is the last to lose its key
	c.state = restored(t, c.state.Rules, spelled(t, c.state))
	c.ask("revoke-key", &wire.Revoke{ID: register("m9")})
	var names []string
	for _, a := range c.state.Agents.Order {
		names = append(names, a.ID)
	}
	require.Equal(t, []string{"a", "stays", "early", "m9"}, names)
	require.Len(t, slices.Collect(c.state.Access.All()), 1, "credentials that are spent or revoked")
	register("m0")
	requireSound(t, c.state)
}

// TestAbortedSessionsAreKept checks that an aborted session is kept, because it reopens at the
// next start.
func TestAbortedSessionsAreKept(t *testing.T) {
	x := state.NewSessions()
	for i, aborted := range []bool{true, false, false} {
		x.Put(&state.SessionState{StoredSession: state.StoredSession{Spec: session.Spec{ID: fmt.Sprint("s", i)}, File: true, Aborted: aborted, ClosedAt: int64(i + 1)}})
	}
	x.Trim(1)
	require.NotNil(t, x.ByID["s0"])
	require.Nil(t, x.ByID["s1"])
	require.NotNil(t, x.ByID["s2"])
}

// TestBlocks checks that a task block has one task, whatever its later text, and that a restored
// State knows the task.
func TestBlocks(t *testing.T) {
	p := atWork(t)
	submit := func(p *player, name, agent string, block hub.TaskBlock) *wire.Error {
		p.do(Actor{}, &wire.Request{ID: "1", Operation: "submit-task", Body: &wire.SubmitTask{Type: "task", Name: name, AssignTo: agent, Block: &block}})
		return p.last.Letters[0].Refusal
	}
	require.Nil(t, submit(p, "one", "coder", hub.TaskBlock{Name: "a", Sum: 7}))
	require.Nil(t, submit(p, "two", "", hub.TaskBlock{Name: "b", Needs: []string{"a"}}))
	require.Equal(t, wire.CodeNotFound, submit(p, "three", "none", hub.TaskBlock{Name: "c"}).Code)
	one, two := p.task("one"), p.task("two")
	require.Equal(t, "coder", one.View.AssignedTo)
	require.Equal(t, []string{one.View.ID}, p.state.Tasks.Reply(two).Task.Dependencies)
	require.Nil(t, p.task("three"))

	saved := p.saved()
	for _, other := range []*player{p, &saved, {t: t, state: p.replayed(), at: p.at, chance: p.chance, records: p.records}} {
		require.Nil(t, submit(other, "other", "", hub.TaskBlock{Name: "a", Sum: 8}))
		require.Empty(t, other.last.Records)
		require.Equal(t, one.View.ID, other.last.Letters[0].Payload.(*wire.TaskReply).Task.ID)
		id, st, sum := other.state.OfBlock("a")
		require.Equal(t, []any{one.View.ID, wire.TaskAssigned, uint64(7)}, []any{id, st, sum})
		id, _, _ = other.state.OfBlock("c")
		require.Empty(t, id)
	}
}
