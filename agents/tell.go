package agents

import (
	"context"
	"fmt"

	"orchestrator/wire"
)

// Tell sends an event, such as "progress". Events have no answer, so Tell itself validates
// those of the protocol; the orchestrator would ignore an invalid one.
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

// Progress reports how much of a task is done, from 0 to 1. It does not complete the task;
// CompleteTask does.
func (c *Conn) Progress(taskID string, fraction float64, message string) error {
	return c.Tell("progress", wire.Progress{TaskID: taskID, Progress: fraction, Message: message})
}

// Log writes to the agent's log, at level info, warn or error. The context is an object, or
// nil.
func (c *Conn) Log(level, message string, context any) error {
	about, err := value(context)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return c.Tell("log", wire.LogEntry{Level: level, Message: message, Context: about})
}

// Trouble reports an error. An error that is not recoverable fails the task.
func (c *Conn) Trouble(taskID string, trouble error, recoverable bool) error {
	return c.Tell("error", wire.Trouble{TaskID: taskID, Error: trouble.Error(), Recoverable: recoverable})
}

// Wonder shows people a question without waiting for an answer. The context is an object, or
// nil.
func (c *Conn) Wonder(question string, context any) error {
	about, err := value(context)
	if err != nil {
		return fmt.Errorf("event question: %w", err)
	}
	return c.Tell("question", wire.OpenQuestion{Question: question, Context: about})
}
