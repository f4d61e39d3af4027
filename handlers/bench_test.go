package handlers

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// A bench drives a State without anything that would distort the measurement.
type bench struct {
	b     testing.TB
	state *State
	n     uint64
	since time.Duration // the beginning
	out   Outcome
}

// newBench returns a State with a planner and workers, all running.
func newBench(b testing.TB, workers int) *bench {
	z := &bench{b: b, state: New(Rules{})}
	roster := &wire.AgentSet{Agents: []wire.Member{{ID: "planner", Role: wire.RolePlanner, Capacity: 1 << 30, OnExit: "auto"}}}
	for i := range workers {
		roster.Agents = append(roster.Agents, wire.Member{
			ID: fmt.Sprintf("w%d", i), Role: wire.RoleWorker, Capabilities: []string{"go", "sql"}, Capacity: 1, OnExit: "auto",
		})
	}
	z.do(Actor{}, roster)
	z.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	for _, m := range roster.Agents {
		z.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: m.ID, Run: "r"})
	}
	return z
}

func (b *bench) do(from Actor, m wire.Message) {
	b.n++
	in := Input{At: beginning.Add(b.since), From: from, Message: m}
	binary.BigEndian.PutUint32(in.Random[:], uint32(b.n))
	b.out = b.state.Handle(in)
}

var planner = Actor{Kind: Agent, Name: "planner", Run: "r"}

// ask handles a decoded request under a new id.
func (b *bench) ask(from Actor, r *wire.Request) {
	b.n++
	r.ID = fmt.Sprint(b.n)
	b.do(from, r)
	if b.out.Refused != nil {
		require.Nil(b.b, b.out.Refused)
	}
}

func request(b testing.TB, operation, payload string) *wire.Request {
	r := &wire.Request{Operation: operation, Timestamp: "2026-11-21T14:00:00.000Z", Payload: []byte(payload)}
	require.Nil(b, Prepare(r, 64))
	return r
}

// submit submits a task and returns its id.
func (b *bench) submit(payload string) string {
	b.ask(planner, request(b.b, "submit-task", payload))
	return b.state.Tasks.List[len(b.state.Tasks.List)-1].View.ID
}

const (
	plainTask  = `{"type":"build","name":"Build the parser","description":"As it is written","payload":{"file":"src/parser.go"}}`
	workerTask = `{"type":"build","name":"Build the parser","requiredRole":"worker","requiredCapabilities":["go"],"payload":{"file":"src/parser.go"}}`
	noOnesTask = `{"type":"build","name":"Build the parser","requiredRole":"worker","requiredCapabilities":["cobol"]}`
)

func BenchmarkQueryAgents(b *testing.B) {
	z := newBench(b, 100)
	r := request(b, "query-agents", `{"role":"worker","status":"idle"}`)
	b.ReportAllocs()
	for b.Loop() {
		z.do(planner, r)
	}
}

func BenchmarkGetTask(b *testing.B) {
	z := newBench(b, 100)
	r := request(b, "get-task", fmt.Sprintf(`{"taskId":%q}`, z.submit(plainTask)))
	b.ReportAllocs()
	for b.Loop() {
		z.do(planner, r)
	}
}

func BenchmarkQueryTasks(b *testing.B) {
	z := newBench(b, 100)
	for range 1000 {
		z.submit(plainTask)
	}
	r := request(b, "query-tasks", `{"limit":100}`)
	b.ReportAllocs()
	for b.Loop() {
		z.do(planner, r)
	}
}

func BenchmarkSubmit(b *testing.B) {
	z := newBench(b, 100)
	r := request(b, "submit-task", plainTask)
	b.ReportAllocs()
	for b.Loop() {
		z.ask(planner, r)
	}
}

// BenchmarkCycle submits a task, which is assigned, delivered and completed.
func BenchmarkCycle(b *testing.B) {
	for _, workers := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("agents=%d", workers), func(b *testing.B) {
			z := newBench(b, workers)
			r := request(b, "submit-task", workerTask)
			b.ReportAllocs()
			for b.Loop() {
				z.cycle(r)
			}
		})
	}
}

func (b *bench) cycle(submit *wire.Request) {
	b.ask(planner, submit)
	k := b.state.Tasks.List[len(b.state.Tasks.List)-1]
	worker := Actor{Kind: Agent, Name: k.View.AssignedTo, Run: "r"}
	b.do(Actor{}, &wire.Delivered{Agent: worker.Name, Run: "r", Task: k.View.ID})
	b.ask(worker, &wire.Request{Operation: "complete-task", Timestamp: "t", Sum: b.n, Body: &wire.CompleteTask{TaskID: k.View.ID}})
}

