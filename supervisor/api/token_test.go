package api

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// claims returns the claims of a token that is valid for an hour from noon.
func claims() Claims {
	return Claims{ID: "t1", Subject: "ann", Role: wire.PersonOperator, IssuedAt: noon, ExpiresAt: noon.Add(time.Hour)}
}

func signer(t *testing.T) *Signer { return &Signer{Path: filepath.Join(t.TempDir(), "jwt.key")} }

// issued are Tokens that were recorded as they are, if they were issued.
type issued func(id string) bool

func (f issued) TokenIssued(id string) bool                   { return f(id) }
func (issued) TokenRecorded(_, _, _ string, _ time.Time) bool { return true }

// recorded is the only token.
type recorded Claims

func (recorded) TokenIssued(string) bool { return true }

func (r recorded) TokenRecorded(id, subject, role string, end time.Time) bool {
	return id == r.ID && subject == r.Subject && role == r.Role && end.Equal(r.ExpiresAt)
}

func TestTokenIsKnownAgain(t *testing.T) {
	s := signer(t)
	want := claims()
	want.NotBefore = noon
	text, err := s.Sign(want)
	require.NoError(t, err)
	got, err := (&Signer{Path: s.Path}).Verify(text, noon.Add(time.Minute))
	require.NoError(t, err, "by whoever has the key")
	require.True(t, got.ExpiresAt.Equal(want.ExpiresAt) && got.IssuedAt.Equal(noon) && got.NotBefore.Equal(noon))
	require.Equal(t, [3]string{"t1", "ann", "operator"}, [3]string{got.ID, got.Subject, got.Role})

	s.Tokens = issued(func(id string) bool { return id != "t1" })
	_, err = s.Verify(text, noon)
	require.ErrorContains(t, err, "revoked")
	s.Tokens = nil
	for name, forge := range map[string]func(*Claims){
		"as it was issued": func(*Claims) {},
		"another id":       func(c *Claims) { c.ID = "t2" },
		"another subject":  func(c *Claims) { c.Subject = "bob" },
		"another role":     func(c *Claims) { c.Role = wire.PersonAdmin },
		"another end":      func(c *Claims) { c.ExpiresAt = c.ExpiresAt.Add(time.Hour) },
	} {
		said := claims()
		forge(&said)
		text, err := s.Sign(said)
		require.NoError(t, err)
		s.Tokens = recorded(claims())
		_, err = s.Verify(text, noon)
		require.Equal(t, name == "as it was issued", err == nil, name)
	}
}

func TestTokenThatIsNotSigned(t *testing.T) {
	for name, change := range map[string]func(*Claims){
		"no id":        func(c *Claims) { c.ID = "" },
		"no subject":   func(c *Claims) { c.Subject = "" },
		"no role":      func(c *Claims) { c.Role = "" },
		"another role": func(c *Claims) { c.Role = "king" },
		"no end":       func(c *Claims) { c.ExpiresAt = time.Time{} },
	} {
		c := claims()
		change(&c)
		_, err := signer(t).Sign(c)
		require.ErrorIs(t, err, errClaims, name)
	}
}

// forged makes a token by hand, with any claims.
func forged(t *testing.T, method jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
	t.Helper()
	said := jwt.MapClaims{
		"iss": tokenIssuer, "aud": tokenAudience, "jti": "t1", "sub": "ann", "role": "admin", "exp": noon.Add(time.Hour).Unix(),
	}
	if change != nil {
		change(said)
	}
	text, err := jwt.NewWithClaims(method, said).SignedString(key)
	require.NoError(t, err)
	return text
}

// tampered returns a token with one part replaced.
func tampered(text string, part int, content string) string {
	parts := strings.Split(text, ".")
	parts[part] = base64.RawURLEncoding.EncodeToString([]byte(content))
	return strings.Join(parts, ".")
}

