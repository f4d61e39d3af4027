// Package signin keeps who has signed in to the web view with a browser.
//
// A person gets a code, which holds once and for a short time. A browser that has the code gets a secret,
// which it sends in a cookie. Both are kept as hashes. Codes end with the program. Sign-ins are also in a file, so
// that an open page goes on after a restart. HTTP is the business of package api.
package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"orchestrator/wire/identity"
)

// Bounds of sign-ins.
const (
	CodeTime = 2 * time.Minute  // how long a code holds
	PageTime = 10 * time.Second // how long a code in a page for the browser holds
	Time     = 12 * time.Hour   // how long a sign-in holds
	maxKept  = 100              // browsers, and as many codes; the oldest goes
)

// A List has the people who have signed in, and the codes that sign one in. The zero value is empty and has no
// file.
type List struct {
	mu       sync.Mutex
	path     string    // of the file; "": no file
	codes    []*SignIn // oldest first
	browsers []*SignIn // oldest first
}

// A SignIn is a person at one browser.
type SignIn struct {
	Who   identity.Caller
	Token string    // the id of the token that requested the code, or ""
	Until time.Time // when it ends

	most time.Time         // when that token expires; zero: never
	hash [sha256.Size]byte // of the secret; of an invitation, of the code
}

// ID returns the id of a sign-in for the audit.
func (s *SignIn) ID() string { return "s" + hex.EncodeToString(s.hash[:4]) }

// Invite returns a code that signs a person in once. If a token was used to request it, the sign-in ends
// with that token.
func (l *List) Invite(who identity.Caller, token string, most, now time.Time, holds time.Duration) string {
	code := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.codes = added(l.codes, now, &SignIn{Who: who, Token: token, most: most, Until: now.Add(holds), hash: sha256.Sum256([]byte(code))})
	return code
}

// Use signs in with a code, which is then used up, and returns the secret for the browser. It returns nil if the code
// does not hold.
func (l *List) Use(code string, now time.Time) (secret string, in *SignIn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := place(l.codes, code, now)
	if i < 0 {
		return "", nil
	}
	invited := *l.codes[i]
	l.codes = slices.Delete(l.codes, i, i+1)
	secret = rand.Text()
	invited.hash, invited.Until = sha256.Sum256([]byte(secret)), now.Add(Time)
	if !invited.most.IsZero() && invited.most.Before(invited.Until) {
		invited.Until = invited.most
	}
	l.browsers = added(l.browsers, now, &invited)
	l.keep()
	return secret, &invited
}

// Of returns the sign-in of a secret, or nil.
func (l *List) Of(secret string, now time.Time) *SignIn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := place(l.browsers, secret, now); i >= 0 {
		return l.browsers[i]
	}
	return nil
}

// Holds reports whether a sign-in was not ended.
func (l *List) Holds(in *SignIn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.browsers, in)
}

// End ends a sign-in.
func (l *List) End(in *SignIn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.browsers = slices.DeleteFunc(l.browsers, func(other *SignIn) bool { return other == in })
	l.keep()
}

// added appends to a list, and removes expired sign-ins, and the oldest if the list is full.
func added(list []*SignIn, now time.Time, in *SignIn) []*SignIn {
	list = slices.DeleteFunc(list, func(other *SignIn) bool { return !now.Before(other.Until) })
	if len(list) >= maxKept {
		list = slices.Delete(list, 0, len(list)-maxKept+1)
	}
	return append(list, in)
}

// place returns where a text is in a list, or -1 if it is not there or has expired. Hashes are compared, so the time
// that it takes reveals no part of the text.
func place(list []*SignIn, text string, now time.Time) int {
	hash := sha256.Sum256([]byte(text))
	return slices.IndexFunc(list, func(in *SignIn) bool { return in.hash == hash && now.Before(in.Until) })
}
