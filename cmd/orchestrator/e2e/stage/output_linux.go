package stage

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Output is the output of a program, line by line, with the documents of up --json
// decoded.
type Output struct {
	Mu      sync.Mutex
	open    []byte // a line without its end
	Text    []string
	events  []wire.Event
	lines   []control.LogLine
	Flood   []byte // lines with this in them are counted and not kept
	flooded int
	Before  []int // number of such lines before each line of text
}

// Write stores output of the program.
func (t *Output) Write(chunk []byte) (int, error) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	size := len(chunk)
	for {
		line, rest, ended := bytes.Cut(chunk, []byte("\n"))
		if !ended {
			t.open = append(t.open, line...)
			return size, nil
		}
		if len(t.open) > 0 {
			line = append(t.open, line...)
			t.open = t.open[:0]
		}
		t.add(line)
		chunk = rest
	}
}

func (t *Output) add(line []byte) {
	if t.Flood != nil && bytes.Contains(line, t.Flood) {
		t.flooded++
		return
	}
	t.Text = append(t.Text, string(line))
	t.Before = append(t.Before, t.flooded)
	var event wire.Event
	var said control.LogLine
	switch {
	case !bytes.HasPrefix(line, []byte("{")):
	case json.Unmarshal(line, &event) == nil && event.Kind != "":
		t.events = append(t.events, event)
	case json.Unmarshal(line, &said) == nil && said.Stream != "":
		t.lines = append(t.lines, said)
	}
}

// All returns the output so far.
func (t *Output) All() string {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return strings.Join(append(slices.Clone(t.Text), string(t.open)), "\n")
}
