package supervisor

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play is a supervisor with functions as agents, in a bubble of fake time.
type play struct {
	*Supervisor
	t      *testing.T
	cancel context.CancelFunc
	result chan error

	mu     sync.Mutex
	parts  map[string]part
	starts map[string][]time.Time
	live   map[string]*player
	order  []string // "+a": started, "-a": ended
}

// part is the behavior of an agent. Its result is the exit code.
type part func(*player) int

// player is one run of a part: a Process for the supervisor.
type player struct {
	spec    child.Spec
	pid     int
	began   time.Time
	ours    net.Conn // the supervisor's end of stdin
	in      *bufio.Reader
	theirs  net.Conn
	signals chan syscall.Signal
	killed  chan struct{}
	kill    sync.Once
	left    []child.Process

	speaking sync.Mutex // held while it prints; a run ends after its last line
	silent   bool
}

func (p *player) PID() int             { return p.pid }
func (p *player) StartedAt() time.Time { return p.began }
func (p *player) Stdin() child.Stdin   { return p.ours }
func (p *player) CloseStdin() bool     { return p.ours.Close() == nil }
func (p *player) Unread() int64        { return 0 }
func (p *player) Usage() (int64, int64) {
	return 0, 0
}
func (p *player) Signal(sig syscall.Signal) { p.signals <- sig }
func (p *player) Kill()                     { p.kill.Do(func() { close(p.killed) }) }

// say prints a line.
func (p *player) say(text string) {
	p.speaking.Lock()
	defer p.speaking.Unlock()
	if !p.silent {
		p.spec.Listener.Output(child.Stdout, []byte(text+"\n"))
	}
}

// read returns the next line of stdin, or "" at its end.
func (p *player) read() string {
	line, _ := p.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n")
}

