package api

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/access"

	"orchestrator/wire/identity"
)

// The line of a request in the audit names the process or the address, and the id of a credential.
//
// Rows: S-07.
func TestVia(t *testing.T) {
	key, keyID, _ := access.NewKey([16]byte{1})
	token, tokenID, _ := access.NewToken([16]byte{2})
	for _, test := range []struct {
		peer   *peer
		remote string
		caller caller
		want   string
	}{
		{remote: "@"},
		{remote: "[::1]:80", want: `,"address":"[::1]:80"`},
		{remote: "10.0.0.1:5", caller: caller{who: identity.Caller{Kind: identity.Agent}, key: &key}, want: `,"address":"10.0.0.1:5","credential":"` + keyID + `"`},
		{remote: "10.0.0.1:5", caller: caller{who: identity.Caller{Kind: identity.Outsider}, key: &token}, want: `,"address":"10.0.0.1:5","credential":"` + tokenID + `"`},
		{remote: "10.0.0.1:5", caller: caller{who: identity.Caller{Kind: identity.Operator}, token: "t1"}, want: `,"address":"10.0.0.1:5","credential":"t1"`},
		{peer: &peer{Origin: Origin{PID: 7, Program: "a\"\x1b"}}, remote: "@", want: `,"pid":7,"program":"a\"\u001b"`},
		{peer: &peer{}, remote: "@"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = test.remote
		if test.peer != nil {
			r = r.WithContext(context.WithValue(r.Context(), peerKey{}, test.peer))
		}
		require.Equal(t, test.want, via(r, test.caller))
	}
}
