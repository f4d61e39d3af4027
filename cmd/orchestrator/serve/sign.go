package serve

import (
	"context"
	"fmt"

	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// granting are the operations that grant or revoke access. Over the network they require an
// administrator.
var granting = []string{"issue-key", "rotate-key", "revoke-key", "issue-registration", "issue-token", "revoke-token"}

// guarded restricts an operation to administrators and to the owner of the socket.
func guarded(do api.Operation) api.Operation {
	return func(ctx context.Context, request []byte) (any, error) {
		if err := mayGrant(api.CallerOf(ctx)); err != nil {
			return nil, err
		}
		return do(ctx, request)
	}
}

// mayGrant returns an error if a caller may not grant access.
func mayGrant(c api.Caller) error {
	if c.Role == "" || c.Role == wire.PersonAdmin {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeDenied, Message: "this is for administrators, and the role of the token is " + wire.Visible(c.Role),
		Hint: "orchestrator token issue --sub NAME --role admin",
	}
}

// signed adds the signed token to the answer of an operation that issues one. The fact that
// it was issued is recorded, but the token itself is not stored.
func (t *Instance) signed(issue api.Operation) api.Operation {
	return func(ctx context.Context, request []byte) (any, error) {
		answer, err := issue(ctx, request)
		issued, ok := answer.(*wire.IssuedToken)
		if err != nil || !ok || issued.Actor != "" { // the token of an actor is not signed
			return answer, err
		}
		from, _ := object.ParseTime(issued.IssuedAt)
		until, _ := object.ParseTime(issued.ExpiresAt)
		whole := *issued
		whole.Token, err = t.signer.Sign(api.Claims{
			ID: issued.ID, Subject: issued.Subject, Role: issued.Role, IssuedAt: from, ExpiresAt: until,
		})
		if err != nil {
			return nil, fmt.Errorf("signing a token: %w", err)
		}
		return &whole, nil
	}
}
