package stdio

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

func FuzzSession(f *testing.F) {
	for _, example := range sessionExamples(f) {
		f.Add(encoded(f, example))
	}
	f.Add([]byte(shortAssignment))
	f.Add([]byte(shortResult))
	f.Add([]byte(strings.ReplaceAll(shortResult, `,"`, ",\n\"")))
	schema := validators(f)["session-message"]
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := session.Read(line, 64)
		if err != nil {
			problems, _ := err.Details["errors"].([]object.Problem)
			require.LessOrEqual(t, len(problems), object.MaxProblems)
			require.NotEmpty(t, err.Complaints())
			return
		}
		again, err := session.Read(m.Document, 64)
		require.Nil(t, err)
		require.Equal(t, m, again)
		if !strangeNumbers.Match(line) {
			require.NoError(t, schema.Validate(mended(t, decoded(t, m.Document))), "%s", line)
			if m.Strictly() == nil {
				require.NoError(t, schema.Validate(decoded(t, m.Document)), "%s", line)
			}
		}
		requireDelivered(t, m)
	})
}

// requireDelivered requires that a message is delivered as one line: the message itself,
// followed by at most two members.
func requireDelivered(t *testing.T, m *session.Message) {
	t.Helper()
	line := m.Delivered(42, "c")
	require.NotContains(t, string(line), "\n")
	require.NotContains(t, string(line), "\r")
	said, _, ok := object.Scan(m.Document, 64, nil)
	require.True(t, ok)
	delivered, _, ok := object.Scan(line, 64, nil)
	require.True(t, ok)
	require.True(t, bytes.HasPrefix(line, m.Document[:len(m.Document)-1]))
	var more []string
	for _, filled := range delivered[len(said):] {
		more = append(more, string(filled.Key)+" "+string(filled.Value))
	}
	var want []string
	if !m.Sequenced {
		want = append(want, "sequence_number 42")
	}
	if m.CorrelationID == "" {
		want = append(want, `correlation_id "c"`)
	}
	require.Equal(t, want, more)
	back, err := session.Read(line, 64)
	require.Nil(t, err)
	require.Equal(t, m.Body, back.Body)
	require.True(t, back.Sequenced)
	require.Equal(t, m.Sum, back.Sum)
}
