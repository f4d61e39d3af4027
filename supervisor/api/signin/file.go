package signin

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"orchestrator/wire/identity"
)

// A kept sign-in, as the file has it. The secret itself is only in the browser.
type kept struct {
	Hash  string    `json:"hash"`
	Name  string    `json:"name"`
	Role  string    `json:"role"`
	Token string    `json:"token,omitzero"`
	Until time.Time `json:"until"`
}

// Open reads the sign-ins of the program before this one from a file, and keeps them there from now on. If the file
// cannot be read, nobody is signed in.
func (l *List) Open(path string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = path
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var all []kept
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return fmt.Errorf("reading the sign-ins: %w", err)
	}
	for _, k := range all {
		in := &SignIn{Who: identity.Caller{Kind: identity.Operator, Name: k.Name, Role: k.Role}, Token: k.Token, Until: k.Until}
		hash, err := hex.DecodeString(k.Hash)
		if err != nil || len(hash) != len(in.hash) || k.Role == "" || k.Until.After(now.Add(Time)) { // the file was changed
			continue
		}
		copy(in.hash[:], hash)
		l.browsers = added(l.browsers, now, in)
	}
	return nil
}

// Any reports whether somebody is signed in.
func (l *List) Any(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.browsers {
		if now.Before(in.Until) {
			return true
		}
	}
	return false
}

// keep writes the file. If that fails, the sign-ins end with the program. The lock must be held.
func (l *List) keep() {
	if l.path == "" {
		return
	}
	all := make([]kept, 0, len(l.browsers))
	for _, in := range l.browsers {
		all = append(all, kept{Hash: hex.EncodeToString(in.hash[:]), Name: in.Who.Name, Role: in.Who.Role, Token: in.Token, Until: in.Until})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return
	}
	next := l.path + ".new"
	_ = os.Remove(next) // a killed program may have left it
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, err = file.Write(append(text, '\n'))
	if errors.Join(err, file.Close()) != nil || os.Rename(next, l.path) != nil {
		_ = os.Remove(next)
	}
}
