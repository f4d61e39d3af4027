// Package fatal is about mail that can never be dealt with: how a handler says
// so, and how the one who runs it all is told. It sends nothing, and does not
// know how that is done.
package fatal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// The codes of those who give none.
const (
	Failed = "FAILED"
	Panic  = "PANIC"
)

// New says that a message can never be dealt with, and why; the code is for
// programs.
func New(code string, err error) error {
	if err == nil {
		err = errors.New("")
	}
	return &fatal{code: code, err: err}
}

type fatal struct {
	code string
	err  error
}

// Error makes it an error.
func (f *fatal) Error() string { return spoken(f.err) }

// Unwrap is what it is about.
func (f *fatal) Unwrap() error { return f.err }

// spoken is what an error says. Something must be said.
func spoken(err error) string {
	if text := err.Error(); strings.TrimSpace(text) != "" {
		return text
	}
	return "it failed without a word"
}

// Code is the code that an error was given, if it was given one.
func Code(err error) (code string, ok bool) {
	if f, ok := errors.AsType[*fatal](err); ok {
		return f.code, true
	}
	return Failed, false
}

// longest is how much of an error is told.
const longest = 8 << 10

// Letter is how the one who runs it all is told that a message has failed. The
// key is the same each time, so that a message which fails again, because it was
// not acknowledged, is told of once.
//
// It is nil for what would be the next to fail, for ever: a task.failed, and what
// the bus has to say, such as that a message has failed.
func Letter(mail *wire.Mail, why error) *wire.SendMessage {
	if mail.Topic == wire.TopicTaskFailed || mail.From == wire.ActorBus {
		return nil
	}
	code, _ := Code(why)
	text := spoken(why)
	payload, _ := object.Encode(struct { // texts, of which there is none that cannot be spelled
		Code  string `json:"error_code"`
		Error string `json:"error"`
		Topic string `json:"topic"`
	}{Code: code, Error: text[:min(len(text), longest)], Topic: mail.Topic})
	return &wire.SendMessage{
		To: wire.ActorGlobal, Topic: wire.TopicTaskFailed, Payload: payload, ReplyTo: mail.Seq,
		Key: uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "failed at %d of %s", mail.Seq, mail.CreatedAt)).String(),
	}
}

// GivenUp says of a message that failed, and which no agent is told by mail, what
// there is to say.
func GivenUp(mail *wire.Mail, why error) error {
	code, _ := Code(why)
	return fmt.Errorf("message %d on %s is given up: %w (%s)", mail.Seq, mail.Topic, why, code)
}
