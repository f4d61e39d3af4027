package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
)

// acpFlags are the flags of acp.
type acpFlags struct {
	agent string
	role  cli.Choice
}

// ACPCommand returns the acp command.
func ACPCommand(a *cli.App) *cobra.Command {
	f := acpFlags{role: cli.Choice{Of: wire.Roles, Open: true}}
	verb := &cobra.Command{
		Use:   "acp",
		Short: "Let an editor talk to the team as one agent, over stdio",
		Long: `Serves the team as one agent to a client of the Agent Client Protocol, such as an
editor. A prompt becomes a task: for a planner if the team has one, else for a worker,
or else for any agent. The prompt ends with the result of the task.

The editor shows the progress of the task and of the tasks below it. Questions about these
tasks come as requests for permission. A question without options is shown
with the command that answers it. A cancelled prompt cancels its open tasks. When the
editor ends, its tasks continue: orchestrator task ls.

The command acts as you. The orchestrator may start later, or again.`,
		Example: `  orchestrator acp -c /home/ann/shop/orchestrator.hcl
  orchestrator acp --agent coder`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return serveACP(a, f) },
	}
	set := verb.Flags()
	set.StringVar(&f.agent, "agent", "", "assign the tasks to `AGENT`")
	set.Var(&f.role, "role", "role of the agent for the tasks")
	verb.MarkFlagsMutuallyExclusive("agent", "role")
	_ = verb.RegisterFlagCompletionFunc("agent", a.CompleteAgents)
	_ = verb.RegisterFlagCompletionFunc("role", f.role.Complete)
	return verb
}

// An editor is the client of the protocol on the other end of stdin and stdout.
type editor struct {
	app     *cli.App
	flags   acpFlags
	stdout  *outbox
	turns   sync.WaitGroup
	mu      sync.Mutex             // of the fields below
	calls   int64                  // requests to the editor so far
	waiting map[string]chan answer // requests that have no answer yet, by their ids
	turn    map[string]*turn       // of each session; nil between its prompts
}

// A frame is a message of JSON-RPC in either direction.
type frame struct {
	Version string    `json:"jsonrpc"`
	ID      wire.Raw  `json:"id,omitzero"`
	Method  string    `json:"method,omitzero"`
	Params  any       `json:"params,omitzero"`
	Result  any       `json:"result,omitzero"`
	Error   *rpcError `json:"error,omitzero"`
}

// An answer is a frame that was received.
type answer struct {
	ID     wire.Raw  `json:"id"`
	Method string    `json:"method"`
	Params wire.Raw  `json:"params"`
	Result wire.Raw  `json:"result"`
	Error  *rpcError `json:"error"`
}

// An rpcError is the error of a request.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// The codes of an rpcError, as JSON-RPC has them.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
)

// maxFrame is the maximum size of a message from the editor.
const maxFrame = 32 << 20

func serveACP(a *cli.App, f acpFlags) error {
	ctx, stop := a.Context()
	defer stop()
	e := &editor{app: a, flags: f, stdout: newOutbox(a.Stdout), waiting: map[string]chan answer{}, turn: map[string]*turn{}}
	read := make(chan error, 1)
	turns, leave := context.WithCancel(ctx)
	go func() { read <- e.read(turns) }() // a read of stdin cannot be interrupted: it ends with the program
	var err error
	select {
	case err = <-read:
	case <-e.stdout.full:
		err = &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("the editor has not read %d bytes of messages", maxUnread)}
	case <-ctx.Done():
	}
	leave()
	e.turns.Wait()
	e.stdout.close(requestTimeout)
	return ended(ctx, a, err)
}

