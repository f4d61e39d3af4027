package adapter

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
)

// A Program is the process of a client: a child.Child, or a function in a test.
type Program interface {
	PID() int
	StartedAt() time.Time
	Stdin() child.Stdin
	CloseStdin() bool
	Signal(syscall.Signal)
	Kill()
	Unread() int64
	Usage() (cpuMS, rss int64)
}

// A Process is a client that takes part as an agent: its stdin takes the lines of the orchestrator, and its output is
// the requests and events of its Machine. The words of the client and its model go to stderr, so that none of their
// lines can be a message.
//
// One lock protects the Machine. A goroutine each writes to the client, to the orchestrator, to
// people and to the WireLog, because any of them may block.
type Process struct {
	Program
	machine *Machine
	to      child.Listener // the run

	mu       sync.Mutex
	turn     int64         // the last turn that has begun
	began    time.Duration // when it began, in SinceBoot
	timer    *time.Timer
	lingers  *time.Timer // ends a client that goes on after the end of its stdin
	toClient *queue
	toTeam   *queue
	toPeople *queue // logs of the machine
	toWire   *queue
	wire     *WireLog   // nil if the lines of the client are not kept
	unkept   int        // lines that were not kept, because too many waited
	stderrMu sync.Mutex // stderr is written by two goroutines
	stdout   *line.Splitter
	stderr   *line.Splitter
	over     bool
	gone     chan struct{} // closed when over is set
	writers  sync.WaitGroup
	people   sync.WaitGroup // the writer of toPeople, which the other writers add to
}

// Start starts a client. The start function creates the process from the specification that
// Start completes.
func Start(start func(child.Spec) (Program, error), spec child.Spec, m *Machine, maxLine int, wire *WireLog) (*Process, error) {
	p := &Process{
		machine: m, to: spec.Listener, wire: wire, stdout: line.NewSplitter(maxLine), stderr: line.NewSplitter(maxLine),
		toClient: newQueue(), toTeam: newQueue(), toPeople: newQueue(), toWire: newQueue(), gone: make(chan struct{}),
	}
	begun := make(chan struct{})
	spec.Listener = &clientListener{Listener: spec.Listener, process: p, begun: begun}
	program, err := start(spec)
	if err != nil {
		return nil, err
	}
	p.Program = program
	p.writers.Go(p.tellClient)
	p.writers.Go(p.tellTeam)
	p.people.Go(p.tellPeople)
	if wire != nil {
		p.writers.Go(p.writeWireLog)
	}
	p.step(func(now time.Time) []Effect { return m.Begin(now) })
	close(begun)
	return p, nil
}

// A clientListener gives a Process the output and the end of its client, after the first step of the machine. Other
// events go directly to the run.
type clientListener struct {
	child.Listener
	process *Process
	begun   <-chan struct{}
}

func (c *clientListener) Output(stream child.Stream, chunk []byte) {
	<-c.begun
	if stream == child.Stderr {
		c.process.readStderr(chunk)
		return
	}
	c.process.readStdout(chunk)
}

func (c *clientListener) Ended(ending child.Ending) {
	<-c.begun
	c.process.end(ending)
}

// step lets the machine act, and performs the effects that it returns.
func (p *Process) step(act func(now time.Time) []Effect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	now, began := time.Now(), child.SinceBoot()
	for _, e := range act(now) {
		p.perform(e, now)
	}
	if n := p.machine.Turns(); n != p.turn {
		p.turn, p.began = n, began
	}
	p.rearm(now)
}

func (p *Process) perform(e Effect, now time.Time) {
	switch e := e.(type) {
	case Write:
		p.keepLine(now, "orchestrator", e.Line)
		p.toClient.add(append(bytes.Clone(e.Line), '\n'))
	case Ask:
		p.toTeam.add(message("request:"+e.Operation, e.ID, e.Payload, now))
	case Say:
		p.toTeam.add(message("event:"+e.Event, p.machine.id(), e.Payload, now))
	case Log:
		p.log(e.Text)
	case Clear:
		since, until := p.began, child.SinceBoot()
		p.writers.Go(func() { p.clear(since, until) })
	case Stuck:
		p.log(e.Why)
		p.Program.Kill()
	}
}

// A loser can end processes that it has lost: a child.Child.
type loser interface {
	EndLost(since, until time.Duration)
}

// A client may report the end of a turn before the shell of its command has ended, and until then the command is not
// lost. So there are several looks: the first ones, mostly enough, before the next turn, and the late ones during it.
var (
	firstLooks = []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}
	lateLooks  = []time.Duration{500 * time.Millisecond, time.Second, time.Second}
)

// clear ends processes that the client has begun between two times of SinceBoot and has lost since. Its other
// processes, such as MCP servers, go on.
func (p *Process) clear(since, until time.Duration) {
	program, able := p.Program.(loser)
	look := func(pauses []time.Duration) {
		for _, pause := range pauses {
			select {
			case <-p.gone:
				return
			case <-time.After(pause):
				program.EndLost(since, until)
			}
		}
	}
	if able {
		look(firstLooks)
	}
	p.step(p.machine.Cleared)
	if able {
		look(lateLooks)
	}
}

func message(kind, id string, payload any, now time.Time) []byte {
	b := object.AppendMember(object.AppendText([]byte(`{"type":`), kind), "id", id)
	b = object.AppendMember(b, "timestamp", object.Timestamp(now))
	return append(object.AppendRaw(b, "payload", object.Spell(payload)), '}', '\n')
}

