// Package trace has the ids of traces and spans as the W3C recommendation on trace context defines
// them, and the header traceparent.
package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"orchestrator/wire/object"
)

// A Context is a position in a trace.
type Context struct {
	TraceID string // 32 digits: see IsID
	SpanID  string // 16 digits: see IsSpanID
	Flags   byte   // the lowest bit is set if the trace is recorded
}

// Parse reads a traceparent. Of a later version it reads the part that version 00
// defines. It reports false if the traceparent is not valid; the receiver then begins a new
// trace.
func Parse(line string) (Context, bool) {
	parts := strings.Split(line, "-")
	later := len(parts) > 4 && parts[0] != "00"
	if len(parts) != 4 && !later || !object.IsHex(parts[0], 2) || parts[0] == "ff" || !IsID(parts[1]) || !IsSpanID(parts[2]) || !object.IsHex(parts[3], 2) {
		return Context{}, false
	}
	flags, _ := hex.DecodeString(parts[3])
	return Context{TraceID: parts[1], SpanID: parts[2], Flags: flags[0]}, true
}

// Traceparent returns the traceparent of c, or "" if the ids do not have the form of the W3C.
func (c Context) Traceparent() string {
	if !IsID(c.TraceID) || !IsSpanID(c.SpanID) {
		return ""
	}
	return "00-" + c.TraceID + "-" + c.SpanID + "-" + hex.EncodeToString([]byte{c.Flags})
}

// IsID reports whether an id is a trace id of the W3C: 32 hexadecimal digits, in
// lower case and not all 0.
func IsID(id string) bool { return object.IsHex(id, 32) && strings.Trim(id, "0") != "" }

// IsSpanID reports whether an id is a span id of the W3C: 16 hexadecimal digits, in
// lower case and not all 0.
func IsSpanID(id string) bool { return object.IsHex(id, 16) && strings.Trim(id, "0") != "" }

// IDOf returns a trace id derived from the input. It is always the same for the same input.
func IDOf(what []byte) string { return derived("trace", what, 16) }

// SpanIDOf returns a span id derived from the input. It is not a prefix of the trace id.
func SpanIDOf(what []byte) string { return derived("span", what, 8) }

// derived returns an id derived from the input. kind separates trace ids from span ids.
func derived(kind string, what []byte, length int) string {
	sum := sha256.Sum256(append([]byte(kind+"\x00"), what...))
	id := hex.EncodeToString(sum[:length])
	if strings.Trim(id, "0") == "" {
		return id[1:] + "1" // no id is all 0
	}
	return id
}
