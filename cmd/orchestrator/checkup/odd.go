package checkup

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// oddities gathers lines that are log, and whose author may have meant more by them.
type oddities struct {
	reader wire.Reader
	list   []oddity
}

// oddity is one way in which lines are odd.
type oddity struct {
	check string
	count int
	first string // such a line
	why   string // what the first one is not understood for
}

func (o *oddities) note(check, why string, text []byte) {
	for i := range o.list {
		if o.list[i].check == check {
			o.list[i].count++
			return
		}
	}
	o.list = append(o.list, oddity{check: check, count: 1, first: clip(text), why: why})
}

// The words for them.
const (
	oddType   = "types"      // an object with a type that is no message
	oddJSON   = "json"       // almost an object
	oddKeys   = "keys"       // a key that stands twice
	oddTorn   = "torn-lines" // a message begins within another
	oddBehind = "own-line"   // or behind other words
	oddSpread = "one-line"   // a message over several lines
	oddUTF8   = "utf-8"
	oddStderr = "stderr" // a message where only log is
	oddMark   = "marks"  // something invisible before the object
	oddNested = "depth"
)

var (
	// begun is the beginning of a message, wherever it stands.
	begun = regexp.MustCompile(`\{\s*["']type["']\s*:\s*["'](request|event):`)
	// spread is a line of a message that was made pretty.
	spread = regexp.MustCompile(`^\s*"type"\s*:\s*"(request|event):[^"]*",?\s*$`)
	// invisible is what stands before an object that people do not see.
	invisible = regexp.MustCompile("^(\ufeff|\x1b\\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1a])+\\s*\\{")
)

// onStdout looks at a line of stdout that was taken for log.
func (o *oddities) onStdout(line []byte) {
	text := bytes.TrimSpace(line)
	var members map[string]wire.Raw
	isObject := len(text) > 1 && text[0] == '{'
	switch places := begun.FindAllIndex(text, 2); {
	case !utf8.Valid(line):
		o.note(oddUTF8, "", line)
	case invisible.Match(line):
		o.note(oddMark, "", line)
	case spread.Match(line):
		o.note(oddSpread, "", line)
	case isObject && object.DecodeOwn(text, &members) == nil:
		o.onObject(text, members)
	case len(places) > 1, len(places) == 1 && places[0][0] > 0 && isObject:
		o.note(oddTorn, "", line)
	case len(places) == 1 && places[0][0] > 0:
		o.note(oddBehind, "", line)
	case isObject && (len(places) > 0 || bytes.Contains(text, []byte("type"))):
		o.note(oddJSON, "", line)
	}
}

// onObject looks at an object.
func (o *oddities) onObject(text []byte, members map[string]wire.Raw) {
	log, ok := o.reader.Parse(text).(wire.Log)
	if !ok {
		return // what was refused is in the trail, and what was told is no fault
	}
	switch {
	case strings.Contains(log.Why, "stands twice"):
		o.note(oddKeys, log.Why, text)
	case strings.Contains(log.Why, "nests"):
		o.note(oddNested, log.Why, text)
	case log.Why != "": // an echo of what it was told
	case members["type"] != nil:
		o.note(oddType, "", text)
	}
}

// onStderr looks at a line of stderr: nothing there is a message.
func (o *oddities) onStderr(line []byte) {
	switch o.reader.Parse(line).(type) {
	case *wire.Request, *wire.AgentEvent, *wire.Session:
		o.note(oddStderr, "", line)
	}
}

const most = 100 // columns of a line that is shown

// clip is a line as it can be shown.
func clip(text []byte) string {
	return term.Clip(wire.Visible(string(text[:min(len(text), 4*most)])), most)
}
