package runner

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
)

// An answered remembers which requests of a run were answered. If the hub is lost, another hub gets the requests again
// that are not settled. Those with an answer are left out: the hub before has recorded them, and the run has heard the
// answer.
type answered struct {
	open    []byte           // the beginning of a line of input
	by      map[string]int64 // the number of the last line of output when the answer came, by the id of the request
	crowded bool             // there were more answers than are remembered
}

// maxAnswered is how many requests with an answer are remembered. They are forgotten when they are settled.
const maxAnswered = 1024

// answer is how a line begins that answers a request.
var answer = []byte(`{"type":"response:`)

// hear notes the answers in a piece of input. Output was sent up to a line.
func (a *answered) hear(piece []byte, sent int64) {
	for line := range bytes.Lines(piece) {
		if a.open = append(a.open, line...); !bytes.HasSuffix(line, []byte("\n")) {
			return
		}
		if bytes.HasPrefix(a.open, answer) {
			a.note(a.open, sent)
		}
		a.open = a.open[:0]
	}
}

// note notes an answer.
func (a *answered) note(line []byte, sent int64) {
	var head struct {
		Request string `json:"correlationId"`
	}
	switch err := json.Unmarshal(line, &head); {
	case err != nil || head.Request == "":
	case len(a.by) >= maxAnswered:
		a.crowded = true
	default:
		if a.by == nil {
			a.by = make(map[string]int64)
		}
		a.by[head.Request] = sent
	}
}

// settle forgets the requests up to a line of output.
func (a *answered) settle(n int64) {
	maps.DeleteFunc(a.by, func(_ string, sent int64) bool { return sent <= n })
	a.crowded = a.crowded && len(a.by) >= maxAnswered
}

// has reports whether a line of output, which ends in the line of the link with a number, is a request with an answer.
func (a *answered) has(line []byte, n int64) bool {
	var head struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if len(a.by) == 0 || json.Unmarshal(line, &head) != nil || !strings.HasPrefix(head.Type, "request:") {
		return false
	}
	sent, ok := a.by[head.ID]
	return ok && n <= sent
}
