package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// shelf stores artifacts in memory.
type shelf map[string]string

func (s shelf) Detach(r *delegation.Response) *wire.Error {
	err := r.Detach(100, func(content string) (string, error) {
		sum := sha256.Sum256([]byte(content))
		ref := delegation.ArtifactRef(hex.EncodeToString(sum[:]))
		s[ref] = content
		return ref, nil
	})
	if err != nil {
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	}
	return nil
}

func (s shelf) Attach(document wire.Raw) wire.Raw {
	whole, _ := delegation.Attach(document, func(ref string) (string, error) { return s[ref], nil })
	return whole
}

// TestCompletedResponsesStayInTheirTrace checks that a response completed from the log and from
// files keeps its trace.
//
// Rows: D-13, D-35.
func TestCompletedResponsesStayInTheirTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		s := begin(t, Options{Record: record, Artifacts: make(shelf)})
		s.Note(&wire.AgentSet{Agents: []wire.Member{
			{ID: "boss", Role: wire.RolePlanner}, {ID: "w", Role: wire.RoleWorker, Capacity: 1, Capabilities: []string{"parse"}},
		}})
		boss, w := s.enter("boss", stdin.Limits{Messages: 100, Bytes: 1 << 20}), s.enter("w", stdin.Limits{Messages: 100, Bytes: 1 << 20})
		boss.listen()
		w.listen()
		boss.says(`{"id":"a","type":"parse","payload":{}}`)
		require.Len(t, w.lines(), 1)
		large := strings.Repeat("x", 1000)
		w.says(`{"id":"a","status":"completed","result":{"success":true},"artifacts":[{"name":"n","type":"text/plain","content":"` + large + `"}]}`)
		require.Len(t, boss.lines(), 1)
		require.Contains(t, boss.lines()[0], large)
		responded := record.facts(t, events.TaskResponded)
		require.Len(t, responded, 1)
		require.NotContains(t, string(responded[0].Payload), large)
		part := &wire.TaskAnswer{Document: wire.Raw(`{"id":"a","status":"completed"}`), Trace: &delegation.Trace{TraceID: "trace-1"}}
		l := handlers.Letter{Payload: part, Pages: []history.Page{{Task: "a", Response: responded[0].Seq}}}
		require.Nil(t, s.complete(&l))
		whole := l.Payload.(*wire.TaskAnswer)
		require.Contains(t, string(whole.Document), large)
		require.Equal(t, part.Trace, whole.Trace)
		boss.box.Drop()
		w.box.Drop()
		s.Close()
	})
}
