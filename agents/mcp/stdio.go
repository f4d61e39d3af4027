package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"orchestrator/wire"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
)

// maxMessage is the maximum size of a message from a client.
const maxMessage = 16 << 20

// Serve serves a client on stdin and stdout until stdin ends.
func Serve(ctx context.Context, team Team, o Options) error {
	out := &answers{out: os.Stdout}
	in := &messages{in: os.Stdin, lines: line.NewSplitter(maxMessage), chunk: make([]byte, 64<<10), answers: out}
	return NewServer(team, o).Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: out, MaxLineLength: -1})
}

// Answers write whole lines to a client.
type answers struct {
	mu  sync.Mutex
	out io.Writer
}

func (a *answers) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Write(line)
}

// Close has no effect: stdout ends with the program.
func (a *answers) Close() error { return nil }

// refuse answers a message that the server does not get.
func (a *answers) refuse(id wire.Raw, code int, why string) {
	if kind := id.Kind(); !id.IsValid() || kind != '"' && kind != '0' { // a text or a number
		id = wire.Raw("null")
	}
	answer := object.Spell(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	_, _ = a.Write(append(answer, '\n')) // the server notices the end of stdout
}

// Messages reads the messages of a client, one a line. The server would end at the first that it
// cannot read, so such a message is answered here, and left out. The messages of a batch follow one
// another: only old versions of the protocol have batches.
type messages struct {
	in      io.Reader
	lines   *line.Splitter
	chunk   []byte
	ended   error  // of in
	ready   []byte // not read yet
	answers *answers
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		if m.ended != nil {
			return 0, m.ended
		}
		var n int
		n, m.ended = m.in.Read(m.chunk)
		m.lines.Feed(m.chunk[:n])
		for l, ok := m.lines.Next(); ok; l, ok = m.lines.Next() {
			m.take(l)
		}
		if m.ended != nil {
			if l, ok := m.lines.Rest(); ok {
				m.take(l)
			}
		}
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

func (m *messages) take(l line.Line) {
	if l.Cut {
		m.answers.refuse(object.ReadHead(l.Text)["id"], jsonrpc.CodeInvalidRequest, fmt.Sprintf("the line is longer than %d bytes", maxMessage))
		return
	}
	text := bytes.TrimSpace(l.Text)
	var batch []json.RawMessage
	switch {
	case len(text) == 0:
	case !json.Valid(text):
		m.answers.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON")
	case json.Unmarshal(text, &batch) == nil && len(batch) > 0:
		for _, message := range batch {
			m.add(message)
		}
	default:
		m.add(text)
	}
}

// add passes a message on, if the server can read it.
func (m *messages) add(message []byte) {
	if _, err := jsonrpc.DecodeMessage(message); err != nil {
		m.answers.refuse(object.ReadHead(message)["id"], jsonrpc.CodeInvalidRequest, "this is not a message of JSON-RPC 2.0")
		return
	}
	m.ready = append(append(m.ready, message...), '\n')
}