// perform starts a play in the test's bubble. It takes the parts by agent name.
func perform(t *testing.T, options Options, agents []settings.Agent, parts map[string]part) *play {
	p := &play{t: t, parts: parts, starts: make(map[string][]time.Time), live: make(map[string]*player), result: make(chan error, 1)}
	options.Name = "play"
	if options.Log == nil {
		options.Log = hclog.NewNullLogger()
	}
	if options.Start == nil {
		options.Start = p.start
	}
	if options.Shutdown == 0 {
		options.Shutdown = 40 * time.Second
	}
	for i := range agents {
		defaults(t, &agents[i])
	}
	p.Supervisor = New(options, agents)
	require.NoError(t, p.Restore(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	p.cancel = cancel
	go func() { p.result <- p.Run(ctx) }()
	return p
}

// defaults sets the defaults of the configuration language.
func defaults(t *testing.T, a *settings.Agent) {
	a.Capacity = max(1, a.Capacity)
	a.Command, a.Dir, a.Autostart, a.MaxLine = []string{a.Name}, cmp.Or(a.Dir, "/"), true, 1<<20
	a.Environ = func(context.Context) ([]string, error) { return nil, nil }
	if a.Restart.Policy == "" {
		a.Restart.Policy = settings.OnFailure
	}
	if a.Restart.Delay == 0 {
		a.Restart = settings.Restart{
			Policy: a.Restart.Policy, Delay: 500 * time.Millisecond, Factor: 2, MaxDelay: 30 * time.Second,
			ResetAfter: time.Minute, Burst: 5, Window: 2 * time.Minute, Permanent: []int{64, 78, 126, 127},
		}
	}
	a.Stop = settings.Stop{CloseStdin: 30 * time.Second, Unspoken: time.Second, Signal: syscall.SIGTERM, Grace: 5 * time.Second}
	if a.Health.WriteTimeout == 0 {
		a.Health.WriteTimeout = 10 * time.Second
	}
	if a.Mailbox.Messages == 0 {
		a.Mailbox = stdin.Limits{Messages: 1024, Bytes: 32 << 20}
	}
	a.Output = output.Limits{Dir: t.TempDir(), MaxSize: 1 << 20, Keep: 8, Tail: 200}
}

// start starts a run, as a child.Host would.
func (p *play) start(spec child.Spec) (Process, error) {
	name := spec.Command[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	do := p.parts[name]
	if do == nil {
		return nil, &child.StartError{Reason: "program not found: " + name}
	}
	ours, theirs := net.Pipe()
	r := &player{
		spec: spec, pid: 1000 + len(p.order), began: time.Now(), ours: ours, theirs: theirs,
		in: bufio.NewReader(theirs), signals: make(chan syscall.Signal, 8), killed: make(chan struct{}),
	}
	p.starts[name] = append(p.starts[name], r.began)
	p.live[name] = r
	p.order = append(p.order, "+"+name)
	go p.run(name, r, do)
	return r, nil
}

// run plays the part until it ends or is killed.
func (p *play) run(name string, r *player, do part) {
	code := make(chan int, 1)
	go func() { code <- do(r) }()
	exit := child.Exit{}
	select {
	case exit.Code = <-code:
	case <-r.killed:
		exit.Code, exit.Signal = -1, syscall.SIGKILL
	}
	exit.At = time.Now()
	p.mu.Lock()
	p.order = append(p.order, "-"+name)
	p.mu.Unlock()
	r.spec.Listener.Exited(exit)
	_ = r.ours.Close()
	_ = r.theirs.Close()
	r.speaking.Lock()
	r.silent = true
	r.speaking.Unlock()
	r.spec.Listener.Ended(child.Ending{LeftOver: r.left})
}

// end waits for the end of Run.
func (p *play) end() error {
	err := <-p.result
	p.cancel()
	return err
}

// stop ends the play in order.
func (p *play) stop() error {
	p.cancel()
	return p.end()
}

// view returns the current state of an agent.
func (p *play) view(name string) control.AgentView {
	synctest.Wait()
	status, err := p.Status(p.t.Context())
	require.NoError(p.t, err)
	i := slices.IndexFunc(status.Agents, func(v control.AgentView) bool { return v.Name == name })
	require.GreaterOrEqual(p.t, i, 0)
	return status.Agents[i]
}

// told lists "agent kind: text" of all events so far, without events that are only for the log.
func (p *play) told() []string {
	synctest.Wait()
	found, _, _ := p.audience.Recent.After(0)
	var lines []string
	for _, n := range found {
		e := n.Event()
		switch e.Kind {
		case events.AgentKnown, events.AgentForgotten, events.AgentEnded:
			continue
		}
		lines = append(lines, e.Agent+" "+e.Kind+": "+e.Text)
	}
	return lines
}

func (p *play) count(kind string) int {
	n := 0
	for _, line := range p.told() {
		if strings.Contains(line, " "+kind+":") {
			n++
		}
	}
	return n
}

// pending is a request made in the background.
type pending struct {
	t    *testing.T
	done chan answered
}

type answered struct {
	outcomes []control.AgentOutcome
	err      error
}

// ask makes a request in the background.
func (p *play) ask(do func(context.Context, control.AgentsRequest) ([]control.AgentOutcome, error), names ...string) pending {
	return p.pend(func(ctx context.Context) ([]control.AgentOutcome, error) {
		return do(ctx, control.AgentsRequest{Agents: names})
	})
}

// apply applies changes and waits for their outcomes in the background.
func (p *play) apply(changes ...Change) pending {
	return p.pend(func(ctx context.Context) ([]control.AgentOutcome, error) {
		wait, err := p.Apply(ctx, changes, p.options.Sessions)
		if err != nil {
			return nil, err
		}
		return wait(ctx)
	})
}

func (p *play) pend(do func(context.Context) ([]control.AgentOutcome, error)) pending {
	r := pending{t: p.t, done: make(chan answered, 1)}
	go func() {
		outcomes, err := do(p.t.Context())
		r.done <- answered{outcomes, err}
	}()
	synctest.Wait()
	return r
}

// outcomes returns the outcomes of a request, which must have ended.
func (p pending) outcomes() []control.AgentOutcome {
	p.t.Helper()
	synctest.Wait()
	select {
	case a := <-p.done:
		require.NoError(p.t, a.err)
		return a.outcomes
	default:
		require.Fail(p.t, "still waiting")
		return nil
	}
}

// sequence returns the starts and ends so far, in order.
func (p *play) sequence() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order)
}

// agentOf returns an agent with the defaults.
func agentOf(t *testing.T, name string, dependsOn ...string) settings.Agent {
	a := settings.Agent{Name: name, DependsOn: dependsOn}
	defaults(t, &a)
	return a
}

// The parts.
func untilEOF(p *player) int {
	for p.read() != "" {
	}
	return 0
}

func untilSignal(p *player) int {
	go func() { // stdin is read all the same
		for p.read() != "" {
		}
	}()
	<-p.signals
	return 143
}

// slowly ends a while after the end of its stdin.
func slowly(d time.Duration) part {
	return func(p *player) int {
		for p.read() != "" {
		}
		<-time.After(d)
		return 0
	}
}

func deafTo(p *player) int {
	<-p.killed
	return 0
}

func after(d time.Duration, code int) part {
	return func(p *player) int {
		select {
		case <-time.After(d):
		case <-p.signals:
		}
		return code
	}
}

// Tell puts a line into an agent's mailbox, if there is room.
func (p *play) Tell(ctx context.Context, name string, line []byte) error {
	_, err := p.tell(ctx, name, line)
	return err
}

// rounds returns how often to repeat a random test: n times, or n/8 under the race detector,
// where each round is several times slower. Races show early; rare cases are left to the run
// without it.
func rounds(n int) int {
	build, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 8
	}
	return n
}
