package wire

// KeyPrefix is what the keys of agents begin with, so that a person, and a
// scanner of repositories, knows one when it sees it.
const KeyPrefix = "orc_"

// IssueKey is the payload of issue-key and of rotate-key.
type IssueKey struct {
	Agent   string `json:"agent"`
	Overlap int64  `json:"overlap,omitzero"` // of rotate-key: milliseconds for which the old keys still hold
}

// readIssueKey reads an IssueKey.
func readIssueKey(o *Object) *IssueKey {
	return &IssueKey{Agent: o.NeedText("agent"), Overlap: o.milliseconds("overlap", 0)}
}

// IssuedKey answers issue-key and rotate-key. It is the only time that the key
// is told.
type IssuedKey struct {
	ID    string `json:"id"` // of the key, for listing and revoking it
	Agent string `json:"agent"`
	Key   string `json:"key"`
}

// Revoke is the payload of revoke-key and revoke-token.
type Revoke struct {
	ID string `json:"id"`
}

// readRevoke reads a Revoke.
func readRevoke(o *Object) *Revoke { return &Revoke{ID: o.NeedText("id")} }

// Credential is a key, a registration token or an operator's token, without what
// is secret about it.
type Credential struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`          // key | registration | token | actor
	For       string `json:"for"`           // an agent, a person, or an actor; "" while none has registered with it
	Role      string `json:"role,omitzero"` // of a person
	Name      string `json:"name,omitzero"` // of the only server that may register with it
	IssuedAt  string `json:"issuedAt"`
	ExpiresAt string `json:"expiresAt,omitzero"`
}

// CredentialList answers list-keys and list-tokens, oldest first.
type CredentialList struct {
	Credentials []Credential `json:"credentials"`
}

// IssueRegistration is the payload of issue-registration.
type IssueRegistration struct {
	Name string `json:"name,omitzero"` // the only server that may use it; "": any that has it
	TTL  int64  `json:"ttl,omitzero"`  // milliseconds; a day when it is missing
}

// readIssueRegistration reads an IssueRegistration.
func readIssueRegistration(o *Object) *IssueRegistration {
	return &IssueRegistration{Name: o.Text("name"), TTL: o.milliseconds("ttl", 1)}
}

// IssuedRegistration answers issue-registration. It is the only time that the
// token is told.
type IssuedRegistration struct {
	ID        string `json:"id"`
	Token     string `json:"token"`
	ExpiresAt string `json:"expiresAt"`
}

// Roles of people.
const (
	PersonAdmin    = "admin"
	PersonOperator = "operator"
	PersonViewer   = "viewer" // may look, and nothing else
)

// PersonRoles are all roles of people.
var PersonRoles = []string{PersonAdmin, PersonOperator, PersonViewer}

// IssueToken is the payload of issue-token: a token for a person, or one for an
// actor who comes from elsewhere.
type IssueToken struct {
	Subject string `json:"sub,omitzero"`
	Role    string `json:"role,omitzero"` // of a person; operator when it is missing
	TTL     int64  `json:"ttl,omitzero"`  // milliseconds; missing: eight hours for a person, for ever for an actor

	Actor   string `json:"actor,omitzero"`
	Overlap int64  `json:"overlap,omitzero"` // of an actor: milliseconds for which those that it has still hold
}

// ReadIssueToken reads an IssueToken.
func ReadIssueToken(o *Object) *IssueToken {
	t := &IssueToken{Role: o.OneOf("role", PersonRoles...), TTL: o.milliseconds("ttl", 1)}
	if o.find("actor") == nil {
		t.Subject = o.NeedText("sub")
		o.needPlain("sub", t.Subject)
		if o.find("overlap") != nil {
			o.Refuse("overlap", "is of an actor, and does not go with sub")
		}
		return t
	}
	t.Actor, t.Overlap = o.actor("actor", CheckActor), o.milliseconds("overlap", 0)
	for _, key := range []string{"sub", "role"} {
		if o.find(key) != nil {
			o.Refuse(key, "is of a person, and does not go with actor")
		}
	}
	return t
}

// IssuedToken answers issue-token. A person's is signed where the key is; an
// actor's is told this once.
type IssuedToken struct {
	ID        string `json:"id"`
	Subject   string `json:"sub,omitzero"`
	Role      string `json:"role,omitzero"`
	Actor     string `json:"actor,omitzero"`
	IssuedAt  string `json:"issuedAt"`
	ExpiresAt string `json:"expiresAt,omitzero"`
	Token     string `json:"token,omitzero"`
}
