package agents

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

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
