package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// Mail after a cursor can be read any number of times; only an ack moves the cursor. Acked mail
// stays acked and other mail stays unread, also after a kill.
//
// Rows: E-23, E-26, E-27, E-30, E-33, E-34, E-35, E-36, E-37, E-38, E-40, E-63, T-34, T-35.
func TestBusPollAndAck(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	one, two := b.clerk("HO:one"), b.clerk("HO:two")
	var sent []stage.Mail
	for n := range 10 {
		sent = append(sent, one.send("HO:two", stage.Direct, fmt.Sprintf(`{"n":%d}`, n)))
		one.send("HO:other", stage.Direct, `{}`) // numbers in one mailbox have gaps
	}
	first := two.Ask(two.poll(""), "").Text
	require.Equal(t, sent, two.polls(""))
	require.Equal(t, first, two.Ask(two.poll(""), "").Text)
	require.Equal(t, first, two.Ask("GET /api/bus/poll", "").Text, "without a name it is one's own")
	require.Equal(t, first, two.Ask(two.poll("&cursor=0"), "").Text)
	require.Equal(t, sent[5:], two.polls(fmt.Sprint("&cursor=", sent[4].Seq)))
	require.Equal(t, sent[5:], two.polls(fmt.Sprint("&cursor=", sent[4].Seq+1)), "a number between two is as good")
	require.Empty(t, two.polls(fmt.Sprint("&cursor=", sent[9].Seq)))
	require.Empty(t, two.polls("&cursor=9007199254740991"))
	page, more := two.pollsMore("&limit=3")
	require.Equal(t, sent[:3], page)
	require.True(t, more)
	page, more = two.pollsMore(fmt.Sprint("&limit=3&cursor=", sent[6].Seq))
	require.Equal(t, sent[7:], page)
	require.False(t, more)
	require.Zero(t, b.known("HO:two").Cursor)

	require.EqualValues(t, 0, two.acks(0))
	require.Equal(t, sent[3].Seq, two.acks(sent[3].Seq))
	require.Equal(t, sent[3].Seq, b.known("HO:two").Cursor)
	require.Equal(t, sent[4:], two.polls(""))
	require.Equal(t, sent[3].Seq, two.acks(sent[1].Seq), "who comes late takes nothing back")
	require.Equal(t, sent[3].Seq, two.acks(sent[3].Seq))
	require.Equal(t, sent[4:], two.polls(""))
	require.Equal(t, first, two.Ask(two.poll("&cursor=0"), "").Text, "what was acked is still there")
	require.Equal(t, sent[1:], two.polls(fmt.Sprint("&cursor=", sent[0].Seq)))
	last := int64(len(storyOf(b.Hub)))
	for _, beyond := range []int64{last + 1, last + 2, 1 << 52} {
		refusal := spurned(two.Caller, http.StatusBadRequest, "invalid", "POST /api/bus/ack", fmt.Sprintf(`{"seq":%d}`, beyond))
		require.Equal(t, "/seq", refusal.Error.Details["pointer"])
	}
	for _, body := range []string{``, `{}`, `{"actor":"HO:two"}`, `{"seq":null}`, `{"seq":"1"}`, `{"seq":-1}`, `{"seq":1.5}`, `[1]`} {
		require.Equal(t, http.StatusBadRequest, two.Ask("POST /api/bus/ack", body).Status, body)
	}
	for _, query := range []string{"&cursor=", "&cursor=-1", "&cursor=x", "&cursor=1.0", "&limit=0", "&limit=10001", "&limit=x"} {
		spurned(two.Caller, http.StatusBadRequest, "invalid", two.poll(query), "")
	}
	require.Equal(t, last, int64(len(storyOf(b.Hub))), "and nothing has happened")

	b.Kill()
	b.Open()
	require.Equal(t, sent[4:], two.polls(""))
	require.Equal(t, first, two.Ask(two.poll("&cursor=0"), "").Text)
	require.Equal(t, sent[8].Seq, two.acks(sent[8].Seq))
	b.Stop()
	b.Open()
	require.Equal(t, sent[9:], two.polls(""))
	require.Equal(t, first, two.Ask(two.poll("&cursor=0"), "").Text)
	require.Greater(t, one.send("HO:two", stage.Direct, `{}`).Seq, sent[9].Seq)
	b.Stop()
}

