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
func (w *transcript) Write(chunk []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := len(chunk)
	for {
		line, rest, ended := bytes.Cut(chunk, []byte("\n"))
		if !ended {
			w.open = append(w.open, line...)
			return size, nil
		}
		if len(w.open) > 0 {
			line = append(w.open, line...)
			w.open = w.open[:0]
		}
		w.add(line)
		chunk = rest
	}
}

func (w *transcript) add(line []byte) {
	if w.flood != nil && bytes.Contains(line, w.flood) {
		w.flooded++
		return
	}
	w.text = append(w.text, string(line))
	w.before = append(w.before, w.flooded)
	var event wire.Event
	var said control.LogLine
	switch {
	case !bytes.HasPrefix(line, []byte("{")):
	case json.Unmarshal(line, &event) == nil && event.Kind != "":
		w.events = append(w.events, event)
	case json.Unmarshal(line, &said) == nil && said.Stream != "":
		w.lines = append(w.lines, said)
	}
}

// all returns the output so far.
func (w *transcript) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(append(slices.Clone(w.text), string(w.open)), "\n")
}
