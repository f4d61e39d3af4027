package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"orchestrator/wire/object"
)

// TraceContext is a place in a trace, as the W3C's recommendation on trace context
// has it.
type TraceContext struct {
	TraceID string // 32 digits: see IsTraceID
	SpanID  string // 16 digits: see IsSpanID
	Flags   byte   // of which the lowest bit says that the trace is recorded
}

// ParseTraceparent reads a traceparent. Of versions to come it reads what they have in
// common with version 00, which stands in front. False means that there is none:
// a receiver of a wrong one begins a trace of their own.
func ParseTraceparent(line string) (TraceContext, bool) {
	parts := strings.Split(line, "-")
	later := len(parts) > 4 && parts[0] != "00"
	if len(parts) != 4 && !later || !isHex(parts[0], 2) || parts[0] == "ff" || !IsTraceID(parts[1]) || !IsSpanID(parts[2]) || !isHex(parts[3], 2) {
		return TraceContext{}, false
	}
	flags, _ := hex.DecodeString(parts[3])
	return TraceContext{TraceID: parts[1], SpanID: parts[2], Flags: flags[0]}, true
}

// Traceparent spells it; "" when its ids are none of the W3C's.
func (c TraceContext) Traceparent() string {
	if !IsTraceID(c.TraceID) || !IsSpanID(c.SpanID) {
		return ""
	}
	return "00-" + c.TraceID + "-" + c.SpanID + "-" + hex.EncodeToString([]byte{c.Flags})
}

// IsTraceID reports whether an id is a trace id of the W3C: 32 hexadecimal digits, in
// lower case and not all 0.
func IsTraceID(id string) bool { return isHex(id, 32) && strings.Trim(id, "0") != "" }

// IsSpanID reports whether an id is a span id of the W3C: 16 hexadecimal digits, in
// lower case and not all 0.
func IsSpanID(id string) bool { return isHex(id, 16) && strings.Trim(id, "0") != "" }

func isHex(text string, length int) bool {
	return len(text) == length && isRun(text, func(c byte) bool { return object.IsDigit(c) || 'a' <= c && c <= 'f' })
}

// TraceIDOf is the trace id that belongs to something: always the same for the same,
// and for two things hardly ever.
func TraceIDOf(what []byte) string { return derived("trace", what, 16) }

// SpanIDOf is the span id that belongs to something. It is not the beginning of its
// trace id.
func SpanIDOf(what []byte) string { return derived("span", what, 8) }

// derived makes an id out of something. The kind keeps ids of one kind apart from
// those of another.
func derived(kind string, what []byte, length int) string {
	sum := sha256.Sum256(append([]byte(kind+"\x00"), what...))
	id := hex.EncodeToString(sum[:length])
	if strings.Trim(id, "0") == "" {
		return id[1:] + "1" // no id is all 0
	}
	return id
}
