package wire

import (
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// KeyPrefix begins every agent key, so that people and secret scanners recognize one.
const KeyPrefix = "orc_"

// IssueKey is the payload of issue-key and of rotate-key.
type IssueKey struct {
	// The name of the agent.
	Agent string `json:"agent" schema:"nonblank"`
	// For rotate-key: how long the old keys stay valid, in milliseconds; 0 when it is missing.
	// issue-key ignores it.
	Overlap int64 `json:"overlap,omitzero" schema:"ms=0"`
}

// IssuedKey answers issue-key and rotate-key. The key is not shown again.
type IssuedKey struct {
	// The id of the key, for listing and revoking it.
	ID string `json:"id"`
	// The agent that the key is for.
	Agent string `json:"agent"`
	// The key. It is not shown again.
	Key string `json:"key"`
}

// Revoke is the payload of revoke-key and revoke-token.
type Revoke struct {
	// The id of the key or the token, as list-keys and list-tokens show it.
	ID string `json:"id" schema:"nonblank"`
}

// A Credential describes a key, a registration token or an operator's token. It does not hold
// the secret.
type Credential struct {
	// The id of the credential, for revoking it.
	ID string `json:"id"`
	// The kind of holder: key is for an agent, registration for a server that registers, token for a
	// person, and actor for an actor.
	Kind string `json:"kind" schema:"enum=key|registration|token|actor"`
	// The agent, the person or the actor. It is empty for a registration token that is not used yet.
	For string `json:"for"`
	// The rights of the person.
	Role string `json:"role,omitzero" schema:"enum=wire.PersonRoles"`
	// The only server that may use the registration token.
	Name string `json:"name,omitzero"`
	// When the credential was issued.
	IssuedAt string `json:"issuedAt" schema:"stamp"`
	// When the credential expires; missing if it does not.
	ExpiresAt string `json:"expiresAt,omitzero" schema:"stamp"`
}

// CredentialList answers list-keys and list-tokens, oldest first.
type CredentialList struct {
	Credentials []Credential `json:"credentials"`
}

// IssueRegistration is the payload of issue-registration.
type IssueRegistration struct {
	// The only server that may use the token; any server when it is missing.
	Name string `json:"name,omitzero"`
	// How long the token is valid, in milliseconds, up to a year; a day when it is missing.
	TTL int64 `json:"ttl,omitzero" schema:"ms=1"`
}

// IssuedRegistration answers issue-registration. The token is not shown again.
type IssuedRegistration struct {
	// The id of the token, for revoking it.
	ID string `json:"id"`
	// The token. It is not shown again.
	Token string `json:"token"`
	// When the token expires.
	ExpiresAt string `json:"expiresAt" schema:"stamp"`
}

// Roles of people.
const (
	PersonAdmin    = "admin"
	PersonOperator = "operator"
	PersonViewer   = "viewer" // read-only
)

// PersonRoles lists all roles of people.
var PersonRoles = []string{PersonAdmin, PersonOperator, PersonViewer}

// IssueToken is the payload of issue-token. It requests a token for a person, or for an actor on
// another machine.
type IssueToken struct {
	// The rights of the person. admin and operator may do everything; viewer may only read. The
	// default is operator.
	Role string `json:"role,omitzero" schema:"enum=wire.PersonRoles"`
	// How long the token is valid, in milliseconds, up to a year. The default is eight hours for a
	// person, and no limit for an actor.
	TTL int64 `json:"ttl,omitzero" schema:"ms=1"`
	// The person that the token is for.
	Subject string `json:"sub,omitzero" schema:"own,person"`
	// The actor that the token is for, instead of a person: GO, HO:host, PO:project, IO:person, W:id
	// or S:kind:id.
	Actor string `json:"actor,omitzero" schema:"own,actor"`
	// How long the other tokens of the actor stay valid, in milliseconds; 0 when it is missing.
	Overlap int64 `json:"overlap,omitzero" schema:"own,ms=0"`
}

func (t *IssueToken) read(o *object.Reader) {
	if o.Find("actor") == nil {
		t.Subject = o.NeedText("sub")
		o.NoControls("sub", t.Subject)
		if o.Find("overlap") != nil {
			o.Refuse("overlap", "is of an actor, and does not go with sub")
		}
		return
	}
	t.Actor, t.Overlap = readActor(o, "actor", mail.CheckActor), o.Milliseconds("overlap", 0)
	for _, key := range []string{"sub", "role"} {
		if o.Find(key) != nil {
			o.Refuse(key, "is of a person, and does not go with actor")
		}
	}
}

// IssuedToken answers issue-token. The token of a person is signed later, where the signing key
// is. The token of an actor is not shown again.
type IssuedToken struct {
	// The id of the token, for revoking it.
	ID string `json:"id"`
	// The person that the token is for.
	Subject string `json:"sub,omitzero"`
	// The rights of the person.
	Role string `json:"role,omitzero" schema:"enum=wire.PersonRoles"`
	// The actor that the token is for.
	Actor string `json:"actor,omitzero"`
	// When the token was issued.
	IssuedAt string `json:"issuedAt" schema:"stamp"`
	// When the token expires; missing if it does not.
	ExpiresAt string `json:"expiresAt,omitzero" schema:"stamp"`
	// The token. It is not shown again. The token of a person is missing if it cannot be signed here.
	Token string `json:"token,omitzero"`
}

// The answers.
var (
	answerKey          = &Answer{Name: "key", Of: IssuedKey{}}
	answerCredentials  = &Answer{Name: "credentials", Of: CredentialList{}, About: ", oldest first"}
	answerRegistration = &Answer{Name: "registration", Of: IssuedRegistration{}}
	answerToken        = &Answer{Name: "token", Of: IssuedToken{}}
	answerCredential   = &Answer{Name: "credential", Of: Credential{}}
)

// accessOperations are the operations on credentials.
var accessOperations = []Operation{
	request[IssueKey](Operation{
		Name: "issue-key", Answer: answerKey, Audience: ForOperators, Writes: true,
		Summary:  "Create a key that authenticates a program as an agent; shown once",
		Examples: []string{`{"agent": "coder"}`},
	}),
	request[IssueKey](Operation{
		Name: "rotate-key", Answer: answerKey, Audience: ForOperators, Writes: true,
		Summary:  "Create a new key for an agent; the old ones stay valid for a while",
		Examples: []string{`{"agent": "coder", "overlap": 60000}`, `{"agent": "coder"}`},
	}),
	request[Revoke](Operation{
		Name: "revoke-key", Answer: answerCredential, Audience: ForOperators, Writes: true,
		Summary:  "Revoke a key or a registration token",
		About:    "It is no longer accepted.",
		Examples: []string{`{"id": "k5f0c7a52"}`},
	}),
	request[Nothing](Operation{
		Name: "list-keys", Answer: answerCredentials, Audience: ForOperators,
		Summary:  "List the keys and registration tokens without their secrets",
		About:    "The oldest comes first.",
		Examples: []string{`{}`, ""},
	}),
	request[IssueRegistration](Operation{
		Name: "issue-registration", Answer: answerRegistration, Audience: ForOperators, Writes: true,
		Summary:  "Create a token that registers one server",
		Examples: []string{`{"name": "attic", "ttl": 3600000}`, ""},
	}),
	request[IssueToken](Operation{
		Name: "issue-token", Answer: answerToken, Audience: ForActors, Writes: true, NoSDK: "only GO may request it",
		Rules: []string{
			`"anyOf": [{"required": ["sub"], "properties": {"sub": {"type": "string"}, "actor": {"type": "null"}, "overlap": {"type": "null"}}}, ` +
				`{"required": ["actor"], "properties": {"actor": {"type": "string"}, "sub": {"type": "null"}, "role": {"type": "null"}}}]`,
		},
		Summary: "Create a token for a person or an actor on another machine; shown once. For operators; for GO, tokens of actors only",
		About:   "Give sub for a person, or actor for an actor.",
		HTTP:    []string{"POST /api/agents/tokens"},
		Examples: []string{
			`{"sub": "ann", "role": "viewer", "ttl": 3600000}`,
			`{"sub": "ann"}`,
			`{"actor": "HO:attic", "ttl": 86400000, "overlap": 60000}`,
		},
	}),
	request[Revoke](Operation{
		Name: "revoke-token", Answer: answerCredential, Audience: ForOperators, Writes: true,
		Summary:  "Revoke the token of a person or of an actor",
		About:    "It is no longer accepted.",
		Examples: []string{`{"id": "t5f0c7a52-6c1b-4d0e"}`},
	}),
	request[Nothing](Operation{
		Name: "list-tokens", Answer: answerCredentials, Audience: ForOperators,
		Summary:  "List the tokens of people and of actors",
		About:    "The oldest comes first.",
		Examples: []string{`{}`, ""},
	}),
}
