package api

import (
	"context"
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// granting are the operations that grant or revoke access. Over the network they require an
// administrator.
var granting = []string{"issue-key", "rotate-key", "revoke-key", "issue-registration", "issue-token", "revoke-token"}

// mayAsk returns an error if an operation grants access and the caller may not do that. Only
// administrators and the owner of the socket may.
func mayAsk(c Caller, operation string) error {
	if c.Role == "" || c.Role == wire.PersonAdmin || !slices.Contains(granting, operation) {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeDenied, Message: "this is for administrators, and the role of the token is " + wire.Visible(c.Role),
		Hint: "orchestrator token issue --sub NAME --role admin",
	}
}

// ask performs an operation for a caller that may use it.
func (api *API) ask(ctx context.Context, name string, request []byte) (any, error) {
	if err := mayAsk(CallerOf(ctx), name); err != nil {
		return nil, err
	}
	answer, err := api.Operations[name](ctx, request)
	if err != nil || name != "issue-token" {
		return answer, err
	}
	return api.withToken(answer)
}

// do performs an operation with a decoded body for a caller that may use it.
func (api *API) do(ctx context.Context, from Caller, operation string, body any) (any, error) {
	if err := mayAsk(from, operation); err != nil {
		return nil, err
	}
	return api.Do(ctx, from, operation, body)
}

// withToken adds the signed token to the answer of an operation that issues one. The fact that
// it was issued is recorded, but the token itself is not stored.
func (api *API) withToken(answer any) (any, error) {
	issued, ok := answer.(*wire.IssuedToken)
	if !ok || issued.Actor != "" { // the token of an actor is not signed
		return answer, nil
	}
	from, _ := object.ParseTime(issued.IssuedAt)
	until, _ := object.ParseTime(issued.ExpiresAt)
	whole := *issued
	var err error
	whole.Token, err = api.Signer.Sign(Claims{
		ID: issued.ID, Subject: issued.Subject, Role: issued.Role, IssuedAt: from, ExpiresAt: until,
	})
	if err != nil {
		return nil, fmt.Errorf("signing a token: %w", err)
	}
	return &whole, nil
}
