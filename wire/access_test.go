package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/hub"
)

// Rows.
func TestAccessRequestsAreRead(t *testing.T) {
	for _, test := range []struct {
		operation, payload string
		want               any
	}{
		{"issue-key", `{"agent":"coder"}`, &IssueKey{Agent: "coder"}},
		{"rotate-key", `{"agent":"coder","overlap":6e4}`, &IssueKey{Agent: "coder", Overlap: 60000}},
		{"revoke-key", `{"id":"k1"}`, &Revoke{ID: "k1"}},
		{"revoke-token", `{"id":"t1"}`, &Revoke{ID: "t1"}},
		{"list-keys", `{}`, &Nothing{}},
		{"list-tokens", `{}`, &Nothing{}},
		{"issue-registration", `{}`, &IssueRegistration{}},
		{"issue-registration", `{"name":"attic","ttl":1}`, &IssueRegistration{Name: "attic", TTL: 1}},
		{"issue-token", `{"sub":"ann"}`, &IssueToken{Subject: "ann"}},
		{"issue-token", `{"sub":"ann","role":"viewer","ttl":31536000000}`, &IssueToken{Subject: "ann", Role: "viewer", TTL: 31536000000}},
		{"issue-token", `{"sub":"ann","actor":null,"overlap":null}`, &IssueToken{Subject: "ann"}},
		{"issue-token", `{"actor":"HO:attic","sub":null,"role":null}`, &IssueToken{Actor: "HO:attic"}},
		{"issue-token", `{"actor":"GO","ttl":5,"overlap":60000}`, &IssueToken{Actor: "GO", TTL: 5, Overlap: 60000}},
		{"register-agent", `{"name":"attic","registration_token":"orcreg_x"}`, &Register{Name: "attic", Token: "orcreg_x"}},
		{
			"register-agent",
			`{"name":"attic","hostname":"h","ip":"i","os":"o","registration_token":"orcreg_x","repos":{"shop":"/srv"},"capabilities":{"max_concurrent_tasks":2}}`,
			&Register{
				Name: "attic", Hostname: "h", IP: "i", OS: "o", Token: "orcreg_x", Repos: Raw(`{"shop":"/srv"}`),
				Capabilities: &hub.Capabilities{Document: Raw(`{"max_concurrent_tasks":2}`), Capacity: 2},
			},
		},
	} {
		body, wrong := readAs(t, test.operation, test.payload)
		require.Empty(t, wrong, "%s %s", test.operation, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.operation, test.payload)
	}
}

// Rows: A-114.
func TestAccessRequestsAreRefused(t *testing.T) {
	for _, test := range []struct{ operation, payload, want string }{
		{"rotate-key", `{}`, "/payload/agent: agent is missing"},
		{"rotate-key", `{"agent":"coder","overlap":-1}`, "/payload/overlap: overlap must be a whole number from 0 to 9007199254740991"},
		{"revoke-key", `{}`, "/payload/id: id is missing"},
		{"revoke-token", `{"id":" "}`, "/payload/id: id must not be empty"},
		{"issue-registration", `{"ttl":0}`, "/payload/ttl: ttl must be a whole number from 1 to 9007199254740991"},
		{"issue-registration", `{"ttl":31536000001}`, "/payload/ttl: ttl is longer than a year, in milliseconds"},
		{"issue-token", `{}`, "/payload/sub: sub is missing"},
		{"issue-token", `{"sub":"ann","role":"root"}`, `/payload/role: role must be one of admin, operator or viewer, not "root"`},
		{"issue-token", `{"sub":"ann","ttl":31536000001}`, "/payload/ttl: ttl is longer than a year, in milliseconds"},
		{"issue-token", `{"sub":"a\u0000b"}`, "/payload/sub: sub must not have control characters in it"},
		{"issue-token", `{"sub":"ann","overlap":5}`, "/payload/overlap: overlap is of an actor, and does not go with sub"},
		{"issue-token", `{"actor":"GO","sub":"ann"}`, "/payload/sub: sub is of a person, and does not go with actor"},
		{"issue-token", `{"actor":"GO","role":"viewer"}`, "/payload/role: role is of a person, and does not go with actor"},
		{"issue-token", `{"actor":"Bus"}`, `/payload/actor: actor must not be "Bus", which is reserved for the orchestrator`},
		{"issue-token", `{"actor":""}`, `/payload/actor: actor must be GO, HO:host, PO:project, IO:person, W:id or S:kind:id, not ""`},
		{"issue-token", `{"actor":"GO","overlap":-1}`, "/payload/overlap: overlap must be a whole number from 0 to 9007199254740991"},
		{"register-agent", `{"registration_token":"orcreg_x"}`, "/payload/name: name is missing"},
		{"register-agent", `{"name":"attic"}`, "/payload/registration_token: registration_token is missing"},
		{"register-agent", `{"name":"attic","registration_token":"orcreg_x","repos":[]}`, "/payload/repos: repos must be an object"},
		{"register-agent", `{"name":"attic","registration_token":"orcreg_x","capabilities":{"repos":[]}}`, "/payload/capabilities/repos: capabilities.repos must be an object"},
	} {
		_, wrong := readAs(t, test.operation, test.payload)
		require.Equal(t, test.want, wrong, "%s %s", test.operation, test.payload)
	}
}