// BenchmarkCycleBesideWaiting runs a cycle while 10,000 tasks wait for an agent that does not
// exist. Their requirements are all the same or all different.
func BenchmarkCycleBesideWaiting(b *testing.B) {
	for _, test := range []struct {
		name    string
		payload func(i int) string
	}{
		{"same", func(int) string { return noOnesTask }},
		{"different", func(i int) string {
			return fmt.Sprintf(`{"type":"build","name":"n","requiredRole":"worker","requiredCapabilities":["go","c%d"]}`, i)
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			z := newBench(b, 100)
			for i := range 10_000 {
				z.submit(test.payload(i))
			}
			r := request(b, "submit-task", workerTask)
			b.ReportAllocs()
			for b.Loop() {
				z.cycle(r)
			}
		})
	}
}

// BenchmarkProgressBesideWaiting reports progress, which frees no agent, while 10,000 tasks
// wait.
func BenchmarkProgressBesideWaiting(b *testing.B) {
	z := newBench(b, 100)
	for range 10_000 {
		z.submit(noOnesTask)
	}
	report := z.progress()
	b.ReportAllocs()
	for b.Loop() {
		report()
	}
}

// progress gives a worker a task. The returned function reports progress of it.
func (b *bench) progress() (report func()) {
	id := b.submit(workerTask)
	worker := Actor{Kind: Agent, Name: b.state.Tasks.ByID[id].View.AssignedTo, Run: "r"}
	r := &wire.AgentEvent{Name: "progress", Body: &activity.Progress{TaskID: id, Progress: 0.5}}
	return func() { b.do(worker, r) }
}

// TestProgressAllocatesLittle checks that a fact without a request costs no answer.
func TestProgressAllocatesLittle(t *testing.T) {
	report := newBench(t, 1).progress()
	require.LessOrEqual(t, testing.AllocsPerRun(100, report), 4.0)
}

// BenchmarkRequeue takes a task from an agent that does not read and gives it to the next, after
// 50,000 other tasks.
func BenchmarkRequeue(b *testing.B) {
	z := newBench(b, 2)
	r := request(b, "submit-task", workerTask)
	first := z.submit(workerTask)
	for range 50_000 {
		z.ask(planner, r)
		k := z.state.Tasks.List[len(z.state.Tasks.List)-1]
		if k.View.AssignedTo == "" { // the one agent has the first one
			k = z.state.Tasks.List[len(z.state.Tasks.List)-2]
		}
		z.do(Actor{}, &wire.Delivered{Agent: k.View.AssignedTo, Run: "r", Task: k.View.ID})
		worker := Actor{Kind: Agent, Name: k.View.AssignedTo, Run: "r"}
		z.do(worker, &wire.Request{ID: "c", Operation: "complete-task", Timestamp: "t", Sum: z.n, Body: &wire.CompleteTask{TaskID: k.View.ID}})
	}
	k := z.state.Tasks.ByID[first]
	b.ReportAllocs()
	for b.Loop() {
		name := k.View.AssignedTo
		z.do(Actor{}, &wire.Delivered{Agent: name, Run: "r", Task: first, Lost: true})
		z.do(Actor{}, &wire.Event{Kind: events.AgentRecovered, Agent: name, Run: "r"})
	}
}

// BenchmarkGraph completes a graph of dependent tasks that is 100 tasks wide.
func BenchmarkGraph(b *testing.B) {
	for _, tasks := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				z := newBench(b, 8)
				var ids []string
				for i := range tasks {
					needs := ""
					if i >= 100 {
						needs = fmt.Sprintf(`%q,%q`, ids[i-100], ids[i-37])
					}
					ids = append(ids, z.submit(fmt.Sprintf(`{"type":"t","name":"n","requiredRole":"worker","dependencies":[%s]}`, needs)))
				}
				b.StartTimer()
				z.finish()
				require.Equal(b, tasks, z.state.Tasks.Counts[wire.TaskDone])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tasks), "ns/task")
		})
	}
}

// finish has the workers complete their tasks until none is open.
func (b *bench) finish() {
	for b.state.Open() > 0 {
		for _, a := range b.state.Agents.Order {
			if len(a.Holds) > 0 {
				b.ask(Actor{Kind: Agent, Name: a.ID, Run: "r"},
					&wire.Request{Operation: "complete-task", Timestamp: "t", Sum: b.n, Body: &wire.CompleteTask{TaskID: a.Holds[0].View.ID}})
			}
		}
	}
}

