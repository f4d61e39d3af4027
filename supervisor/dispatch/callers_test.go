package dispatch

import (
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// TestActorOfCaller checks that each kind of caller is its own kind of actor, and that a caller
// without a credential has no rights.
func TestActorOfCaller(t *testing.T) {
	for kind, want := range map[identity.Kind]handlers.Actor{
		identity.Unknown:  {Kind: handlers.Anonymous, Via: "v"},
		identity.Operator: {Kind: handlers.Operator, Name: "n", Via: "v"},
		identity.Agent:    {Kind: handlers.Agent, Name: "n", Only: "r", ActsForOthers: true, Via: "v"},
		identity.Outsider: {Kind: handlers.External, Name: "n", Via: "v"},
		99:                {Kind: handlers.Anonymous, Via: "v"},
	} {
		got := actorOf(identity.Caller{Kind: kind, Name: "n", Run: "r", Role: "admin", Wide: true, Via: "v"})
		require.Equal(t, want, got, kind)
	}
	require.Equal(t, handlers.Actor{Kind: handlers.Anonymous}, actorOf(identity.Caller{}))
}

// TestCallersAreAudited checks that callers have their rights, and that the audit names a caller and
// how its request came.
func TestCallersAreAudited(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{})
		callers := d.Requests().Callers()
		d.audit = newAudit(fileIn(dir), hclog.NewNullLogger())
		via := `,"address":"10.0.0.1:5"`
		ann := identity.Caller{Kind: identity.Operator, Name: "ann", Via: via}
		stranger := identity.Caller{Via: via}

		_, err := callers.Ask(t.Context(), ann, "list-keys", nil)
		require.NoError(t, err)
		_, err = callers.Ask(t.Context(), stranger, "list-keys", nil)
		require.Equal(t, &wire.Error{Code: wire.CodeUnauthenticated, Message: "the caller is unknown: a credential is missing"}, err)
		_, err = callers.Do(t.Context(), ann, "list-keys", &wire.Nothing{})
		require.NoError(t, err)
		_, err = callers.Do(t.Context(), stranger, "list-keys", &wire.Nothing{})
		require.Error(t, err)
		callers.Note(identity.Request{From: identity.Caller{Kind: identity.Outsider, Name: "HO:far", Via: via}, Operation: "add-note"}, &wire.Error{Code: wire.CodeDenied, Message: "no"})
		d.audit.close()
	})
	var got []string
	for _, line := range trail(t, dir) {
		require.Equal(t, "10.0.0.1:5", line["address"])
		got = append(got, line["actor"].(string)+" "+line["type"].(string)+" "+line["outcome"].(string))
	}
	require.Equal(t, []string{
		"operator:ann request:list-keys granted", "operator:ann request:list-keys granted", "stranger request:list-keys unauthenticated",
		"actor:HO:far request:add-note denied",
	}, got)
}