// read handles the editor's messages until stdin ends.
func (e *editor) read(ctx context.Context) error {
	lines := line.NewSplitter(maxFrame)
	chunk := make([]byte, 64<<10)
	for {
		n, err := e.app.Stdin.Read(chunk)
		lines.Feed(chunk[:n])
		for l, ok := lines.Next(); ok; l, ok = lines.Next() {
			e.readLine(ctx, l)
		}
		if err == nil {
			continue
		}
		if l, ok := lines.Rest(); ok {
			e.readLine(ctx, l)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

func (e *editor) readLine(ctx context.Context, l line.Line) {
	var m answer
	switch {
	case l.Cut:
		e.reply(wire.Raw("null"), nil, &rpcError{Code: parseError, Message: fmt.Sprintf("the line is longer than %d bytes", maxFrame)})
	case len(bytes.TrimSpace(l.Text)) == 0:
	case object.Decode(object.Replaced(l.Text), &m) != nil:
		e.reply(wire.Raw("null"), nil, &rpcError{Code: parseError, Message: "the line is not a JSON object"})
	default:
		e.heard(ctx, &m)
	}
}

// heard handles one message. Only a prompt takes long, so it has its own goroutine.
func (e *editor) heard(ctx context.Context, m *answer) {
	switch m.Method {
	case "":
		e.mu.Lock()
		to := e.waiting[string(m.ID)]
		delete(e.waiting, string(m.ID))
		e.mu.Unlock()
		if to != nil {
			to <- *m
		}
	case "initialize":
		e.reply(m.ID, welcome(), nil)
	case "session/new":
		if _, err := e.team(ctx); err != nil {
			e.reply(m.ID, nil, err)
			return
		}
		id := uuid.NewString()
		e.mu.Lock()
		e.turn[id] = nil
		e.mu.Unlock()
		e.reply(m.ID, map[string]string{"sessionId": id}, nil)
	case "session/prompt":
		t, err := e.begin(m.Params)
		if err != nil {
			e.reply(m.ID, nil, err)
			return
		}
		id := m.ID
		e.turns.Go(func() {
			reason, err := t.run(ctx)
			e.mu.Lock()
			e.turn[t.session] = nil
			e.mu.Unlock()
			e.reply(id, map[string]string{"stopReason": reason}, err)
		})
	case "session/cancel":
		e.cancel(ctx, m.Params)
	default:
		if m.ID != nil { // an unknown notification is ignored
			e.reply(m.ID, nil, &rpcError{Code: methodNotFound, Message: "unknown method " + strconv.Quote(m.Method)})
		}
	}
}

// welcome returns the abilities of the team.
func welcome() any {
	return map[string]any{
		"protocolVersion":   1,
		"agentCapabilities": map[string]any{"loadSession": false, "promptCapabilities": map[string]bool{"embeddedContext": true}},
		"agentInfo":         map[string]string{"name": "orchestrator", "title": "The team", "version": build.Version},
		"authMethods":       []any{},
	}
}

// reply answers a request, with the error if there is one.
func (e *editor) reply(id wire.Raw, result any, err error) {
	f := frame{ID: id, Result: result}
	if err != nil {
		refusal, ok := errors.AsType[*rpcError](err)
		if !ok {
			refusal = &rpcError{Code: internalError, Message: plain(err)}
		}
		f.Result, f.Error = nil, refusal
	}
	if id != nil {
		e.send(&f)
	}
}

// plain returns the message of an error, and the remedy.
func plain(err error) string {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Hint == "" {
		return err.Error()
	}
	return fmt.Sprintf("%s. %s", f.Message, f.Hint)
}

// notify sends an update of a session.
func (e *editor) notify(session string, update any) {
	e.send(&frame{Method: "session/update", Params: map[string]any{"sessionId": session, "update": update}})
}

// ask sends a request to the editor and waits for the answer.
func (e *editor) ask(ctx context.Context, method string, params any) (wire.Raw, error) {
	reply := make(chan answer, 1)
	e.mu.Lock()
	e.calls++
	id := strconv.FormatInt(e.calls, 10)
	e.waiting[id] = reply
	e.mu.Unlock()
	e.send(&frame{ID: wire.Raw(id), Method: method, Params: params})
	select {
	case m := <-reply:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		e.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// send sends a message. It does not wait for the editor to read it.
func (e *editor) send(f *frame) {
	f.Version = "2.0"
	line, err := object.Encode(f)
	if err != nil {
		return
	}
	e.stdout.add(append(line, '\n'))
}