// A thousand messages of one sender are delivered in order, each with its own number, while
// another actor sends too.
//
// Rows: E-10, E-24, E-28, E-86.
func TestBusInOrder(t *testing.T) {
	t.Parallel()
	const many = 1000
	b, actors := newBureau(t, writing("two", "PO:two"), "two")
	one := b.clerk("HO:one")
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, stage.MailLine("PO:two", "HO:x", stage.Direct, fmt.Sprintf(`{"n":%d}`, n)))
	}
	actors[0].Say(flood.String())
	last := int64(0)
	for n := range many {
		r, err := one.Try("POST /api/bus/send", stage.MailLine("HO:one", "HO:x", stage.Direct, fmt.Sprintf(`{"n":%d}`, n)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status, r.Text)
		seq := readSent(t, r.Text).Seq
		require.Greater(t, seq, last)
		last = seq
	}
	stage.WaitFor(t, "all answers", func() bool { return len(plain(actors[0])) == many })
	bySender := make(map[string][]stage.Mail)
	for _, l := range b.clerk("HO:x").polls("&limit=10000") {
		bySender[l.From] = append(bySender[l.From], l)
	}
	require.Equal(t, counting(many), payloads(bySender["HO:one"]))
	require.Equal(t, counting(many), payloads(bySender["PO:two"]))
	stage.RequireNoGaps(t, b.Orchestrator)
	b.Stop()
}

// Only GO may broadcast. A broadcast is one row, which all actors find, also later ones.
//
// Rows: E-12, E-20, E-27, E-31, E-38, E-52, E-68, T-41.
func TestBusBroadcast(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("late", "PO:late", "autostart = false"), "one", "-late")
	early := b.clerk("HO:early")
	own := early.send("HO:own", stage.Direct, `{}`)
	said := b.boss.send("broadcast", "broadcast.all", `{"stop":true}`)
	require.Equal(t, "broadcast", said.To)
	require.Empty(t, said.Warnings)
	b.boss.send("HO:later", stage.Direct, `{"for":"later"}`)
	for _, w := range []*clerk{early, b.clerk("HO:later"), b.clerk("W:far"), b.clerk("S:db:1")} {
		found := w.polls("&cursor=0")
		require.Equal(t, said, found[0], w.actor)
		require.Equal(t, found, w.polls(""), "who has acked nothing begins with the first")
		if w.actor == "HO:later" {
			require.Equal(t, `{"for":"later"}`, string(found[1].Payload), "it was there before its reader had a token")
			continue
		}
		require.Len(t, found, 1)
	}
	require.Equal(t, said, actors[0].Receives(1)[0])
	require.NotContains(t, seqs(b.boss.polls("&cursor=0")), said.Seq, "one's own words are no news")
	require.Equal(t, []int64{own.Seq, said.Seq}, seqs(b.clerk("HO:own").polls("")))
	elsewhere := b.clerk("GO")
	again := elsewhere.send("broadcast", "any.topic", `{}`)
	require.Equal(t, []int64{said.Seq, again.Seq}, seqs(early.polls("&cursor=0")))
	require.Len(t, about(b.boss.polls("&cursor=0"), "topic.unknown"), 1)

	b.boss.send("PO:late", stage.Direct, `{"for":"late"}`)
	b.Ask("agent", "start", "late")
	found := b.NextReady("late").Receives(3)
	require.Equal(t, []int64{said.Seq, again.Seq}, seqs(found[:2]), "a name outlives all runs, and so it has missed nothing")
	require.Equal(t, `{"for":"late"}`, string(found[2].Payload))
	rows := 0
	for _, e := range storyOf(b.Hub) {
		if e.Kind == "message.sent" && strings.Contains(e.Text, "broadcast.all") {
			rows++
		}
	}
	require.Equal(t, 1, rows)
	b.Stop()
}

// Actors of all families send mail to each other.
//
// Rows: E-11, E-12, E-51, E-68, E-69, E-70, E-71, E-72, E-73.
func TestBusFamilies(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	var all []*clerk
	for _, id := range []string{
		"GO", "HO:hetzner-1", "PO:paperclip", "IO:shai", "W:a3f9", "W:0b7e4c1e-56a7-4b51-9f0e-0a5b8c6f2d11", "S:db:b2c1", "S:dé-x:0b7e4c1e-56a7-4b51-9f0e-0a5b8c6f2d11",
		"HO:" + strings.Repeat("a", 197),
	} {
		all = append(all, b.clerk(id))
	}
	for _, from := range all {
		for _, to := range all {
			require.Empty(t, from.send(to.actor, stage.Direct, fmt.Sprintf(`{"from":%q}`, from.actor)).Warnings)
		}
	}
	for _, c := range all {
		found := c.polls("")
		require.Len(t, found, len(all))
		for i, l := range found {
			require.Equal(t, []string{all[i].actor, c.actor}, []string{l.From, l.To})
		}
	}
	b.Stop()
}

