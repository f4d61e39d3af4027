package access

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// issued returns a book with two keys of an agent, the first of which expires after a minute, and
// a token of a person.
func issued() (b Book, first, second, token *Credential) {
	b = NewBook()
	first, second = KeyOf("coder", "k1", Hash("one"), noon), KeyOf("coder", "k2", Hash("two"), noon)
	b.Add(first)
	b.Shorten(Key, "coder", object.Timestamp(noon.Add(time.Minute)))
	b.Add(second)
	token = &Credential{Credential: wire.Credential{ID: "t1", Kind: Token, For: "ann", ExpiresAt: object.Timestamp(noon.Add(time.Hour))}}
	b.Add(token)
	return b, first, second, token
}

// TestFind checks that a credential is found only by its secret, as its kind, and until it
// expires.
func TestFind(t *testing.T) {
	b, first, second, _ := issued()
	late := noon.Add(time.Minute)
	require.Same(t, first, b.Find(Hash("one"), Key, noon))
	require.Nil(t, b.Find(Hash("one"), Key, late))
	require.Same(t, second, b.Find(Hash("two"), Key, late))
	require.Nil(t, b.Find(Hash("two"), Actor, noon))
	require.Nil(t, b.Find(Hash("three"), Key, noon))
	require.Nil(t, b.Find("", Token, noon), "a person's token has no hash")
}

// TestSweep checks that expired credentials are removed. A revoked token is kept for some time.
func TestSweep(t *testing.T) {
	b, first, second, token := issued()
	require.Equal(t, []*Credential{first}, b.Sweep(noon.Add(time.Minute)))
	require.True(t, b.HasKey("coder"))
	token.Revoked = true
	require.Empty(t, b.Sweep(noon.Add(time.Hour)))
	require.Equal(t, []*Credential{token}, b.Sweep(noon.Add(time.Hour+beyond)))
	b.RemoveAll(Key, "coder")
	require.False(t, b.HasKey("coder"))
	require.Nil(t, b.ByID(second.ID))
	require.Empty(t, b.order)
}

// TestNamed checks which credentials can be revoked.
func TestNamed(t *testing.T) {
	b, _, second, token := issued()
	c, err := b.Named("k2", Key, Registration)
	require.Nil(t, err)
	require.Same(t, second, c)
	_, err = b.Named("k2", Token, Actor)
	require.Equal(t, wire.CodeNotFound, err.Code)
	require.Equal(t, `token "k2" does not exist`, err.Message)
	token.Revoked = true
	_, err = b.Named("t1", Token)
	require.NotNil(t, err)
	require.Len(t, b.List(noon, Key, Token).Credentials, 2)
}

// TestActor checks the tokens of an actor.
func TestActor(t *testing.T) {
	b := NewBook()
	one := &Credential{Credential: wire.Credential{ID: "a1", Kind: Actor, For: "PO:one"}, Hash: Hash("one")}
	two := &Credential{Credential: wire.Credential{ID: "a2", Kind: Actor, For: "PO:one"}, Hash: Hash("two")}
	require.False(t, b.HasToken("PO:one"))
	b.Add(one)
	require.True(t, b.HasToken("PO:one"))
	require.False(t, b.HasOther(one, noon))
	b.Add(two)
	require.True(t, b.HasOther(one, noon))
}

// TestSecrets checks that a secret is not its hash, and that each kind has its form.
func TestSecrets(t *testing.T) {
	key, id, hash := NewKey([16]byte{1})
	require.True(t, strings.HasPrefix(key, wire.KeyPrefix))
	require.Equal(t, Hash(key), hash)
	require.Equal(t, "k"+hash[:8], id)
	require.NotContains(t, hash, key)
	token, id, _ := NewRegistration([16]byte{1})
	require.True(t, strings.HasPrefix(token, "orcreg_") && strings.HasPrefix(id, "r"))
	require.Equal(t, object.Timestamp(noon.Add(time.Hour)), Expiry(noon, 0, time.Hour))
	require.Equal(t, object.Timestamp(noon.Add(time.Second)), Expiry(noon, 1000, time.Hour))
}

// TestFull checks that the number of credentials is bounded, and that expired ones do not count.
func TestFull(t *testing.T) {
	b, _, _, _ := issued()
	for b.Full(noon) == nil {
		b.Add(KeyOf("coder", "k", Hash("many"), noon))
	}
	require.Len(t, b.order, maxCredentials)
	require.Equal(t, wire.CodeLimited, b.Full(noon).Code)
	require.Nil(t, b.Full(noon.Add(time.Minute)), "one has expired")
}
