package serve

import (
	"context"
	"fmt"

	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// granting are the operations that let others in, or keep them out. Over the
// network they are for administrators: who may run the team need not decide who
// else may.
var granting = []string{"issue-key", "rotate-key", "revoke-key", "issue-registration", "issue-token", "revoke-token"}

// guarded keeps an operation to administrators, and to who owns the socket.
func guarded(do api.Operation) api.Operation {
	return func(ctx context.Context, request []byte) (any, error) {
		if err := mayGrant(api.CallerOf(ctx)); err != nil {
			return nil, err
		}
		return do(ctx, request)
	}
}

// mayGrant returns why a caller may not let others in.
func mayGrant(c api.Caller) error {
	if c.Role == "" || c.Role == wire.PersonAdmin {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeDenied, Message: "this is for administrators, and the role of the token is " + wire.Visible(c.Role),
		Hint: "orchestrator token issue --sub NAME --role admin",
	}
}

// signed makes tokens of what was decided about them: that there is one is a
// fact, the token itself is signed here, said once and kept nowhere.
func (t *Instance) signed(issue api.Operation) api.Operation {
	return func(ctx context.Context, request []byte) (any, error) {
		answer, err := issue(ctx, request)
		issued, ok := answer.(*wire.IssuedToken)
		if err != nil || !ok || issued.Actor != "" { // an actor's is no signature
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
