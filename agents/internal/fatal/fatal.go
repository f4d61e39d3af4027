// Package fatal defines the error of mail that can never be handled, and the report about it to
// the global orchestrator. It does not send the report.
package fatal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Default codes.
const (
	Failed = "FAILED"
	Panic  = "PANIC"
)

// New returns an error which means that retrying a message cannot help. The code is for
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

// Error returns the text of the wrapped error.
func (f *fatal) Error() string { return spoken(f.err) }

// Unwrap returns the wrapped error.
func (f *fatal) Unwrap() error { return f.err }

// spoken returns the text of an error, or a default if it is blank.
func spoken(err error) string {
	if text := err.Error(); strings.TrimSpace(text) != "" {
		return text
	}
	return "it failed without a word"
}

// Code returns the code of a fatal error, or Failed and false for other errors.
func Code(err error) (code string, ok bool) {
	if f, ok := errors.AsType[*fatal](err); ok {
		return f.code, true
	}
	return Failed, false
}

// longest bounds the error text in a report.
const longest = 8 << 10

// Letter returns the report to the global orchestrator that a message has failed. Its key is
// the same each time, so that repeated failures of a message are reported once.
//
// It returns nil for a task.failed and for mail from the bus, because the report could fail in
// turn, for ever.
func Letter(received *mail.Message, why error) *wire.SendMessage {
	if received.Topic == mail.TopicTaskFailed || received.From == mail.Bus {
		return nil
	}
	code, _ := Code(why)
	text := spoken(why)
	payload, _ := object.Encode(struct { // texts, which can always be spelled
		Code  string `json:"error_code"`
		Error string `json:"error"`
		Topic string `json:"topic"`
	}{Code: code, Error: text[:min(len(text), longest)], Topic: received.Topic})
	return &wire.SendMessage{
		To: mail.Global, Topic: mail.TopicTaskFailed, Payload: payload, ReplyTo: received.Seq,
		Key: uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "failed at %d of %s", received.Seq, received.CreatedAt)).String(),
	}
}

// GivenUp returns the error to log for a failed message that is not reported by mail.
func GivenUp(received *mail.Message, why error) error {
	code, _ := Code(why)
	return fmt.Errorf("message %d on %s is given up: %w (%s)", received.Seq, received.Topic, why, code)
}
