package agents

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// Pipe connects an agent with a Peer in memory, for tests of agents. It has no buffer: a write
// blocks until the other side reads.
func Pipe() (*Conn, *Peer) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	p := &Peer{say: say, hear: hear, lines: bufio.NewReader(hear), handed: make(map[string]bool)}
	p.ears = stdio.Reader{Depth: depth, Given: p.has}
	return Connect(in, out), p
}

// A Peer is the orchestrator's end of a Pipe. It makes no decisions: the test chooses the answers.
// It parses lines with the orchestrator's own reader.
type Peer struct {
	say   *io.PipeWriter
	hear  *io.PipeReader
	lines *bufio.Reader
	ears  stdio.Reader

	mu     sync.Mutex
	handed map[string]bool // the tasks that the agent was given as task requests
}

// Hear waits for the agent's next line and returns it with its meaning for the orchestrator: a
// *wire.Request, a *wire.Report, a *wire.Session, wire.Log and so on. The Peer believes the agent's
// claims about its identity, and knows the tasks given with Hand. Only one goroutine at a time may
// call Hear.
func (p *Peer) Hear() (line string, message wire.Message, err error) {
	text, err := p.lines.ReadBytes('\n')
	if err != nil {
		return string(text), nil, err
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	if said, err := readSaid(text); err == nil {
		p.ears.Agent = said.From.AgentID
	}
	return string(text), p.ears.Parse(text), nil
}

// Request waits for the next request and skips everything else.
func (p *Peer) Request() (*wire.Request, error) {
	for {
		_, message, err := p.Hear()
		if err != nil {
			return nil, err
		}
		if request, ok := message.(*wire.Request); ok {
			return request, nil
		}
	}
}

// Said waits for the next session message and skips everything else.
func (p *Peer) Said() (*Said, error) {
	for {
		line, _, err := p.Hear()
		if err != nil {
			return nil, err
		}
		if said, err := readSaid([]byte(line)); err == nil {
			return said, nil
		}
	}
}

// Undelivered reports that a session message was not delivered. Next is the time of the next
// attempt, or "" for none.
func (p *Peer) Undelivered(id, next string, why *wire.Error) error {
	what := session.Undelivered(id, why)
	what.NextRetryAt = next
	return p.write(sealed().AppendDeliveryError(nil, []byte(object.Quote(id)), what, why))
}

// Answer grants the request with this id.
func (p *Peer) Answer(id string, payload any) error {
	return p.write(sealed().AppendAnswer(nil, id, payload, nil))
}

// Refuse refuses the request with this id.
func (p *Peer) Refuse(id string, refusal *wire.Error) error {
	return p.write(sealed().AppendAnswer(nil, id, nil, refusal))
}

// Notify sends a notice, such as TaskAssigned.
func (p *Peer) Notify(name string, payload any) error {
	line := sealed().AppendNotice(nil, name, payload)
	if len(line) == 0 {
		return fmt.Errorf("a %T cannot be spelled", payload)
	}
	return p.write(line)
}

// Say writes a line unchanged. The line has no end.
func (p *Peer) Say(line string) error { return p.write([]byte(line + "\n")) }

// End closes the agent's input. The Peer can still hear the agent.
func (p *Peer) End() { _ = p.say.Close() } // which never fails

// Close closes both directions.
func (p *Peer) Close() {
	p.End()
	_ = p.hear.Close()
}

func (p *Peer) write(line []byte) error {
	p.hands(line)
	_, err := p.say.Write(line)
	return err
}

func sealed() stdio.Envelope { return stdio.Envelope{ID: uuid.NewString(), At: time.Now()} }

// Hand delegates a task to the agent. From then on, lines of the agent about the task are read
// as responses.
func (p *Peer) Hand(request delegation.Request) error {
	line, err := spellRequest(request)
	if err != nil {
		return err
	}
	return p.write(line)
}

// Act sends an act on a task to the agent that has it.
func (p *Peer) Act(act delegation.Act) error {
	line := delegation.AppendAct(nil, &act)
	if _, wrong := wire.ReadTaskAct(line, depth); wrong != nil {
		return fmt.Errorf("%w: %w", errUnsaid, wrong)
	}
	return p.write(line)
}

// Respond sends a response about a task to the agent that delegated it.
func (p *Peer) Respond(response delegation.Response) error {
	line, err := checked(delegation.AppendResponse(nil, &response))
	if err != nil {
		return err
	}
	return p.write(line)
}

// Delegated waits for the next task that the agent delegates and skips everything else.
func (p *Peer) Delegated() (*delegation.Request, error) {
	for {
		line, _, err := p.Hear()
		if err != nil {
			return nil, err
		}
		if request, wrong := wire.ReadTaskRequest([]byte(line), depth); wrong == nil {
			return request, nil
		}
	}
}

// Response waits for the next response of the agent and skips everything else.
func (p *Peer) Response() (*Response, error) {
	for {
		line, _, err := p.Hear()
		if err != nil {
			return nil, err
		}
		if response, err := readResponse([]byte(line)); err == nil {
			return response, nil
		}
	}
}

// hands records the task if a line is a task request to the agent. An agent that writes such a
// line has only printed it.
func (p *Peer) hands(line []byte) {
	request, wrong := wire.ReadTaskRequest(line, depth)
	if wrong != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handed[request.ID] = true
}

func (p *Peer) has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handed[id]
}