// An actor that may exist only once cannot be given to a second agent in the file, nor to a
// token.
//
// Rows: E-68, E-74, E-75, E-76.
func TestBusActorsThatAreThereOnce(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"GO", "HO:h1", "PO:p", "IO:shai"} {
		s := stage.New(t, writing("a", id)+writing("b", id))
		_, stderr, code := s.Call("validate")
		require.NotZero(t, code)
		require.Contains(t, stderr, `Agent "a" already uses `+strconv.Quote(id))
	}
	for _, id := range []string{"Bus", "Governor", "broadcast", "HO:", "GO:x", "x"} {
		s := stage.New(t, writing("a", id))
		_, stderr, code := s.Call("validate")
		require.NotZero(t, code, id)
		require.Contains(t, stderr, "is not an actor", id)
	}
	b, _ := newBureau(t, writing("boss", "GO")+writing("host", "HO:h1")+writing("db", "S:db")+writing("more", "S:db"), "boss", "host", "db", "more")
	for _, id := range []string{"GO", "HO:h1"} {
		spurned(b.boss.Caller, http.StatusConflict, "conflict", "POST /api/agents/tokens", fmt.Sprintf(`{"actor":%q}`, id))
	}
	for _, id := range []string{"Bus", "Governor", "broadcast", "HO:", "S:db", ""} {
		spurned(b.boss.Caller, http.StatusBadRequest, "invalid", "POST /api/agents/tokens", fmt.Sprintf(`{"actor":%q}`, id))
	}
	b.Stop()
}

// news is the payload of a message to GO about an agent.
type news struct {
	Alert, Agent, Actor, Run, Signal, Text string
	PID                                    int
	ExitCode                               *int   `json:"exit_code"`
	LastSeen                               string `json:"last_seen"`
	Code                                   string `json:"error_code"`
}

// hearsOf waits until GO has n messages on a topic about an actor, and returns them.
func (b *bureau) hearsOf(n int, topic, actor string) (found []news) {
	b.T.Helper()
	stage.WaitFor(b.T, fmt.Sprintf("%d times %s of %s", n, topic, actor), func() bool {
		found = nil
		for _, l := range about(b.boss.polls("&cursor=0&limit=10000"), topic) {
			var told news
			require.NoError(b.T, json.Unmarshal(l.Payload, &told), l.Text)
			if told.Actor == actor {
				found = append(found, told)
			}
		}
		return len(found) >= n
	})
	return found
}

// GO gets a message about the start and the end of each run of an agent. A good end is reported
// once, by the agent or the orchestrator; otherwise there is an alert.
//
// Rows: E-46, E-47, E-48, E-49, E-72.
func TestBusLives(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("auto", "auto"), "one", "auto")
	one, auto := actors[0], actors[1]
	spawned := b.hearsOf(1, "agent.spawned", "PO:one")[0]
	require.Equal(t, news{Agent: "one", Actor: "PO:one", Run: one.Run, PID: one.Pid}, spawned)
	require.Equal(t, auto.Run, b.hearsOf(1, "agent.spawned", "W:"+auto.Run)[0].Run)
	for _, l := range about(b.boss.polls(""), "agent.spawned") {
		require.Equal(t, []string{"GO", "GO"}, []string{l.From, l.To})
	}

	auto.Exit(0)
	auto2 := b.NextReady("auto")
	ended := b.hearsOf(1, "agent.terminated", "W:"+auto.Run)
	require.Len(t, ended, 1)
	require.Equal(t, 0, *ended[0].ExitCode)

	one.Granted(nil, "send-message", `{"to_actor":"GO","topic":"agent.terminated","payload":{"actor":"PO:one","text":"bye"}}`)
	one.Exit(0)
	one = b.NextReady("one")
	b.hearsOf(2, "agent.spawned", "PO:one")
	ended = b.hearsOf(1, "agent.terminated", "PO:one")
	require.Equal(t, []string{"bye"}, []string{ended[0].Text}, "who has said so itself need not be said to have")
	require.Len(t, ended, 1)

	one.Exit(3)
	b.NextReady("one")
	b.hearsOf(3, "agent.spawned", "PO:one")
	crashed, resolved := b.hearsOf(1, "alert.fired", "PO:one"), b.hearsOf(1, "alert.resolved", "PO:one")
	require.Len(t, crashed, 1)
	require.Equal(t, "agent.crashed", crashed[0].Alert)
	require.Equal(t, 3, *crashed[0].ExitCode)
	require.Len(t, resolved, 1)
	require.Equal(t, "agent.crashed", resolved[0].Alert)
	auto2.Kill()
	b.NextReady("auto")
	crashed = b.hearsOf(1, "alert.fired", "W:"+auto2.Run)
	require.Equal(t, "SIGKILL", crashed[0].Signal)
	require.Len(t, b.hearsOf(1, "agent.terminated", "PO:one"), 1, "a crash is no end")
	for _, l := range about(b.boss.polls(""), "alert.fired") {
		require.Equal(t, []string{"Bus", "GO"}, []string{l.From, l.To})
	}
	b.Ask("agent", "stop", "one")
	require.Len(t, b.hearsOf(2, "agent.terminated", "PO:one"), 2)
	require.Equal(t, "offline", b.known("PO:one").Status)
	b.Stop()
}

