package supervisor

import (
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A hub continues a run only if the record has no fact that concerns the run, or that the run may have caused.
func TestUnsound(t *testing.T) {
	far := &agentRun{spec: &settings.Agent{Name: "far"}}
	for name, test := range map[string]struct {
		record wire.Record
		waits  bool
		member bool
		sound  bool
	}{
		"nothing":           {record: wire.Record{Kind: events.HubEpoch}, sound: true},
		"its host was lost": {record: wire.Record{Kind: events.AgentStalled, To: "agent:far", Payload: []byte(`{"agent":"far"}`)}, sound: true},
		"another agent":     {record: wire.Record{From: "agent:near", Kind: "task.done", Payload: []byte(`{"agent":"near"}`)}, sound: true},
		"longer name":       {record: wire.Record{From: "agent:farther", Kind: "task.done", Payload: []byte(`{"agent":"farther"}`)}, sound: true},
		"mail":              {record: wire.Record{From: "GO", To: "W:far", Topic: "x", Kind: "message.sent", Payload: []byte(`{"agent":"far"}`)}, sound: true},
		"its mail":          {record: wire.Record{From: "agent:far", To: "GO", Topic: "x", Kind: "message.sent"}},
		"it said something": {record: wire.Record{From: "agent:far", Kind: "task.done"}},
		"it was told":       {record: wire.Record{To: "agent:far", Kind: "question.answered"}},
		"it is named":       {record: wire.Record{Kind: "task.cancelled", Payload: []byte(`{"task":"1","agent":"far"}`)}},
		"it is to stop":     {record: wire.Record{Kind: events.AgentStopping, To: "agent:far"}},
		"it waits":          {record: wire.Record{From: "agent:near", Kind: "task.done"}, waits: true},
		"it is in a session": {
			record: wire.Record{From: "agent:near", Kind: "session.message"}, member: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := eventlog.NewMemory()
			test.record.Seq = 2
			require.NoError(t, log.Append(t.Context(), 0, []wire.Record{{Seq: 1, From: "agent:far", Kind: "task.done"}, test.record, {Seq: 3, From: "agent:far", Kind: "task.done"}}))
			ar := *far
			if test.member {
				ar.session = []string{"ORC_SESSION=s"}
			}
			d := dispatch.New(dispatch.Options{Log: hclog.NewNullLogger(), Record: log})
			require.Equal(t, test.sound, unsound(d, log, 2, &ar, 1, test.waits) == "", "the first record is settled, the last one is of this hub")
			require.NotEmpty(t, unsound(d, log, 2, &ar, 3, test.waits), "the record was restored")
		})
	}
}
