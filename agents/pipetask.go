package agents

import (
	"fmt"

	"orchestrator/wire"
)

// Hand hands a task to the agent, as a delegated task. From then on what the
// agent says of it is a response.
func (p *Peer) Hand(request wire.TaskRequest) error {
	line, err := spellRequest(request)
	if err != nil {
		return err
	}
	return p.write(line)
}

// Act says something about a task to the agent that has it.
func (p *Peer) Act(act wire.TaskAct) error {
	line := wire.AppendTaskAct(nil, &act)
	if _, wrong := wire.ReadTaskAct(line, depth); wrong != nil {
		return fmt.Errorf("%w: %w", errUnsaid, wrong)
	}
	return p.write(line)
}

// Respond returns what became of a task to the agent that has delegated it.
func (p *Peer) Respond(response wire.TaskResponse) error {
	line, err := checked(wire.AppendTaskResponse(nil, &response))
	if err != nil {
		return err
	}
	return p.write(line)
}

// Delegated waits for the next task that the agent delegates, and passes over all
// else.
func (p *Peer) Delegated() (*wire.TaskRequest, error) {
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

// Response waits for the next response of the agent, and passes over all else.
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

// hands notes the task that a line hands to the agent, if it does: an agent that says
// the same has only printed it.
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
