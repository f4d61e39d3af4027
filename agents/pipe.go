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
)

// Pipe connects an agent with a Peer, in memory, for tests of agents. Nothing is
// kept on the way: the speaker waits until the other side reads.
func Pipe() (*Conn, *Peer) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	p := &Peer{say: say, hear: hear, lines: bufio.NewReader(hear), handed: make(map[string]bool)}
	p.ears = wire.Reader{Depth: depth, Given: p.has}
	return Connect(in, out), p
}

// Peer is the orchestrator's end of a Pipe. It decides nothing: what is answered
// is for the test to say. It hears with the orchestrator's own ears.
type Peer struct {
	say   *io.PipeWriter
	hear  *io.PipeReader
	lines *bufio.Reader
	ears  wire.Reader

	mu     sync.Mutex
	handed map[string]bool // the tasks that the agent was given as task requests
}

// Hear waits for the next line that the agent says, and what it is to the
// orchestrator: a *wire.Request, a *wire.Report, a *wire.Session, wire.Log and so
// on. Who the agent is, it is believed, and which tasks it was handed the Peer knows.
// It is for one goroutine at a time.
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

// Request waits for the next request, and passes over all else.
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

// Said waits for the next message of a session, and passes over all else.
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

// Undelivered says that a message of a session was not delivered. Next is when it
// is tried again, "" for never.
func (p *Peer) Undelivered(id, next string, why *wire.Error) error {
	what := wire.Undelivered(id, why)
	what.NextRetryAt = next
	return p.write(sealed().AppendDeliveryError(nil, []byte(wire.Quote(id)), what, why))
}

// Answer grants the request with this id.
func (p *Peer) Answer(id string, payload any) error {
	return p.write(sealed().AppendAnswer(nil, id, payload, nil))
}

// Refuse refuses it.
func (p *Peer) Refuse(id string, refusal *wire.Error) error {
	return p.write(sealed().AppendAnswer(nil, id, nil, refusal))
}

// Notify says something that the agent has not asked for, such as TaskAssigned.
func (p *Peer) Notify(name string, payload any) error {
	line := sealed().AppendNotice(nil, name, payload)
	if len(line) == 0 {
		return fmt.Errorf("a %T cannot be spelled", payload)
	}
	return p.write(line)
}

// Say says a line as it is, without its end.
func (p *Peer) Say(line string) error { return p.write([]byte(line + "\n")) }

// End says that nothing more will be said. The agent is still heard.
func (p *Peer) End() { _ = p.say.Close() } // which never fails

// Close goes away: nothing is said or heard any more.
func (p *Peer) Close() {
	p.End()
	_ = p.hear.Close()
}

func (p *Peer) write(line []byte) error {
	p.hands(line)
	_, err := p.say.Write(line)
	return err
}

func sealed() wire.Envelope { return wire.Envelope{ID: uuid.NewString(), At: time.Now()} }
