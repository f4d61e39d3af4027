package handlers

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestOperations checks that the examples of every operation can be decoded, and that the
// operation takes the result.
//
// Rows: B-17, B-57.
func TestOperations(t *testing.T) {
	var standard []string
	require.Equal(t, operationNames(wire.Operations), operationNames(operationsOf(operations)), "the rows of operations.go are not those of wire, in their order")
	for _, o := range operations {
		require.NotEmpty(t, o.Examples)
		for _, example := range o.Examples {
			r := &wire.Request{Operation: o.Name, Payload: []byte(cmp.Or(example, "{}"))}
			require.Nil(t, Prepare(r, 64), o.Name)
			require.IsType(t, o.Request, r.Body, o.Name)
			require.Equal(t, o.Writes, r.Sum != 0, "%s is recognised when it comes again", o.Name)
		}
		require.Equal(t, o.Writes, wire.OperationNamed(o.Name).IsWrite())
		require.Equal(t, o.Audience <= wire.ForAgents || o.Audience == wire.ForActors, wire.OperationNamed(o.Name).OpenToAgents())
		require.Equal(t, o.Audience == wire.ForActors, wire.OperationNamed(o.Name).OpenToActors())
		require.NotEmpty(t, o.Summary)
		require.NotEmpty(t, o.Audience.String())
		require.NotNil(t, o.Answer)
		if o.Published {
			standard = append(standard, o.Name)
		}
	}
	require.Equal(t, []string{"query-agents", "query-tasks", "submit-task", "get-task", "ask-user"}, standard)
	require.False(t, wire.OperationNamed("no-such-thing").IsWrite())
	require.False(t, wire.OperationNamed("no-such-thing").OpenToAgents())
}

func operationsOf(bound []Operation) (all []*wire.Operation) {
	for _, o := range bound {
		all = append(all, o.Operation)
	}
	return all
}

func operationNames(operations []*wire.Operation) (all []string) {
	for _, o := range operations {
		all = append(all, o.Name)
	}
	return all
}