// An agent that sends no heartbeats is reported as stale, once, until it sends one. GO is notified
// of both. An external actor is watched after its first heartbeat.
//
// Rows: E-48, E-49, E-50, E-64, E-65, E-66, E-67, T-40.
func TestBusStale(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("auto", "auto")+"bus {\n  heartbeat = \"1s\"\n  stale     = \"2s\"\n}\n", "one", "auto")
	one, far, other := actors[0], b.clerk("HO:far"), b.clerk("HO:other")
	beat := func(c *clerk) string {
		t.Helper()
		r := c.Ask("POST /api/bus/heartbeat", fmt.Sprintf(`{"actor":%q}`, c.actor))
		require.Equal(t, http.StatusOK, r.Status, r.Text)
		var said struct {
			Actor    string
			LastSeen string `json:"last_seen"`
			Every    int64  `json:"heartbeat_ms"`
		}
		require.NoError(t, json.Unmarshal([]byte(r.Text), &said))
		require.Equal(t, c.actor, said.Actor)
		require.EqualValues(t, 1000, said.Every)
		return said.LastSeen
	}
	last := beat(far)
	require.Regexp(t, stage.TimePattern, last)
	require.Equal(t, last, b.known("HO:far").LastBeat)
	require.Equal(t, "active", b.known("HO:far").Status)
	other.send("GO", stage.Direct, `{}`)
	require.Equal(t, "quiet", b.known("HO:other").Status, "nobody expects anything of who has never sent one")

	fired := b.hearsOf(1, "alert.fired", "PO:one")
	require.Equal(t, "agent.stale", fired[0].Alert)
	require.Equal(t, "one", fired[0].Agent)
	fired = b.hearsOf(1, "alert.fired", "HO:far")
	require.Equal(t, "agent.stale", fired[0].Alert)
	require.Equal(t, last, fired[0].LastSeen)
	require.Equal(t, "stale", b.known("HO:far").Status)
	one.Granted(nil, "heartbeat", `{}`)
	require.Equal(t, "agent.stale", b.hearsOf(1, "alert.resolved", "PO:one")[0].Alert)
	require.Equal(t, "active", b.known("PO:one").Status)
	b.hearsOf(2, "alert.fired", "PO:one")
	require.Len(t, b.hearsOf(1, "alert.fired", "HO:far"), 1, "who stays away is missed once")
	require.Len(t, b.hearsOf(1, "alert.resolved", "PO:one"), 1)
	far.send("Bus", "heartbeat", `{}`) // a heartbeat sent as mail counts too
	require.Len(t, b.hearsOf(1, "alert.resolved", "HO:far"), 1)
	require.Equal(t, "active", b.known("HO:far").Status)
	one.Exit(0)
	require.Contains(t, b.hearsOf(2, "alert.resolved", "PO:one")[1].Text, "it has ended")
	for _, l := range b.boss.polls("") {
		if strings.HasPrefix(l.Topic, "alert.") {
			require.Equal(t, []string{"Bus", "GO"}, []string{l.From, l.To})
			require.NotContains(t, l.Text, "HO:other")
			require.NotContains(t, l.Text, `"W:`, "nor is anything expected of a run that has never sent one")
		}
	}
	require.Empty(t, about(b.boss.polls(""), "topic.unknown"))
	b.Stop()
}

