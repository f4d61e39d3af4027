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

// oddities collects log lines that may have been meant as messages.
type oddities struct {
	reader wire.Reader
	list   []oddity
}

// An oddity is one kind of odd lines.
type oddity struct {
	check string
	count int
	first string // first such line
	why   string // why the first one is not a message
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

// The kinds of oddities.
const (
	oddType   = "types"      // an object with an unknown type
	oddJSON   = "json"       // almost an object
	oddKeys   = "keys"       // an object with a duplicate key
	oddTorn   = "torn-lines" // a message begins inside another one
	oddBehind = "own-line"   // a message begins after other text
	oddSpread = "one-line"   // a message over several lines
	oddUTF8   = "utf-8"
	oddStderr = "stderr" // a message on stderr
	oddMark   = "marks"  // invisible characters before the object
	oddNested = "depth"
)

var (
	// begun matches the beginning of a message anywhere in a line.
	begun = regexp.MustCompile(`\{\s*["']type["']\s*:\s*["'](request|event):`)
	// spread matches a line of a pretty-printed message.
	spread = regexp.MustCompile(`^\s*"type"\s*:\s*"(request|event):[^"]*",?\s*$`)
	// invisible matches invisible characters before an object.
	invisible = regexp.MustCompile("^(\ufeff|\x1b\\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1a])+\\s*\\{")
)

// onStdout checks a log line on stdout.
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

// onObject checks a log line that is a JSON object.
func (o *oddities) onObject(text []byte, members map[string]wire.Raw) {
	log, ok := o.reader.Parse(text).(wire.Log)
	if !ok {
		return // a message: the audit has its result
	}
	switch {
	case strings.Contains(log.Why, "stands twice"):
		o.note(oddKeys, log.Why, text)
	case strings.Contains(log.Why, "nests"):
		o.note(oddNested, log.Why, text)
	case log.Why != "": // an echo of received input
	case members["type"] != nil:
		o.note(oddType, "", text)
	}
}

// onStderr checks a line of stderr, where messages have no effect.
func (o *oddities) onStderr(line []byte) {
	switch o.reader.Parse(line).(type) {
	case *wire.Request, *wire.AgentEvent, *wire.Session:
		o.note(oddStderr, "", line)
	}
}

const most = 100 // columns of a shown line

// clip returns the beginning of a line, escaped.
func clip(text []byte) string {
	return term.Clip(wire.Visible(string(text[:min(len(text), 4*most)])), most)
}
