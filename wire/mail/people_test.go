package mail

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

func TestForPeople(t *testing.T) {
	const run = "606c3411-85a5-4d1b-9c4f-3e0c2b9c7f11"
	names := NamesOf([]ActorView{{Actor: "GO"}, {Actor: "PO:shop", Agent: "shop"}})
	names.Learn(&Message{Topic: TopicAgentSpawned, Payload: object.Raw(`{"agent":"coder","actor":"W:` + run + `"}`)})
	names.Learn(&Message{Topic: TopicDirect, Payload: object.Raw(`{"agent":"liar","actor":"PO:shop"}`)})
	for actor, name := range map[string]string{
		"GO": "GO", "PO:shop": "shop", "W:" + run: "coder", "W:706c3411-85a5-4d1b-9c4f-3e0c2b9c7f11": "W:706c3411",
		"S:db:" + run: "S:db:606c3411", "HO:attic": "HO:attic", Broadcast: Broadcast,
	} {
		require.Equal(t, name, names.Of(actor))
	}
	for _, test := range []struct {
		topic, payload, text string
		housekeeping         bool
	}{
		{TopicDirect, `{"text":"hello","urgent":true}`, "hello", false},
		{TopicDirect, `{"text":7}`, `{"text":7}`, false},
		{"build.finished", `{}`, `{}`, false},
		{TopicAlertFired, `{"alert":"agent.crashed","agent":"coder","text":"exit 1"}`, "coder: exit 1", false},
		{TopicDirect, `{"agent":"coder","text":"exit 1"}`, "exit 1", false},
		{TopicAgentSpawned, `{"agent":"coder"}`, `{"agent":"coder"}`, true},
		{TopicHeartbeat, `{}`, `{}`, true},
	} {
		m := Message{Topic: test.topic, Payload: object.Raw(test.payload)}
		require.Equal(t, test.text, m.Text(), test.payload)
		require.Equal(t, test.housekeeping, m.Housekeeping(), test.topic)
	}
}