// Standard topics and topics of the file are accepted without a warning. Other topics are
// accepted too, and GO gets one alert. An unusual sender or recipient of a topic only causes a
// warning.
//
// Rows: E-41, E-42, E-43, E-44, E-45, E-50, E-51, E-52, E-53, E-54, E-55, E-56, E-62, E-63, T-38.
func TestBusTopics(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+"bus {\n  topics = [\"build.finished\"]\n}\n", "one")
	one, worker := b.agentsOwn("one", "PO:one"), b.clerk("W:a3f9")
	require.Empty(t, b.boss.send("PO:one", "task.assigned", `{"ticket_id":"abc-123","priority":2}`).Warnings)
	require.Equal(t, `{"ticket_id":"abc-123","priority":2}`, string(actors[0].Receives(1)[0].Payload))
	for _, topic := range []string{"task.completed", "task.failed", "task.progress", "agent.terminated", "message.direct", "build.finished"} {
		require.Empty(t, worker.send("GO", topic, `{}`).Warnings, topic)
	}
	require.Empty(t, worker.send("Bus", "heartbeat", `{}`).Warnings)
	require.Empty(t, worker.send("W:b", "message.direct", `{}`).Warnings)
	require.Empty(t, b.boss.send("GO", "agent.spawned", `{}`).Warnings)
	require.Empty(t, b.boss.send("broadcast", "broadcast.all", `{}`).Warnings)
	require.Len(t, worker.send("GO", "alert.fired", `{}`).Warnings, 1)
	require.Len(t, worker.send("GO", "alert.resolved", `{}`).Warnings, 1)
	require.Len(t, worker.send("PO:one", "task.assigned", `{}`).Warnings, 1)
	require.Len(t, worker.send("PO:one", "task.completed", `{}`).Warnings, 1)
	require.Len(t, worker.send("GO", "topic.unknown", `{}`).Warnings, 1)
	require.Len(t, about(b.boss.polls(""), "topic.unknown"), 1, "that one it has sent itself")

	odd := worker.send("PO:one", "foo.bar", `{}`)
	require.Len(t, odd.Warnings, 1)
	unknown := about(b.boss.polls(""), "topic.unknown")
	require.Len(t, unknown, 2)
	require.Equal(t, []string{"Bus", "GO"}, []string{unknown[1].From, unknown[1].To})
	require.Equal(t, odd.Seq, *unknown[1].ReplyTo)
	require.Contains(t, string(unknown[1].Payload), `"topic":"foo.bar"`)
	require.Contains(t, seqs(one.polls("")), odd.Seq)
	b.boss.send("PO:one", "GO.to", `{}`)
	require.Len(t, about(b.boss.polls(""), "topic.unknown"), 3)

	task := b.boss.send("W:a3f9", "task.assigned", `{"ticket_id":"x"}`)
	failed := worker.send("GO", "task.failed", `{"error_code":"E_DISK","error":"no room"}`, fmt.Sprintf(`"reply_to":%d`, task.Seq))
	require.Contains(t, seqs(b.boss.polls("")), failed.Seq)
	dead := b.hearsOf(1, "alert.fired", "W:a3f9")
	require.Equal(t, []string{"message.failed", "E_DISK"}, []string{dead[0].Alert, dead[0].Code})
	alerts := about(b.boss.polls(""), "alert.fired")
	require.Equal(t, task.Seq, *alerts[len(alerts)-1].ReplyTo)
	worker.acks(task.Seq)
	require.Contains(t, seqs(worker.polls("&cursor=0")), task.Seq, "what could not be dealt with stays")
	b.Stop()
}

// Mail of an agent about its tasks updates the tasks.
//
// Rows: E-43, E-44, E-45, K-01.
func TestBusMailOfTasks(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one", "  capabilities {\n    max_concurrent_tasks = 3\n  }"), "one")
	one := actors[0]
	var tasks []stage.Task
	for range 2 {
		var made struct{ Task stage.Task }
		b.Operated(&made, "submit-task", `{"type":"t","name":"n","requiredRole":"worker"}`)
		one.Assigned(made.Task.ID)
		tasks = append(tasks, made.Task)
	}
	one.Granted(nil, "send-message", fmt.Sprintf(`{"to_actor":"GO","topic":"task.progress","payload":{"ticket_id":%q,"progress":0.5}}`, tasks[0].ID))
	require.Equal(t, 0.5, one.Task(tasks[0].ID).Progress)
	b.agentsOwn("one", "PO:one").send("GO", "task.completed", fmt.Sprintf(`{"ticket_id":%q,"result":{"n":1.50}}`, tasks[0].ID))
	done := one.Task(tasks[0].ID)
	require.Equal(t, "completed", done.Status)
	require.Equal(t, `{"n":1.50}`, string(done.Result))
	one.Say(stage.MailLine("PO:one", "GO", "task.failed", fmt.Sprintf(`{"ticket_id":%q,"error_code":"E_DISK","error":"no room"}`, tasks[1].ID)) + "\n")
	stage.WaitFor(t, "end of the task", func() bool { return one.Task(tasks[1].ID).Status == "failed" })
	require.Equal(t, "no room", one.Task(tasks[1].ID).Error)
	b.Stop()
}
