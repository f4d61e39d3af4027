package api

import (
	"context"
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
	"slices"
	"strconv"
	"sync"

	"orchestrator/wire/identity"
)

// Environment variables of a run.
const (
	EnvSocket = "ORC_SOCKET" // the run's own unix socket
	EnvToken  = "ORC_TOKEN"  // the run's own key, for any listener
	EnvURL    = "ORC_URL"    // the URL of the TCP listener, if there is one
)

// Runs admits running agents, each by its own socket and token. A token is valid until the run
// ends. Only hashes of tokens are stored, in memory, because tokens do not outlive the
// orchestrator.
type Runs struct {
	// Answer serves a listener, as Server.Await does. URL is the value of EnvURL, or "". Set
	// both before calling Open.
	Answer func(net.Listener) (forget func())
	URL    string
	Trace  Trace // see Socket
	// Connections returns how many connections the socket of a run of an agent takes; nil: MostOfRun.
	Connections func(agent string) int
	// UserDir returns the folder for the sockets of runs of other users, which they can enter.
	UserDir func() (string, error)

	dir    string
	mu     sync.Mutex
	last   int64
	visits map[[sha256.Size]byte]*runSocket
	handed map[string]HandedRun // by run: the sockets and tokens of runs of the program before this one
}

// NewRuns creates the sockets of runs in the folder of the operators' socket, which must be
// open. It removes sockets that a killed orchestrator has left there, but none of the handed runs.
func NewRuns(operators net.Listener, handed ...HandedRun) *Runs {
	r := &Runs{dir: filepath.Dir(operators.Addr().String()), visits: make(map[[sha256.Size]byte]*runSocket)}
	r.TakeOver(handed)
	leftBehind := regexp.MustCompile(`^r[0-9a-z]+\.sock$`)
	entries, _ := os.ReadDir(r.dir) // unreadable leftovers do no harm
	for _, entry := range entries {
		path := filepath.Join(r.dir, entry.Name())
		kept := slices.ContainsFunc(handed, func(h HandedRun) bool { return h.Path == path })
		if entry.Type()&fs.ModeSocket != 0 && leftBehind.MatchString(entry.Name()) && !kept {
			_ = os.Remove(path)
		}
	}
	return r
}

