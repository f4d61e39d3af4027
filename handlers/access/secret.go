package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

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