// BenchmarkApply replays the records of cycles.
func BenchmarkApply(b *testing.B) {
	z := newBench(b, 0)
	var records []wire.Record
	keep := func() { records = append(records, z.out.Records...) }
	z.state = New(Rules{})
	z.do(Actor{}, &wire.AgentSet{Agents: []wire.Member{{ID: "planner", Role: wire.RolePlanner}, {ID: "w0", Role: wire.RoleWorker, Capacity: 1 << 30, Capabilities: []string{"go"}}}})
	keep()
	z.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: "w0", Run: "r"})
	keep()
	r := request(b, "submit-task", workerTask)
	for range 10_000 {
		z.ask(planner, r)
		keep()
		k := z.state.Tasks.List[len(z.state.Tasks.List)-1]
		z.do(Actor{}, &wire.Delivered{Agent: "w0", Run: "r", Task: k.View.ID})
		keep()
		z.do(Actor{Kind: Operator}, &wire.Request{ID: "1", Operation: "complete-task", Body: &wire.CompleteTask{TaskID: k.View.ID}})
		keep()
	}
	b.ReportAllocs()
	for b.Loop() {
		s := New(Rules{})
		for i := range records {
			if err := s.Apply(nil, records[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

// BenchmarkSnapshot encodes and restores a State of many tasks.
func BenchmarkSnapshot(b *testing.B) {
	z := newBench(b, 100)
	r := request(b, "submit-task", workerTask)
	for range 100_000 {
		z.cycle(r)
	}
	text, err := z.state.Snapshot().Text()
	require.NoError(b, err)
	b.Run("spell", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			_, _ = z.state.Snapshot().Text()
		}
	})
	b.Run("piece", func(b *testing.B) { // for each, the State is held once
		longest := time.Duration(0)
		for b.Loop() {
			began := time.Now()
			s := z.state.Snapshot()
			longest = max(longest, time.Since(began))
			for done := false; !done; {
				began = time.Now()
				_, done, _ = s.Next(32 << 10)
				longest = max(longest, time.Since(began))
			}
		}
		b.ReportMetric(float64(longest.Microseconds()), "us/longest")
	})
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			_, _ = Restore(Rules{}, text, nil)
		}
	})
}

// mailers lists the senders in the benchmarks: an agent with remembered requests, and an external
// actor.
var mailers = []struct {
	name string
	from Actor
}{
	{"agent", Actor{Kind: Agent, Name: "w0", Run: "r"}},
	{"elsewhere", Actor{Kind: External, Name: "HO:far"}},
}

const letter = `{"to_actor":"GO","topic":"message.direct","payload":{"what":"The parser is built","files":["src/parser.go"]}}`

func BenchmarkSend(b *testing.B) {
	for _, m := range mailers {
		b.Run(m.name, func(b *testing.B) {
			z, r := newBench(b, 1), request(b, "send-message", letter)
			b.ReportAllocs()
			for b.Loop() {
				z.ask(m.from, r)
			}
			require.Len(b, z.out.Records, 1)
		})
	}
}

// BenchmarkSendKey sends messages with more keys than the State remembers. The lookup in the log
// is not included.
func BenchmarkSendKey(b *testing.B) {
	for _, m := range mailers {
		b.Run(m.name, func(b *testing.B) {
			z, r := newBench(b, 1), request(b, "send-message", letter)
			body := r.Body.(*wire.SendMessage)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				body.Key, body.Looked = strconv.Itoa(n), z.state.Seq()
				_, body.Sender, _ = z.state.IdempotencyKey(&Input{From: m.from, Message: r})
				z.ask(m.from, r)
			}
			require.Len(b, z.out.Records, 1)
		})
	}
}

// BenchmarkSendKnown sends a message again with the same key.
func BenchmarkSendKnown(b *testing.B) {
	z, r := newBench(b, 1), request(b, "send-message", letter)
	r.Body.(*wire.SendMessage).Key = "k"
	z.ask(mailers[0].from, r)
	b.ReportAllocs()
	for b.Loop() {
		z.ask(mailers[0].from, r)
	}
	require.Empty(b, z.out.Records)
}

func BenchmarkAck(b *testing.B) {
	z, r := newBench(b, 1), request(b, "ack-messages", `{"seq":1}`)
	b.ReportAllocs()
	for b.Loop() {
		r.Body.(*wire.AckMessages).Seq = z.state.Seq()
		z.ask(mailers[0].from, r)
	}
	require.Len(b, z.out.Records, 1)
}

