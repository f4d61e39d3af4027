package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A transcript is the output of a program, line by line, with the documents of up --json
// decoded.
type transcript struct {
	mu      sync.Mutex
	open    []byte // a line without its end
	text    []string
	events  []wire.Event
	lines   []control.LogLine
	flood   []byte // lines with this in them are counted and not kept
	flooded int
	before  []int // number of such lines before each line of text
}

// Write stores output of the program.
func (t *transcript) Write(chunk []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
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

func (t *transcript) add(line []byte) {
	if t.flood != nil && bytes.Contains(line, t.flood) {
		t.flooded++
		return
	}
	t.text = append(t.text, string(line))
	t.before = append(t.before, t.flooded)
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

// all returns the output so far.
func (t *transcript) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(append(slices.Clone(t.text), string(t.open)), "\n")
}
