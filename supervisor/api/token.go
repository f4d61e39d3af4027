package api

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"orchestrator/wire"
)

// Constants of operators' tokens.
const (
	tokenIssuer    = "orchestrator"
	tokenAudience  = "orchestrator"
	maxTokenLength = 8 << 10
	// leeway is the tolerated difference between clocks.
	leeway = 5 * time.Second
)

// Claims are the contents of an operator's token.
type Claims struct {
	ID        string // of the token; used to revoke it
	Subject   string // the operator
	Role      string // wire.PersonAdmin and so on
	IssuedAt  time.Time
	NotBefore time.Time // zero: at once
	ExpiresAt time.Time
}

// Tokens knows the operators' tokens that were issued.
type Tokens interface {
	// TokenIssued reports whether a token was issued, and was not revoked.
	TokenIssued(id string) bool
	// TokenRecorded reports whether a token was issued to this subject, in this role and with this end. So whoever
	// reads the key cannot give a token other rights.
	TokenRecorded(id, subject, role string, end time.Time) bool
}

// A Signer creates and verifies tokens of operators. A token is a JWT, signed with the Ed25519
// key in the file Path, which is created when first needed. Removing or replacing the file invalidates
// all tokens at once.
type Signer struct {
	Path   string
	Seed   []byte // the 32 bytes of a key that several hubs share, instead of Path
	Tokens Tokens // nil: all tokens with a valid signature were issued

	mu   sync.Mutex
	key  ed25519.PrivateKey
	file os.FileInfo // the file that key was read from
}

// spelled is the JSON form of Claims.
type spelled struct {
	jwt.RegisteredClaims
	Role string `json:"role"`
}

var errClaims = errors.New("a token wants an id, a subject, a role that there is, and an end")

// Sign returns a signed token.
func (s *Signer) Sign(c Claims) (string, error) {
	if !c.whole() || c.ExpiresAt.IsZero() {
		return "", errClaims
	}
	key, err := s.open()
	if err != nil {
		return "", err
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &spelled{Role: c.Role, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: tokenIssuer, Audience: jwt.ClaimStrings{tokenAudience},
		ID: c.ID, Subject: c.Subject, IssuedAt: date(c.IssuedAt), NotBefore: date(c.NotBefore), ExpiresAt: date(c.ExpiresAt),
	}}).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text, nil
}

// Verify checks a token at a time and returns its claims. A *wire.Error describes a fault of
// the token; any other error is internal.
func (s *Signer) Verify(text string, now time.Time) (Claims, error) {
	if len(text) > maxTokenLength {
		return Claims{}, unauthenticated(fmt.Sprintf("the token is longer than %d bytes", maxTokenLength), showToken)
	}
	key, err := s.open()
	if err != nil {
		return Claims{}, err
	}
	var said spelled
	_, err = jwt.ParseWithClaims(text, &said, func(*jwt.Token) (any, error) { return key.Public(), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithIssuer(tokenIssuer), jwt.WithAudience(tokenAudience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(func() time.Time { return now }))
	c := said.claims()
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Claims{}, unauthenticated("the token has expired", showToken)
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return Claims{}, unauthenticated("the token is not valid yet", "Check the clocks")
	case err != nil, !c.whole():
		return Claims{}, unauthenticated("the token was not issued by this orchestrator", showToken)
	case s.Tokens != nil && (!s.Tokens.TokenIssued(c.ID) || !s.Tokens.TokenRecorded(c.ID, c.Subject, c.Role, c.ExpiresAt)):
		return Claims{}, unauthenticated("the token was not issued here, or was revoked", showToken)
	}
	return c, nil
}

// Ready creates the key if necessary. It returns an error if the key cannot be used.
func (s *Signer) Ready() error {
	_, err := s.open()
	return err
}

// open returns the key. It reads the file again after an error, and when the file is another one.
func (s *Signer) open() (ed25519.PrivateKey, error) {
	if s.Seed != nil {
		return ed25519.NewKeyFromSeed(s.Seed), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := os.Stat(s.Path)
	if err == nil && s.key != nil && os.SameFile(now, s.file) && now.ModTime().Equal(s.file.ModTime()) {
		return s.key, nil
	}
	s.key = nil
	key, file, err := openKey(s.Path)
	if err != nil {
		return nil, err
	}
	s.key, s.file = key, file
	return s.key, nil
}

// whole reports whether claims name a token, an operator and a role.
func (c *Claims) whole() bool {
	return c.ID != "" && c.Subject != "" && slices.Contains(wire.PersonRoles, c.Role)
}

func (s *spelled) claims() Claims {
	return Claims{
		ID: s.ID, Subject: s.Subject, Role: s.Role,
		IssuedAt: day(s.IssuedAt), NotBefore: day(s.NotBefore), ExpiresAt: day(s.ExpiresAt),
	}
}

// date converts a time to its JSON form and day converts it back; the zero time is nil.
func date(at time.Time) *jwt.NumericDate {
	if at.IsZero() {
		return nil
	}
	return jwt.NewNumericDate(at)
}

func day(d *jwt.NumericDate) time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.Time
}

// The key is a PKCS#8 file in PEM, as openssl writes it. A user who can read it can create
// tokens, so other users must not have access.

// openKey reads the key, or creates it if it does not exist. If two processes create it at once, both use the first
// one.
func openKey(path string) (ed25519.PrivateKey, os.FileInfo, error) {
	key, file, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, file, err
	}
	if err := makeKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("making the key of the tokens: %w", err)
	}
	return readKey(path)
}

// keySize bounds the size of a key file.
const keySize = 16 << 10

func readKey(path string) (ed25519.PrivateKey, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key of the tokens: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("reading the key of the tokens: %w", err)
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, nil, fmt.Errorf("%s can be read by other users, who could create tokens with it (chmod 600 closes it to them)", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, keySize))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key of the tokens: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, fmt.Errorf("%s is not a PEM key; if you remove it, a new one is created", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, nil, fmt.Errorf("%s is not an Ed25519 key; if you remove it, a new one is created", path)
	}
	return key, info, nil
}

// makeKey creates a key file atomically. It returns fs.ErrExist if there is one.
func makeKey(path string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".key-*") // created with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Link(file.Name(), path)
}
