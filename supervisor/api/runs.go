package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
)

// What a run of an agent finds in its environment.
const (
	EnvSocket = "ORC_SOCKET" // its own unix socket
	EnvToken  = "ORC_TOKEN"  // its own key, for any listener
	EnvURL    = "ORC_URL"    // where the orchestrator listens for others, if it does
)

// Runs lets in the runs of agents, each by a socket of its own and by a token
// that is good as long as it lasts. Tokens are kept as hashes, only in memory:
// there is no use for them after the orchestrator.
type Runs struct {
	// Answer has a socket answered; a Server does. URL is what EnvURL says, ""
	// for nothing. Both are set before Open is called.
	Answer func(net.Listener)
	URL    string

	dir    string
	mu     sync.Mutex
	last   int64
	visits map[[sha256.Size]byte]*runSocket
}

// NewRuns makes the sockets of runs beside that of the operators, which must be
// ours by then: those that an orchestrator has left there which was killed are
// removed.
func NewRuns(operators net.Listener) *Runs {
	r := &Runs{dir: filepath.Dir(operators.Addr().String()), visits: make(map[[sha256.Size]byte]*runSocket)}
	leftBehind := regexp.MustCompile(`^r[0-9a-z]+\.sock$`)
	entries, _ := os.ReadDir(r.dir) // what cannot be seen cannot be removed, and does no harm
	for _, entry := range entries {
		if entry.Type()&fs.ModeSocket != 0 && leftBehind.MatchString(entry.Name()) {
			_ = os.Remove(filepath.Join(r.dir, entry.Name()))
		}
	}
	return r
}

// path is where the next socket is. Its name is as short as that of the
// operators', the path of which is made to fit.
func (r *Runs) path() string {
	r.last++
	return filepath.Join(r.dir, "r"+strconv.FormatInt(r.last, 36)+".sock")
}

// Open lets a run in until shut is called. env is what it is told of that. An
// error says that it has no socket; the rest holds all the same.
func (r *Runs) Open(agent, run string) (env []string, shut func(), err error) {
	v := &runSocket{caller: Caller{Kind: Agent, Name: agent, Run: run}}
	token := newKey()
	hash := sha256.Sum256([]byte(token))
	r.mu.Lock()
	r.visits[hash] = v
	path := r.path()
	r.mu.Unlock()
	env = []string{EnvToken + "=" + token}
	if r.URL != "" {
		env = append(env, EnvURL+"="+r.URL)
	}
	if err = r.listen(path, v); err == nil {
		env = append(env, EnvSocket+"="+path)
	}
	return env, func() {
		r.mu.Lock()
		delete(r.visits, hash)
		r.mu.Unlock()
		v.end()
	}, err
}

var errNobodyAnswers = errors.New("sockets are not served here")

// listen opens the socket of a visit, which removes it when it ends.
func (r *Runs) listen(path string, v *runSocket) error {
	if r.Answer == nil {
		return errNobodyAnswers
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("opening its socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return fmt.Errorf("closing its socket to others: %w", err)
	}
	if _, ok := v.keep(func() { _ = listener.Close() }); !ok {
		_ = listener.Close()
		return net.ErrClosed
	}
	r.Answer(&ownSocket{Socket: *newSocket(listener, nil), visit: v})
	return nil
}

// visit is the run that a token is of, nil if it is of none.
func (r *Runs) visit(token string) *runSocket {
	if r == nil {
		return nil
	}
	hash := sha256.Sum256([]byte(token))
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.visits[hash]
}

// newKey is a key that cannot be guessed.
func newKey() string {
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // it does not fail: the program would end
	return KeyPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
}