// rearm sets the timer to the time when the machine wants to act next.
func (p *Process) rearm(now time.Time) {
	when, ok := p.machine.Next()
	if !ok {
		if p.timer != nil {
			p.timer.Stop()
		}
		return
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(when.Sub(now), func() { p.step(p.machine.Due) })
		return
	}
	p.timer.Reset(when.Sub(now))
}

// readStdout takes output of the client. It waits while the orchestrator is behind, and while the client does not read
// its answers.
func (p *Process) readStdout(chunk []byte) {
	_ = p.toClient.wait(time.Time{}) // a client that has closed its stdin may still report
	_ = p.toTeam.wait(time.Time{})
	_ = p.toPeople.wait(time.Time{})
	p.stdout.Feed(chunk)
	for l, ok := p.stdout.Next(); ok; l, ok = p.stdout.Next() {
		if l.Cut {
			p.step(func(now time.Time) []Effect { return p.machine.Cut(now, l.Text) })
			continue
		}
		p.step(func(now time.Time) []Effect { return p.readLine(now, l.Text) })
	}
}

func (p *Process) readLine(now time.Time, line []byte) []Effect {
	p.keepLine(now, "client", line)
	return p.machine.Heard(now, line)
}

// log keeps text for people, which tellPeople writes.
func (p *Process) log(text string) {
	p.toPeople.add(append([]byte(strings.TrimRight(text, "\n")), '\n'))
}

// tellPeople writes the logs of the machine, without its lock.
func (p *Process) tellPeople() {
	for text := range p.toPeople.all {
		p.stderrMu.Lock()
		p.to.Output(child.Stderr, text)
		p.stderrMu.Unlock()
	}
}

// readStderr passes on the stderr of the client in whole lines.
func (p *Process) readStderr(chunk []byte) {
	p.stderrMu.Lock()
	defer p.stderrMu.Unlock()
	p.stderr.Feed(chunk)
	for l, ok := p.stderr.Next(); ok; l, ok = p.stderr.Next() {
		p.to.Output(child.Stderr, append(bytes.Clone(l.Text), '\n'))
	}
}

// end handles the end of the client's process tree.
func (p *Process) end(ending child.Ending) {
	if l, ok := p.stdout.Rest(); ok && !l.Cut {
		p.step(func(now time.Time) []Effect { return p.readLine(now, l.Text) })
	}
	p.mu.Lock()
	p.over = true
	close(p.gone)
	if p.unkept > 0 {
		p.log(fmt.Sprintf("%d lines of the client's protocol were not stored: too many were waiting", p.unkept))
	}
	for _, t := range []*time.Timer{p.timer, p.lingers} {
		if t != nil {
			t.Stop()
		}
	}
	p.mu.Unlock()
	p.toClient.close()
	p.toTeam.close()
	p.toWire.close()
	p.writers.Wait()
	p.toPeople.close()
	p.people.Wait()
	p.stderrMu.Lock()
	if l, ok := p.stderr.Rest(); ok {
		p.to.Output(child.Stderr, append(bytes.Clone(l.Text), '\n'))
	}
	p.stderrMu.Unlock()
	p.to.Ended(ending)
}

// tellClient writes to the client until the queue is closed, and then ends its stdin.
func (p *Process) tellClient() {
	defer p.Program.CloseStdin()
	for text := range p.toClient.all {
		if _, err := p.Program.Stdin().Write(text); err != nil {
			p.toClient.fail(err)
			return
		}
	}
}

// tellTeam passes requests and events on.
func (p *Process) tellTeam() {
	for text := range p.toTeam.all {
		p.to.Output(child.Stdout, text)
	}
}

// Stdin takes the lines of the orchestrator.
func (p *Process) Stdin() child.Stdin { return &orders{process: p, lines: line.NewSplitter(64 << 20)} }

// eofPatience is how long a client may go on after the end of its stdin. Some never end by
// themselves.
const eofPatience = 5 * time.Second

// CloseStdin ends the client's stdin when everything before it is written.
func (p *Process) CloseStdin() bool {
	p.toClient.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over && p.lingers == nil {
		p.lingers = time.AfterFunc(eofPatience, func() { p.Program.Signal(syscall.SIGTERM) })
	}
	return true
}

// orders is the stdin of the agent.
type orders struct {
	process  *Process
	lines    *line.Splitter
	deadline time.Time
}

func (o *orders) SetWriteDeadline(at time.Time) error {
	o.deadline = at
	return nil
}

// Write passes lines to the machine. It waits while the client does not read its stdin.
func (o *orders) Write(text []byte) (int, error) {
	if err := o.process.toClient.wait(o.deadline); err != nil {
		return 0, err
	}
	o.lines.Feed(text)
	for l, ok := o.lines.Next(); ok; l, ok = o.lines.Next() {
		o.process.step(func(now time.Time) []Effect { return o.process.machine.Told(now, l.Text) })
	}
	return len(text), nil
}

// keepLine gives a line between the orchestrator and the client to the WireLog. A line that does not fit is counted.
func (p *Process) keepLine(at time.Time, from string, line []byte) {
	if p.wire == nil {
		return
	}
	b := object.AppendMember(object.AppendText([]byte(`{"at":`), object.Timestamp(at)), "from", from)
	b = object.AppendMember(b, "line", string(line))
	if !p.toWire.tryAdd(append(b, '}', '\n')) {
		p.unkept++
	}
}

// writeWireLog writes the lines that were kept. When the disk fails, that is logged once, and the lines are dropped.
func (p *Process) writeWireLog() {
	defer p.wire.Close()
	failed := false
	for text := range p.toWire.all {
		if _, err := p.wire.Write(text); err != nil {
			if _ = p.wire.Close(); !failed {
				p.log("lines of the client's protocol are not stored: " + err.Error())
			}
			failed = true
		}
	}
}