// path returns the path of the next socket of a user. Its name is not longer than the name of the operators' socket,
// because the path of that is known to fit.
func (r *Runs) path(uid int) (path string, err error) {
	dir := r.dir
	if uid != 0 {
		if r.UserDir == nil {
			return "", errNobodyAnswers
		}
		if dir, err = r.UserDir(); err != nil {
			return "", fmt.Errorf("making the folder of its socket: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return filepath.Join(dir, "r"+strconv.FormatInt(r.last, 36)+".sock"), nil
}

// Open admits a run until shut is called, and returns the variables for its environment. An error means that the run
// has no socket; its token works all the same. The processes of the run belong to the user uid, or, if that is 0, to
// the user of this process.
func (r *Runs) Open(agent, run string, uid int) (env []string, shut func(), err error) {
	v := &runSocket{caller: identity.Caller{Kind: identity.Agent, Name: agent, Run: run}, uid: uid}
	if h, ok := r.handed[run]; ok {
		return r.goOn(h, v)
	}
	token := newKey()
	hash := sha256.Sum256([]byte(token))
	r.mu.Lock()
	r.visits[hash] = v
	r.mu.Unlock()
	env = []string{EnvToken + "=" + token}
	if r.URL != "" {
		env = append(env, EnvURL+"="+r.URL)
	}
	if err = r.listen(v); err == nil {
		env = append(env, EnvSocket+"="+v.path)
	}
	return env, func() { r.leave(hash, v) }, err
}

// goOn admits a run of the program before this one. Its environment has all variables already.
func (r *Runs) goOn(h HandedRun, v *runSocket) (env []string, shut func(), err error) {
	hash, err := r.reopen(h, v)
	r.mu.Lock()
	delete(r.handed, h.Run)
	r.visits[hash] = v
	r.mu.Unlock()
	return nil, func() { r.leave(hash, v) }, err
}

// leave ends the access of a run.
func (r *Runs) leave(hash [sha256.Size]byte, v *runSocket) {
	r.mu.Lock()
	delete(r.visits, hash)
	r.mu.Unlock()
	v.end()
}

var errNobodyAnswers = errors.New("sockets are not served here")

// listen opens the socket of a run. The socket is removed when it is closed.
func (r *Runs) listen(v *runSocket) error {
	if r.Answer == nil {
		return errNobodyAnswers
	}
	path, err := r.path(v.uid)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("opening its socket: %w", err)
	}
	if err = os.Chmod(path, 0o600); err == nil && v.uid != 0 {
		err = os.Lchown(path, v.uid, -1) // only this user can change the folder
	}
	if err != nil {
		_ = listener.Close()
		return fmt.Errorf("closing its socket to others: %w", err)
	}
	return r.answer(listener, path, v)
}

// answer serves the socket of a run.
func (r *Runs) answer(listener net.Listener, path string, v *runSocket) error {
	if _, ok := v.keep(func() { _ = listener.Close() }); !ok {
		_ = listener.Close()
		return net.ErrClosed
	}
	socket := &ownSocket{
		Socket: *newSocket(listener, nil), visit: v,
		connLimiter: &connLimiter{what: "the socket of " + displayName(v.caller), most: func() (each, all int) {
			most := MostOfRun
			if r.Connections != nil {
				most = r.Connections(v.caller.Name)
			}
			return most, most
		}},
	}
	socket.Trace, socket.guest = r.Trace, v.uid
	v.path, v.listener = path, socket
	forget := r.Answer(socket)
	if _, ok := v.keep(forget); !ok {
		forget()
	}
	return nil
}

// agentOf returns the agent of a run, or "".
func (r *Runs) agentOf(run string) string {
	if r == nil || run == "" {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.visits {
		if v.caller.Run == run {
			return v.caller.Name
		}
	}
	return ""
}

// visit returns the run that a token belongs to, or nil.
func (r *Runs) visit(token string) *runSocket {
	if r == nil {
		return nil
	}
	hash := sha256.Sum256([]byte(token))
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.visits[hash]
}

// newKey returns a random key.
func newKey() string {
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // it does not fail: the program would end
	return KeyPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
}

// runSocket is the identity of a run with all its open connections and requests. They end with
// the run, so that no leftover process can act as its agent.
type runSocket struct {
	caller   identity.Caller
	uid      int          // the user of its processes; 0: the user of this process
	path     string       // of its socket
	listener net.Listener // nil without a socket

	mu   sync.Mutex
	over bool
	open map[*opened]bool
}

// opened is a listener, connection or request of a run.
type opened struct{ close func() }

// is reports whether a caller is this run, or its agent with a key for any run.
func (r *runSocket) is(c identity.Caller) bool {
	return c.Kind == r.caller.Kind && c.Name == r.caller.Name && (c.Run == "" || c.Run == r.caller.Run)
}

// keep registers a function to call at the end of the run. It returns false if the run has
// ended.
func (r *runSocket) keep(shut func()) (*opened, bool) {
	o := &opened{close: shut}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false
	}
	if r.open == nil {
		r.open = make(map[*opened]bool, 1)
	}
	r.open[o] = true
	return o, true
}

// drop unregisters a stream or connection that was closed earlier.
func (r *runSocket) drop(o *opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, o)
}

// ask returns a context for a request that ends with the run, and a function to call after the
// request. The function is nil if the run has ended.
func (r *runSocket) ask(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	request, ok := r.keep(cancel)
	if !ok {
		cancel()
		return ctx, nil
	}
	return ctx, func() {
		r.drop(request)
		cancel()
	}
}

// end closes everything that is open.
func (r *runSocket) end() {
	r.mu.Lock()
	r.over = true
	open := r.open
	r.open = nil
	r.mu.Unlock()
	for o := range open {
		o.close()
	}
}

// ownSocket is the socket of one run. Its callers are that run.
type ownSocket struct {
	Socket
	*connLimiter
	visit *runSocket
}

func (s *ownSocket) entrance() *listenerInfo {
	return &listenerInfo{caller: s.visit.caller, visit: s.visit}
}

// Accept waits for a connection. It closes with the run.
func (s *ownSocket) Accept() (net.Conn, error) {
	for {
		conn, err := s.Socket.Accept()
		if err != nil {
			return nil, err
		}
		if socket, ok := conn.(*lingering); ok {
			if socket.leave = s.connLimiter.enter("", socket.stream); socket.leave == nil {
				continue
			}
			c := &ownConn{lingering: socket, visit: s.visit}
			if c.opened, ok = s.visit.keep(func() { _ = socket.stream.Close() }); ok {
				return c, nil
			}
		}
		_ = conn.Close()
	}
}

// ownConn is a connection to the socket of a run.
type ownConn struct {
	*lingering
	visit  *runSocket
	opened *opened
}

// NetConn returns the wrapped connection. Server.follow needs it to find the lingering one.
func (c *ownConn) NetConn() net.Conn { return c.lingering }

func (c *ownConn) Close() error {
	c.visit.drop(c.opened)
	return c.lingering.Close()
}
