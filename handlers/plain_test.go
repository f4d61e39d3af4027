package handlers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire/object"
)

// plainSamples are documents as they are written, and some that look like them.
var plainSamples = []string{
	`{"view":{"id":"t","name":"n","type":"w","status":"queued","state":"pending","payload":{"n":1.0},"requiredRole":"reviewer","requiredCapabilities":[],"dependencies":[],"priority":2,"submittedBy":"agent:a","assignedTo":null,"result":null,"createdAt":"2026-11-21T10:00:00.000Z"},"created":7}`,
	`{"view":{"id":"t","name":"a \\ \"b\"","type":"w","status":"queued","state":"pending","description":"d","submittedBy":"operator","createdAt":"x"},"run":"r","way":"m","created":7,"ended":8}`,
	`{"view":{"id":"t","name":"n","type":"w","status":"running","state":"running","assignedTo":"a"},"created":7}`,
	`{"view":{"id":"t","name":"\ud800","status":"queued","state":"pending"},"created":7}`,
	`{"view":{"id":"t","status":"queued","state":"pending"},"view":{"name":"n","id":"u"},"created":1}`,
	`{"view":{"id":"t","status":"queued","state":"pending","assignedTo":[],"requiredRole":[],"result":[]},"created":1}`,
	`{"task":"t","name":"n","type":"w","payload":{"a":[1,2]},"priority":"high","required_role":"worker","request":{"id":"1","run":"r","timestamp":"2026","sum":18446744073709551615}}`,
	`{"task":"t","name":"n","type":"w","dependencies":[{"on":"u"}],"patient":true}`,
	`{"task":"t","name":null,"type":"w","payload":null}`,
	`{"task":"t","request":{"id":"1"},"request":{"run":"2"}}`,
	`{"task":"t","request":{"sum":1.5}}`,
}

// FuzzPlainDocuments holds the readers of plain documents equal to reflection: reflection accepts
// all documents that they accept, with the same result.
func FuzzPlainDocuments(f *testing.F) {
	for _, text := range plainSamples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var room []object.Member
		var plain state.PlainReader
		var task, slowTask state.SnapshotTask
		if plain.Read(text, &task) {
			require.NoError(t, object.DecodeOwn(text, &slowTask))
			require.Equal(t, respelled(t, &slowTask), respelled(t, &task))
		}
		var created, slowCreated state.TaskCreated
		if created.ReadPlain(text, &room) {
			require.NoError(t, object.DecodeOwn(text, &slowCreated))
			require.Equal(t, &slowCreated, &created)
		}
	})
}

// respelled returns a restored task in its written form.
func respelled(t *testing.T, kept *state.SnapshotTask) string {
	again := kept.Restore().Snapshot()
	text, err := object.Encode(&again)
	require.NoError(t, err)
	return string(text)
}

// TestPlainDocuments checks that the most frequent documents are read without reflection.
func TestPlainDocuments(t *testing.T) {
	var room []object.Member
	var plain state.PlainReader
	for i, text := range plainSamples {
		var task state.SnapshotTask
		var created state.TaskCreated
		require.Equal(t, i < 2, plain.Read([]byte(text), &task), text)
		require.Equal(t, i == 6, created.ReadPlain([]byte(text), &room), text)
	}
}

// TestPlainTaskAllocates checks what a restart allocates for a waiting task: its id, its time and its payload. The
// other texts are those of the task before.
func TestPlainTaskAllocates(t *testing.T) {
	var plain state.PlainReader
	var task state.SnapshotTask
	text := []byte(strings.Replace(plainSamples[0], `"priority":2,`, "", 1))
	n := testing.AllocsPerRun(100, func() {
		task = state.SnapshotTask{}
		require.True(t, plain.Read(text, &task))
	})
	require.LessOrEqual(t, n, 3.0)
	require.Equal(t, "reviewer", task.View.RequiredRole)
	n = testing.AllocsPerRun(100, func() { task.Restore() })
	require.LessOrEqual(t, n, 1.0, "a task without rare parts has room for them")
}
