package api

import (
	"context"
	"net/http"
	"strings"

	"orchestrator/wire"
)

const operationsPath = "/api/v1/operations/"

// keyOf is under what a context has a caller's key.
type keyOf struct{}

// Key is the key that a request came with, "" if there was none.
func Key(ctx context.Context) string {
	key, _ := ctx.Value(keyOf{}).(string)
	return key
}

// guard takes a caller's key from its request. Whoever shows one is who the key
// says, and not the operator that the socket alone would make of it: such a
// caller reaches the operations that are open to it, and nothing else.
func (d *Door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("X-API-Key"))+len(r.Header.Values("Authorization")) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		key := strings.TrimSpace(r.Header.Get("X-API-Key"))
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if key == "" && strings.EqualFold(scheme, "Bearer") {
			key = strings.TrimSpace(bearer)
		}
		if key == "" { // a script whose variable is empty must not become the operator by it
			d.refuse(w, r, &wire.Error{
				Code: wire.CodeDenied, Message: "the request came with a credential that is empty or of no kind that is known here",
				Hint: "Send X-API-Key: orc_…, or no such header at all",
			})
			return
		}
		name, operation := strings.CutPrefix(r.URL.Path, operationsPath)
		if !operation || d.WithKey == nil || !d.WithKey(name) {
			d.refuse(w, r, &wire.Error{Code: wire.CodeDenied, Message: r.URL.Path + " is for operators, and this is an agent's key"})
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyOf{}, key)))
	})
}