// TestTokenThatIsWrong checks that every invalid token has the same outcome.
//
// Rows.
func TestTokenThatIsWrong(t *testing.T) {
	s := signer(t)
	require.NoError(t, s.Ready())
	public, ok := s.key.Public().(ed25519.PublicKey)
	require.True(t, ok)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	_, other, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	by := func(change func(jwt.MapClaims)) string { return forged(t, jwt.SigningMethodEdDSA, s.key, change) }
	set := func(claim string, value any) string { return by(func(c jwt.MapClaims) { c[claim] = value }) }
	drop := func(claim string) string { return by(func(c jwt.MapClaims) { delete(c, claim) }) }
	good := by(nil)
	_, err = s.Verify(good, noon)
	require.NoError(t, err, "what the others are changed from is good")

	for name, text := range map[string]string{
		"nothing":                  "",
		"garbage":                  "garbage",
		"dots":                     "..",
		"many dots":                strings.Repeat(".", 5000),
		"no base64":                "!!!.???.***",
		"no JSON":                  tampered(good, 0, "{"),
		"other claims":             tampered(good, 1, `{"iss":"orchestrator","aud":"orchestrator","jti":"t1","sub":"eve","role":"admin","exp":99999999999}`),
		"other signature":          tampered(good, 2, strings.Repeat("x", ed25519.SignatureSize)),
		"no signature":             good[:strings.LastIndex(good, ".")+1],
		"one part more":            good + ".x",
		"space in it":              good[:10] + " " + good[10:],
		"alg none":                 forged(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"alg none, our signature":  tampered(good, 0, `{"alg":"none","typ":"JWT"}`),
		"alg unknown":              tampered(good, 0, `{"alg":"HAL9000","typ":"JWT"}`),
		"alg missing":              tampered(good, 0, `{"typ":"JWT"}`),
		"HS256 by the public key":  forged(t, jwt.SigningMethodHS256, []byte(public), nil),
		"HS256 by the public DER":  forged(t, jwt.SigningMethodHS256, der, nil),
		"HS256 by the public PEM":  forged(t, jwt.SigningMethodHS256, publicPEM, nil),
		"HS512 by the public key":  forged(t, jwt.SigningMethodHS512, []byte(public), nil),
		"another key":              forged(t, jwt.SigningMethodEdDSA, other, nil),
		"expired":                  set("exp", noon.Add(-time.Minute).Unix()),
		"expired before the world": set("exp", -1),
		"not yet valid":            set("nbf", noon.Add(time.Minute).Unix()),
		"no exp":                   drop("exp"),
		"exp is null":              set("exp", nil),
		"exp is text":              set("exp", "tomorrow"),
		"other audience":           set("aud", "elsewhere"),
		"no audience":              drop("aud"),
		"other issuer":             set("iss", "elsewhere"),
		"no issuer":                drop("iss"),
		"no jti":                   drop("jti"),
		"empty jti":                set("jti", ""),
		"no sub":                   drop("sub"),
		"sub is a number":          set("sub", 1),
		"no role":                  drop("role"),
		"other role":               set("role", "root"),
		"huge":                     set("sub", strings.Repeat("x", maxTokenLength)),
		"huge and garbage":         strings.Repeat("x", 1<<20),
	} {
		_, err := s.Verify(text, noon)
		refusal, ok := err.(*wire.Error)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, wire.CodeUnauthenticated, refusal.Code, name)
	}
}

// TestTokenAtItsEnds checks that clocks may differ by the leeway, and no more.
func TestTokenAtItsEnds(t *testing.T) {
	s := signer(t)
	c := claims()
	c.NotBefore = noon
	text, err := s.Sign(c)
	require.NoError(t, err)
	for at, good := range map[time.Time]bool{
		noon.Add(-leeway - time.Second):            false,
		noon.Add(-leeway + time.Second):            true,
		c.ExpiresAt.Add(leeway - time.Second):      true,
		c.ExpiresAt.Add(leeway + time.Millisecond): false,
	} {
		_, err := s.Verify(text, at)
		require.Equal(t, good, err == nil, "%v: %v", at, err)
	}
}

func TestKeyOfTokens(t *testing.T) {
	s := signer(t)
	require.NoError(t, s.Ready())
	info, err := os.Stat(s.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(s.Path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing of the making is left")

	require.NoError(t, os.Chmod(s.Path, 0o640))
	again := &Signer{Path: s.Path}
	require.ErrorContains(t, again.Ready(), "chmod 600")
	_, err = again.Verify("x.y.z", noon)
	_, refusal := err.(*wire.Error)
	require.False(t, refusal, "it is nobody's fault but ours: %v", err)
	require.NoError(t, os.Chmod(s.Path, 0o600))
	require.NoError(t, again.Ready(), "what was wrong has been put right")
	require.Equal(t, s.key, again.key)

	for text, says := range map[string]string{"": "is not a PEM key", "-----BEGIN X-----\n-----END X-----\n": "is not an Ed25519 key"} {
		require.NoError(t, os.WriteFile(s.Path, []byte(text), 0o600))
		require.ErrorContains(t, (&Signer{Path: s.Path}).Ready(), says)
	}
	require.ErrorContains(t, (&Signer{Path: filepath.Dir(s.Path)}).Ready(), "is not a file")
	require.Error(t, (&Signer{Path: filepath.Join(s.Path, "below", "a file")}).Ready())
}

// TestKeyIsMadeOnce checks that concurrent first uses of a signer share one key.
func TestKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwt.key")
	var signers [16]Signer
	var group sync.WaitGroup
	for i := range signers {
		signers[i].Path = path
		group.Go(func() { _ = signers[i].Ready() })
	}
	group.Wait()
	for i := range signers {
		require.NotNil(t, signers[i].key)
		require.Equal(t, signers[0].key, signers[i].key)
	}
}
