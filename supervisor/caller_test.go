package supervisor

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
)

// caller is an agent that joins a play over a connection.
type caller struct {
	t      *testing.T
	mouth  net.Conn
	ears   *bufio.Reader
	ear    net.Conn
	joined chan error // the result of Join

	ours, theirs net.Conn // the supervisor's ends
	gone, closed chan struct{}
	once         sync.Once
}

func (c *caller) Read(p []byte) (int, error) {
	n, err := c.ours.Read(p)
	select {
	case <-c.gone:
		if err != nil {
			err = io.ErrUnexpectedEOF
		}
	default:
	}
	return n, err
}

func (c *caller) Write(p []byte) (int, error)         { return c.theirs.Write(p) }
func (c *caller) SetWriteDeadline(at time.Time) error { return c.theirs.SetWriteDeadline(at) }

func (c *caller) Gone() {
	select {
	case <-c.gone:
	case <-c.closed:
	}
}

func (c *caller) Close() error {
	c.once.Do(func() { close(c.closed) })
	return errors.Join(c.ours.Close(), c.theirs.Close())
}

// join has an agent join as a guest, with the role of a worker.
func (p *play) join(name string, capabilities ...string) *caller {
	c := &caller{t: p.t, joined: make(chan error, 1), gone: make(chan struct{}), closed: make(chan struct{})}
	c.mouth, c.ours = net.Pipe()
	c.theirs, c.ear = net.Pipe()
	c.ears = bufio.NewReader(c.ear)
	guest := agentOf(p.t, name)
	guest.Autostart, guest.Role, guest.Offers, guest.OnExit = false, wire.RoleWorker, capabilities, "auto"
	go func() {
		err := p.Join(p.t.Context(), guest, func() (Conn, error) { return c, nil })
		_ = c.Close() // as the owner of the connection does
		c.joined <- err
	}()
	synctest.Wait()
	return c
}

func (c *caller) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.mouth, line+"\n")
	require.NoError(c.t, err)
}

func (c *caller) ask(id, operation, payload string) {
	c.t.Helper()
	c.say(`{"type":"request:` + operation + `","id":"` + id + `","timestamp":"2026-11-21T14:00:00Z","payload":` + payload + `}`)
}

// hear returns the next line without its end, or "" at the end.
func (c *caller) hear() string {
	line, _ := c.ears.ReadString('\n')
	return strings.TrimSuffix(line, "\n")
}

// end closes the input.
func (c *caller) end() { _ = c.mouth.Close() }

// vanish closes everything, as a kill does.
func (c *caller) vanish() {
	close(c.gone)
	_, _ = c.mouth.Close(), c.ear.Close()
}

// over returns the result of the join, which must have ended.
func (c *caller) over() error {
	c.t.Helper()
	synctest.Wait()
	select {
	case err := <-c.joined:
		return err
	default:
		require.Fail(c.t, "the pipe is still there")
		return nil
	}
}

// goodbye requires the farewell, and leaves.
func (c *caller) goodbye() {
	c.t.Helper()
	require.Equal(c.t, strings.TrimSuffix(wire.Farewell, "\n"), c.hear())
	require.Empty(c.t, c.hear(), "nothing follows a farewell")
	c.end()
	require.NoError(c.t, c.over())
}

// operate requests an operation as a person.
func (p *play) operate(operation, payload string) any {
	p.t.Helper()
	answer, err := p.Requests.Ask(p.t.Context(), handlers.Actor{Kind: handlers.Operator}, operation, []byte(payload))
	require.NoError(p.t, err)
	return answer
}

func (p *play) names() []string {
	synctest.Wait()
	status, err := p.Status(p.t.Context())
	require.NoError(p.t, err)
	var names []string
	for _, a := range status.Agents {
		names = append(names, a.Name)
	}
	return names
}

// task returns the current state of a task.
func (p *play) task(id string) wire.Task {
	return p.operate("get-task", `{"taskId":"`+id+`"}`).(*wire.TaskReply).Task
}

// work submits a task and returns its id.
func (p *play) work(capability string) string {
	reply := p.operate("submit-task", `{"type":"t","name":"n","requiredCapabilities":["`+capability+`"]}`)
	return reply.(*wire.TaskReply).Task.ID
}

func pipes(t *testing.T, agents []settings.Agent, do func(*testing.T, *play)) {
	synctest.Test(t, func(t *testing.T) {
		parts := make(map[string]part)
		for _, a := range agents {
			parts[a.Name] = untilEOF
		}
		for i := range agents {
			idle := agents[i].Description == "idle"
			defaults(t, &agents[i])
			agents[i].Autostart = !idle
		}
		p := performAs(t, agents, parts)
		synctest.Wait()
		do(t, p)
		require.NoError(t, p.stop())
	})
}

// performAs is perform with unchanged agents.
func performAs(t *testing.T, agents []settings.Agent, parts map[string]part) *play {
	p := perform(t, Options{}, nil, parts)
	var changes []Change
	for _, a := range agents {
		changes = append(changes, Change{Action: settings.ActionStart, Name: a.Name, Agent: a})
	}
	wait, err := p.Apply(t.Context(), changes, nil)
	require.NoError(t, err)
	_, err = wait(t.Context())
	require.NoError(t, err)
	return p
}
