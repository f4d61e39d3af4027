package dialect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

// keysOf returns the keys of an object. If it is only the beginning of one, cut is the key behind the
// members that can be read.
func keysOf(text, cut string) *Keys {
	k := new(Keys)
	members, _, _ := object.Scan([]byte(text), 8, nil)
	k.Gather(members)
	if cut != "" {
		k.Cut(cut)
	}
	return k
}

// Rows: B-03, B-05.
func TestClassify(t *testing.T) {
	capability := func(name string) bool { return name == "bake" }
	for _, test := range []struct {
		text, cut string
		class     Dialect
		echo      bool
	}{
		{`{}`, "", None, false},
		{`{"type":"request:x"}`, "", Native, false},
		{`{"type":"request:x","jsonrpc":"2.0","method":"ping","topic":"t","from_actor":"GO"}`, "", Native, false},
		{`{"type":"event:x","type":"event:y"}`, "", Native, false},
		{`{"type":"response:success"}`, "", Native, true},
		{`{"type":"notify:mail","id":"1"}`, "payload", Native, true},
		{`{"type":"requests:x"}`, "", None, false},
		{`{"type":7,"id":"1","payload":{}}`, "", None, false},
		{`{"jsonrpc":"2\u002e0","method":7}`, "", ToolCall, false},
		{`{"jsonrpc":"1.0","method":"ping"}`, "", None, false},
		{`{"message_type":"abort"}`, "", Session, false},
		{`{"message_type":"x"}`, "", None, false},
		{`{"message_type":"x","to_agent":{}}`, "", Session, false},
		{`{"message_type":7,"to_agent":{}}`, "", None, false},
		{`{"from_actor":"GO","seq":1,"created_at":"x"}`, "", Mail, true},
		{`{"from_actor":"GO","seq":1,"topic":"t"}`, "", Mail, false},
		{`{"from_actor":"GO","seq":1,"topic":"t"}`, "payload", Mail, true},
		{`{"from_actor":"GO","topic":"t"}`, "payload", Mail, false},
		{`{"from_actor":"GO"}`, "", None, false},
		{`{"id":"1","status":"completed","anything":1}`, "", TaskResponse, false},
		{`{"id":"1","status":"baked"}`, "", TaskResponse, false},
		{`{"id":"1","status":"baked","anything":1}`, "", None, false},
		{`{"id":"1","status":"completed"}`, "result", TaskResponse, false},
		{`{"id":"1","status":"baked"}`, "result", None, false},
		{`{"status":"completed"}`, "", None, false},
		{`{"id":"1","type":"task.cancel"}`, "", TaskAct, false},
		{`{"type":"task.cancel"}`, "", None, false},
		{`{"id":"1","type":"bake","timestamp":"x","payload":{}}`, "", TaskRequest, false},
		{`{"id":"1","type":"brew","timestamp":"x","payload":{}}`, "", None, false},
		{`{"id":"1","type":"brew","timestamp":"x","payload":{},"context":{}}`, "", TaskRequest, false},
		{`{"id":"1","type":"brew","timestamp":"x","payload":{},"context":7}`, "", None, false},
		{`{"id":"1","type":"brew","payload":{}}`, "", TaskRequest, false},
		{`{"id":"1","type":"brew"}`, "", None, false},
		{`{"id":"1","type":"brew"}`, "payload", TaskRequest, false},
		{`{"id":"1","type":"brew","payload":{}}`, "routing", None, false},
		{`{"id":"1","type":"brew","payload":{},"payload":{}}`, "", TaskRequest, false},
		{`{"id":"1","type":"brew","payload":{},"routing":{},"routing":{}}`, "", None, false},
		{`{"id":"1","type":"brew","payload":{},"from_actor":"GO"}`, "", TaskRequest, false},
		{`{"id":"1","id":"2","type":"brew","payload":{},"from_actor":"GO"}`, "", None, false},
	} {
		class, echo := keysOf(test.text, test.cut).Classify(capability)
		require.Equal(t, test.class, class, "%s %s", test.text, test.cut)
		require.Equal(t, test.echo, echo, "%s %s", test.text, test.cut)
	}
}
