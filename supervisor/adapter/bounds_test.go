package adapter_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/claude"
	"orchestrator/supervisor/child"
)

// deaf is a program that reads its stdin on request.
type deaf struct {
	reads chan struct{} // closed when it reads
	read  bytes.Buffer
}

func (d *deaf) Write(text []byte) (int, error) {
	<-d.reads
	return d.read.Write(text)
}

func (d *deaf) SetWriteDeadline(time.Time) error { return nil }
func (d *deaf) PID() int                         { return 1 }
func (d *deaf) StartedAt() time.Time             { return time.Time{} }
func (d *deaf) Stdin() child.Stdin               { return d }
func (d *deaf) CloseStdin() bool                 { return true }
func (d *deaf) Signal(syscall.Signal)            {}
func (d *deaf) Kill()                            {}
func (d *deaf) Unread() int64                    { return 0 }
func (d *deaf) Usage() (cpuMS, rss int64)        { return 0, 0 }

// TestADeafClientIsNotRead checks that a client that gets answers and reads none is not read either
// until it does.
func TestADeafClientIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := &deaf{reads: make(chan struct{})}
		spec, ended := program.start(t, 1<<20)
		const request = `{"type":"control_request","request_id":"x","request":{"subtype":"mcp_message","server_name":"orc","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}` + "\n"
		const chunks = 20
		var taken atomic.Int64
		go func() {
			for range chunks {
				spec.Listener.Output(child.Stdout, []byte(strings.Repeat(request, 100)))
				taken.Add(1)
			}
			spec.Listener.Ended(child.Ending{})
		}()
		synctest.Wait()
		require.Less(t, taken.Load(), int64(10), "the client is waited for")
		close(program.reads)
		<-ended
		require.EqualValues(t, chunks, taken.Load())
		require.Greater(t, program.read.Len(), chunks*100*1000, "each request is answered")
	})
}

// atEnd listens to the end of an agent.
type atEnd struct {
	child.Nobody
	ended chan struct{}
}

func newAtEnd() atEnd { return atEnd{ended: make(chan struct{})} }

func (a atEnd) Ended(child.Ending) { close(a.ended) }

// start starts the program as an agent. It returns the spec of the program,
// and a channel that is closed when the agent has ended.
func (d *deaf) start(t *testing.T, maxLine int) (spec child.Spec, ended chan struct{}) {
	start := func(completed child.Spec) (adapter.Program, error) {
		spec = completed
		return d, nil
	}
	asked := newAtEnd()
	machine := adapter.NewMachine(claude.New(), &adapter.Opening{Agent: "coder", Run: "r", Permission: adapter.PermissionAsk})
	_, err := adapter.Start(start, child.Spec{Listener: asked}, machine, maxLine, nil)
	require.NoError(t, err)
	return spec, asked.ended
}

// TestALongRequestIsRefused checks that a request in a line that is too long is answered.
func TestALongRequestIsRefused(t *testing.T) {
	program := &deaf{reads: make(chan struct{})}
	close(program.reads)
	spec, ended := program.start(t, 2000)
	long := `{"type":"control_request","request_id":"p-1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"content":"` +
		strings.Repeat("x", 3000) + `"}}}` + "\n"
	spec.Listener.Output(child.Stdout, []byte(long[:1500]))
	spec.Listener.Output(child.Stdout, []byte(long[1500:]))
	spec.Listener.Ended(child.Ending{})
	<-ended
	require.Contains(t, program.read.String(), `{"response":{"subtype":"error","request_id":"p-1","error":"`+adapter.TooLong+`"},"type":"control_response"}`)
}

// TestMemoryIsBounded checks that values without room are counted, and that they have room again
// when older ones are forgotten.
func TestMemoryIsBounded(t *testing.T) {
	const size = 1 << 20
	var m adapter.Memory[int]
	for i := range 20 {
		m.Put(fmt.Sprint(i), i, size)
	}
	kept := m.Len()
	require.Less(t, kept, 9)
	require.Equal(t, 3, m.Get("3"))
	require.Zero(t, m.Get("19"))
	m.Put("3", 33, size)
	require.Equal(t, 33, m.Get("3"), "it replaces the earlier value")
	m.Forget("3")
	m.Put("20", 20, size)
	require.Equal(t, 20, m.Get("20"))
	require.Equal(t, kept, m.Len())
	require.Equal(t, fmt.Sprintf("%d tool calls were not stored: the client made too many in one turn", 20-kept), m.Clear().Text)
	require.Zero(t, m.Len())
	require.Empty(t, m.Clear().Text)
}
