package api

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestGrantsAreForAdministrators checks that a person with a token needs the role admin for the
// operations that grant access. The token of a person is signed; that of an actor is not.
func TestGrantsAreForAdministrators(t *testing.T) {
	issued := wire.IssuedToken{ID: "t", Subject: "ann", Role: wire.PersonViewer, IssuedAt: "2026-11-21T14:00:00Z", ExpiresAt: "2126-11-21T14:00:00Z"}
	d := &API{Signer: signer(t), Operations: make(map[string]Operation)}
	for _, name := range append([]string{"get-task"}, granting...) {
		d.Operations[name] = func(context.Context, []byte) (any, error) { return &issued, nil }
	}
	for role, may := range map[string]bool{"": true, wire.PersonAdmin: true, wire.PersonOperator: false, wire.PersonViewer: false} {
		for name := range d.Operations {
			err := mayAsk(Caller{Kind: Operator, Role: role}, name)
			require.Equal(t, may || name == "get-task", err == nil, "%s %s", role, name)
		}
	}
	answer, err := d.ask(t.Context(), "issue-token", nil)
	require.NoError(t, err)
	require.NotEmpty(t, answer.(*wire.IssuedToken).Token)
	require.Empty(t, issued.Token, "the answer of the operation is unchanged")
	issued.Actor = "HO:far"
	answer, err = d.ask(t.Context(), "issue-token", nil)
	require.NoError(t, err)
	require.Empty(t, answer.(*wire.IssuedToken).Token)
}
