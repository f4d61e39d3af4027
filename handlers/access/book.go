package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// The kinds of credential.
const (
	Key          = "key"
	Registration = "registration"
	Token        = "token"
	Actor        = "actor"
)

// A Credential authenticates a caller.
type Credential struct {
	wire.Credential
	Hash    string `json:"hash,omitzero"`    // "" for a person's token
	Revoked bool   `json:"revoked,omitzero"` // of a signed token, which would stay valid until it expires

	until time.Time // zero: for ever
}

// over reports whether a credential has expired.
func (c *Credential) over(at time.Time) bool { return !c.until.IsZero() && !c.until.After(at) }

// KeyOf returns the credential for a key of an agent.
func KeyOf(agent, id, hash string, at time.Time) *Credential {
	return &Credential{Credential: wire.Credential{ID: id, Kind: Key, For: agent, IssuedAt: object.Timestamp(at)}, Hash: hash}
}

// A Book holds all credentials.
type Book struct {
	order  []*Credential // as they were issued
	byHash map[string]*Credential
	byID   map[string]*Credential
	keys   map[string]int // how many each agent has
}

// NewBook returns an empty Book.
func NewBook() Book {
	return Book{byHash: make(map[string]*Credential), byID: make(map[string]*Credential), keys: make(map[string]int)}
}

// Add adds a credential.
func (b *Book) Add(c *Credential) {
	c.until, _ = object.ParseTime(c.ExpiresAt)
	b.order = append(b.order, c)
	b.byID[c.ID] = c
	if c.Kind == Key {
		b.keys[c.For]++
	}
	if c.Hash != "" {
		b.byHash[c.Hash] = c
	}
}

// Remove removes a credential.
func (b *Book) Remove(c *Credential) {
	if c.Kind == Key {
		if b.keys[c.For]--; b.keys[c.For] == 0 {
			delete(b.keys, c.For)
		}
	}
	delete(b.byID, c.ID)
	delete(b.byHash, c.Hash)
	b.order = slices.DeleteFunc(b.order, func(o *Credential) bool { return o == c })
}

// RemoveAll removes the credentials of one kind that a name has.
func (b *Book) RemoveAll(kind, name string) {
	for _, c := range slices.Clone(b.order) {
		if c.Kind == kind && c.For == name {
			b.Remove(c)
		}
	}
}

// maxCredentials is the maximum number of credentials. Expired credentials are removed first.
const maxCredentials = 10_000

// Full returns an error if the book has no room for another credential.
func (b *Book) Full(at time.Time) *wire.Error {
	if len(b.order) < maxCredentials {
		return nil
	}
	valid := 0
	for _, c := range b.order {
		if !c.over(at) {
			valid++
		}
	}
	if valid < maxCredentials {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeLimited, Message: fmt.Sprintf("%d keys and tokens exist: revoke some before you issue more", valid),
		Details: map[string]any{"reason": "too_many_credentials", "credentials": valid},
	}
}

// ByID returns the credential with an id, or nil.
func (b *Book) ByID(id string) *Credential { return b.byID[id] }

// Find returns the valid credential with a hash, or nil. A map lookup is not constant-time, but
// an attacker could use the time only by finding preimages.
func (b *Book) Find(hash, kind string, at time.Time) *Credential {
	c := b.byHash[hash]
	if c == nil || c.Kind != kind || c.over(at) {
		return nil
	}
	return c
}

// Named returns the credential to revoke, which must be of one of the kinds.
func (b *Book) Named(id string, kinds ...string) (*Credential, *wire.Error) {
	if c := b.byID[id]; c != nil && slices.Contains(kinds, c.Kind) && !c.Revoked {
		return c, nil
	}
	return nil, &wire.Error{
		Code: wire.CodeNotFound, Message: fmt.Sprintf("%s %q does not exist", kinds[0], id), Details: map[string]any{"id": id},
	}
}

// List returns the credentials of some kinds that have not expired.
func (b *Book) List(at time.Time, kinds ...string) *wire.CredentialList {
	answer := &wire.CredentialList{Credentials: []wire.Credential{}}
	for _, c := range b.order {
		if slices.Contains(kinds, c.Kind) && !c.over(at) && !c.Revoked {
			answer.Credentials = append(answer.Credentials, c.Credential)
		}
	}
	return answer
}

// All returns all credentials, in the order of their issue.
func (b *Book) All() iter.Seq[*Credential] { return slices.Values(b.order) }

// HasKey reports whether an agent has a key.
func (b *Book) HasKey(agent string) bool { return b.keys[agent] > 0 }

// HasToken reports whether an actor has a token.
func (b *Book) HasToken(actor string) bool {
	return slices.ContainsFunc(b.order, func(c *Credential) bool { return c.Kind == Actor && c.For == actor })
}

// HasOther reports whether the actor of a token has another valid one.
func (b *Book) HasOther(token *Credential, at time.Time) bool {
	return slices.ContainsFunc(b.order, func(c *Credential) bool {
		return c != token && c.Kind == Actor && c.For == token.For && !c.over(at)
	})
}

// Shorten makes the credentials of one kind that a name has expire at a time, unless they expire
// earlier.
func (b *Book) Shorten(kind, name, until string) {
	at, _ := object.ParseTime(until)
	for _, c := range b.order {
		if c.Kind == kind && c.For == name && (c.until.IsZero() || at.Before(c.until)) {
			c.until, c.ExpiresAt = at, until
		}
	}
}

// beyond is how long a revoked token is kept after it has expired, since the check of a token
// tolerates clock skew.
const beyond = time.Minute

// Sweep removes expired credentials, and returns them.
func (b *Book) Sweep(at time.Time) (removed []*Credential) {
	for _, c := range slices.Clone(b.order) {
		if c.over(at) && !(c.Revoked && c.until.Add(beyond).After(at)) {
			b.Remove(c)
			removed = append(removed, c)
		}
	}
	return removed
}

// Hash returns the hash under which a secret is kept.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// idLength is the number of digits of a hash that an id has.
const idLength = 8

// NewKey returns a key that is made of random bytes, with its id and its hash. Only the latter
// two are kept.
func NewKey(random [16]byte) (key, id, hash string) {
	key = wire.KeyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	hash = Hash(key)
	return key, "k" + hash[:idLength], hash
}

// NewToken returns a token for an actor, which has the form of a key.
func NewToken(random [16]byte) (token, id, hash string) {
	token, _, hash = NewKey(random)
	return token, "a" + hash[:idLength], hash
}

// registrationPrefix begins every registration token.
const registrationPrefix = "orcreg_"

// NewRegistration returns a registration token, like NewKey.
func NewRegistration(random [16]byte) (token, id, hash string) {
	token = registrationPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	hash = Hash(token)
	return token, "r" + hash[:idLength], hash
}

// Expiry returns the end of a validity of ttl milliseconds, or of the default if ttl is 0.
func Expiry(at time.Time, ttl int64, otherwise time.Duration) string {
	if ttl == 0 {
		return object.Timestamp(at.Add(otherwise))
	}
	return object.Timestamp(at.Add(time.Duration(ttl) * time.Millisecond))
}
