package stdio

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// Rows: D-37, D-38, T-32.
func TestTaskActsAreReadAndSpelled(t *testing.T) {
	for _, test := range []struct {
		line string
		want delegation.Act
	}{
		{`{"id":"t-1","type":"task.status","payload":{}}`, delegation.Act{ID: "t-1", Type: delegation.ActStatus}},
		{`{"id":"t-1","type":"task.update","payload":{"input":"with milk"}}`, delegation.Act{ID: "t-1", Type: delegation.ActUpdate, Input: wire.Raw(`"with milk"`)}},
		{`{"id":"t-1","type":"task.update","payload":{"input":{"n":12345678901234567890,"s":[1.50,"<&>"]}}}`, delegation.Act{ID: "t-1", Type: delegation.ActUpdate, Input: wire.Raw(`{"n":12345678901234567890,"s":[1.50,"<&>"]}`)}},
		{`{"id":"t-1","type":"task.update","payload":{"input":null}}`, delegation.Act{ID: "t-1", Type: delegation.ActUpdate, Input: wire.Raw("null")}},
		{`{"id":"t-1","type":"task.update","payload":{"input":false}}`, delegation.Act{ID: "t-1", Type: delegation.ActUpdate, Input: wire.Raw("false")}},
		{`{"id":"t-1","type":"task.cancel","payload":{"reason":"coffee \"instead\""}}`, delegation.Act{ID: "t-1", Type: delegation.ActCancel, Reason: `coffee "instead"`}},
		{`{"id":"t-1","type":"task.cancel","payload":{}}`, delegation.Act{ID: "t-1", Type: delegation.ActCancel}},
	} {
		a, err := wire.ReadTaskAct([]byte(test.line), 64)
		require.Nil(t, err, "%v", err)
		require.Equal(t, test.line, string(a.Document))
		require.Equal(t, test.line+"\n", string(delegation.AppendAct(nil, a)))
		a.Document = nil
		require.Equal(t, &test.want, a)
		require.True(t, delegation.IsAct(a.Type))
		_, err = wire.ReadTaskRequest([]byte(test.line), 64)
		require.NotNil(t, err, "it is no request")
	}
	require.Equal(t, `{"id":"1","type":"task.update","payload":{"input":null}}`+"\n", string(delegation.AppendAct(nil, &delegation.Act{ID: "1", Type: delegation.ActUpdate})))
	for _, kind := range []string{"", "task", "task.", "task.report", "Task.Status", "weigh_tea"} {
		require.False(t, delegation.IsAct(kind), kind)
	}
}

// Rows: D-37, D-38, T-32.
func TestTaskActsAreRefused(t *testing.T) {
	const kinds = "type must be one of task.status, task.update or task.cancel, not "
	for line, want := range map[string][]string{
		`{}`: {"/id: id is missing", "/type: type is missing", "/payload: payload is missing"},
		`{"id":7,"type":"task.status","payload":[]}`:                            {"/id: id must be a string", "/payload: payload must be an object"},
		`{"id":"1","type":"weigh_tea","payload":{}}`:                            {"/type: " + kinds + `"weigh_tea"`},
		`{"id":"1","type":"notify:shutdown","payload":{}}`:                      {"/type: " + kinds + `"notify:shutdown"`},
		`{"id":"1","type":"task.update","payload":{}}`:                          {"/payload/input: input is missing"},
		`{"id":"1","type":"task.update","payload":{"Input":1}}`:                 {"/payload/input: input is missing"},
		`{"id":"1","type":"task.update","payload":{"input":1,"input":null}}`:    {"/payload/input: input stands twice"},
		`{"id":"1","type":"task.update","payload":{"input":null,"input":null}}`: {"/payload/input: input stands twice"},
		`{"id":"1","type":"task.cancel","payload":{"reason":7}}`:                {"/payload/reason: reason must be a string"},
	} {
		_, err := wire.ReadTaskAct([]byte(line), 64)
		require.Equal(t, want, complaintsOf(err), line)
	}
	a, err := wire.ReadTaskAct([]byte(`{"id":"1","type":"task.cancel","payload":{"reason":null,"input":1},"later":{}}`), 64)
	require.Nil(t, err)
	require.Empty(t, a.Reason)
	require.Empty(t, a.Input)
	a, err = wire.ReadTaskAct([]byte(`{"id":"1","type":"task.status","payload":{"reason":7}}`), 64)
	require.Nil(t, err, "nobody looks there")
	require.Empty(t, a.Reason)
}
