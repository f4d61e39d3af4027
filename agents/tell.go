package agents

import (
	"context"
	"fmt"

	"orchestrator/wire"
)

// Tell tells of an event, such as "progress". There is no answer: what is wrong with
// an event of the protocol is said here, because the orchestrator would pass
// over it in silence.
func (c *Conn) Tell(event string, payload any) error {
	if err := c.tell(event, payload); err != nil {
		return fmt.Errorf("event %s: %w", event, err)
	}
	return nil
}

func (c *Conn) tell(event string, payload any) error {
	body, err := asObject(payload)
	if err != nil {
		return err
	}
	_, wrong := wire.ReadReport(event, body, depth)
	if wrong != nil && wrong.Code != wire.CodeUnknownType {
		return wrong
	}
	_, line, err := spell("event:"+event, body)
	if err != nil {
		return err
	}
	return c.write(context.Background(), line)
}

// Progress tells how much of a task is done, from 0 to 1. It ends nothing: a
// task is done when CompleteTask says so.
func (c *Conn) Progress(taskID string, fraction float64, message string) error {
	return c.Tell("progress", wire.Progress{TaskID: taskID, Progress: fraction, Message: message})
}

// Log writes into the agent's log, at the level info, warn or error. Context is
// an object, or nil.
func (c *Conn) Log(level, message string, context any) error {
	about, err := value(context)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return c.Tell("log", wire.LogEntry{Level: level, Message: message, Context: about})
}

// Trouble tells of an error at work. One from which there is no recovery fails
// the task.
func (c *Conn) Trouble(taskID string, trouble error, recoverable bool) error {
	return c.Tell("error", wire.Trouble{TaskID: taskID, Error: trouble.Error(), Recoverable: recoverable})
}

// Wonder shows people a question without waiting for an answer. Context is an
// object, or nil.
func (c *Conn) Wonder(question string, context any) error {
	about, err := value(context)
	if err != nil {
		return fmt.Errorf("event question: %w", err)
	}
	return c.Tell("question", wire.OpenQuestion{Question: question, Context: about})
}