// BenchmarkHeartbeat sends a heartbeat beside those of many other actors. One each minute is
// recorded; one that is too soon is not.
func BenchmarkHeartbeat(b *testing.B) {
	for _, test := range []struct {
		name    string
		apart   time.Duration
		records int
	}{{"recorded", time.Minute, 1}, {"soon", 0, 0}} {
		for _, others := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/others=%d", test.name, others), func(b *testing.B) {
				z, r := newBench(b, 1), request(b, "heartbeat", `{}`)
				for i := range others {
					z.ask(Actor{Kind: External, Name: fmt.Sprint("HO:", i)}, r)
				}
				z.ask(mailers[0].from, r)
				b.ReportAllocs()
				for b.Loop() {
					z.since += test.apart
					z.ask(mailers[0].from, r)
				}
				require.Len(b, z.out.Records, test.records)
			})
		}
	}
}

// BenchmarkSay measures a progress message: from the line that an agent printed to its records
// and to the line for the receiver. It includes the receipt.
func BenchmarkSay(b *testing.B) {
	p := newPlayer(b)
	for _, line := range []string{
		"session shop architect=arch developer=dev reviewer=rev", "agents: arch(planner) dev(worker) rev(reviewer)", "up",
		"start arch", "start dev", "start rev", "say arch dev msg-1 task_assignment", "say dev arch msg-2 acknowledgment reply=msg-1",
	} {
		p.play(line)
	}
	for _, m := range p.state.Sessions.ByID["shop"].Members {
		for len(m.Outbox) > 0 {
			p.state.Sessions.RemoveItem(m.Outbox[0])
		}
	}
	line := []byte(p.spelledMessage("dev", "arch", "msg-1000000000", session.TypeTaskProgress, nil))
	dev, arch := p.actor("dev"), p.actor("arch")
	at := len(`{"from_agent":{"agent_id":"dev","agent_type":"developer"},"message_id":"msg-`)
	require.Equal(b, "1000000000", string(line[at:at+10]))
	reader := stdio.Reader{Agent: "dev", Depth: 64}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		copy(line[at:], fmt.Sprint(2_000_000_000+n))
		s := reader.Parse(line).(*wire.Session)
		said := &wire.SaySession{Session: *s, Lookup: wire.Lookup{Sender: "session:shop", Looked: p.state.Seq()}}
		out := p.state.Handle(Input{At: p.at, From: dev, Message: &wire.Request{
			ID: s.ID, Operation: "send-session-message", Form: dialect.Session, Body: said,
		}})
		if out.Refused != nil {
			b.Fatal(out.Refused)
		}
		number := out.Letters[0].Said
		p.state.Handle(Input{At: p.at, Message: &wire.Delivered{Agent: "arch", Run: arch.Run, Said: number}})
	}
}

// BenchmarkForemost lists the open tasks of a large team late in its work: 10,000 tasks are
// done, and each of 1,000 agents has one.
func BenchmarkForemost(b *testing.B) {
	z := newBench(b, 1000)
	submit := request(b, "submit-task", workerTask)
	for range 10_000 {
		z.cycle(submit)
	}
	for range 2000 {
		z.ask(planner, submit)
	}
	b.ReportAllocs()
	for b.Loop() {
		if tasks := z.state.OpenTasks(40); len(tasks) != 40 {
			b.Fatal(len(tasks))
		}
	}
}

// TestForemost checks that assigned tasks come first, and that waiting tasks show their obstacles.
func TestForemost(t *testing.T) {
	z := newBench(t, 1)
	var ids []string
	for range 3 {
		ids = append(ids, z.submit(workerTask))
	}
	last := z.submit(fmt.Sprintf(`{"type":"x","name":"last","dependencies":[%q]}`, ids[2]))
	tasks := z.state.OpenTasks(10)
	require.Len(t, tasks, 4)
	require.Equal(t, ids[0], tasks[0].ID)
	require.NotEmpty(t, tasks[0].AssignedTo)
	require.Equal(t, []string{ids[1], ids[2], last}, []string{tasks[1].ID, tasks[2].ID, tasks[3].ID})
	require.Equal(t, wire.TaskPending, tasks[3].State)
	require.Equal(t, []string{ids[2]}, tasks[3].WaitsFor)
	require.Len(t, z.state.OpenTasks(2), 2)
	require.Empty(t, z.state.Asked(2))
}
