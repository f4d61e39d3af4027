package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"orchestrator/wire/identity"
)

// Listen opens a unix socket that only this user can use. It replaces a socket if no program answers there, and refuses
// any other file at path. Closing the listener does not remove the socket: while the file exists, the orchestrator may
// still use its state.
func Listen(path string) (*Socket, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists, and is not a socket", path)
	default:
		if there, err := Answers(path, Answering); there {
			return nil, fmt.Errorf("%s is in use: another program answers there", path)
		} else if err != nil {
			return nil, fmt.Errorf("%s is in use: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return newSocket(listener, made), nil
}

// Answering is how long a program that holds a socket or a state directory may take to answer.
const Answering = 5 * time.Second

// Answers reports whether a program answers at a socket. A killed program leaves its socket. It
// accepts connections until the kernel has closed its files, and closes them without an answer. A
// program that has not ended after the wait counts as one that answers.
func Answers(path string, wait time.Duration) (bool, error) {
	for deadline := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		there, err := askHealth(path, deadline)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return false, nil
		}
		if err != nil || there || !time.Now().Before(deadline) {
			return err == nil, err
		}
	}
}

// AnswersNow reports whether a program answers one request at a socket. Unlike Answers, it returns false for a program
// that closes the connection, or that does not answer within the wait.
func AnswersNow(path string, wait time.Duration) bool {
	there, err := askHealth(path, time.Now().Add(wait))
	return there && err == nil
}

// askHealth reports whether a program answers one request at a socket. It returns an error if it cannot connect.
func askHealth(path string, deadline time.Time) (bool, error) {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(deadline)
	_, _ = io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n") // the read returns its error as well
	_, err = conn.Read(make([]byte, 1))
	return err == nil, nil
}

// Socket is a listener for this user and root. Its callers are operators.
type Socket struct {
	net.Listener
	Trace     Trace // of the processes at the other end; nil: they are not traced
	guest     int   // another user, with processes that may connect if they belong to the run; 0: none
	made      os.FileInfo
	strangers farewells
}

func newSocket(listener net.Listener, made os.FileInfo) *Socket {
	return &Socket{Listener: listener, made: made}
}

// Remove removes the socket file, unless another program has replaced it.
func (s *Socket) Remove() {
	if now, err := os.Lstat(s.Addr().String()); err == nil && os.SameFile(s.made, now) {
		_ = os.Remove(s.Addr().String())
	}
}

func (s *Socket) entrance() *listenerInfo {
	return &listenerInfo{caller: identity.Caller{Kind: identity.Operator, Wide: true}}
}

// Accept waits for a connection of this user, root or the guest.
func (s *Socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if s.admits(conn) {
			l := linger(conn)
			if c, ok := l.(*lingering); ok {
				c.peer = peerOf(c.stream, s.Trace, s.guest)
			}
			return l, nil
		}
		s.strangers.away(conn, "403 Forbidden", "UNAUTHORIZED", "this socket is for another user")
	}
}

// admits reports whether the other end of a connection is this user, root or the guest.
func (s *Socket) admits(conn net.Conn) bool {
	err := trusted(conn)
	other, known := errors.AsType[*StrangerError](err)
	return err == nil || known && s.guest != 0 && other.UID == s.guest
}

// StrangerError reports that another user is at the other end of a socket.
type StrangerError struct{ UID int }

func (e *StrangerError) Error() string { return fmt.Sprintf("user %d is at the other end", e.UID) }

// trusted returns an error unless the other end of a socket is this user or root.
func trusted(conn net.Conn) error {
	uid, err := userOf(conn)
	if err == nil && stranger(uid, os.Geteuid()) {
		err = &StrangerError{UID: uid}
	}
	return err
}

// userOf returns the user at the other end of a unix socket.
func userOf(conn net.Conn) (uid int, err error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return -1, errors.New("not a unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid = -1
	var failed error
	err = raw.Control(func(fd uintptr) {
		uid, _, failed = credOf(fd)
	})
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return uid, nil
}

func stranger(uid, self int) bool { return uid != self && uid != 0 }

// Dial opens a connection to the orchestrator at a socket. It returns a StrangerError if
// another user listens there, because that user could have created the socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := trusted(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// listenerInfo holds the facts about callers that a listener determines.
type listenerInfo struct {
	caller identity.Caller // the caller if a request has no credential
	visit  *runSocket      // the run of the socket, or nil
	hosts  map[string]bool // accepted host names; nil: all
	view   string          // the host name of the web view; "": each of hosts
}

// entranceKey is the context key of a listenerInfo.
type entranceKey struct{}

// enterBy returns the base context of requests at a listener. If the listener has no entrance
// method, callers are Unknown.
func enterBy(l net.Listener) context.Context {
	e := new(listenerInfo)
	if known, ok := l.(interface{ entrance() *listenerInfo }); ok {
		e = known.entrance()
	}
	return context.WithValue(context.Background(), entranceKey{}, e)
}

func entranceOf(ctx context.Context) *listenerInfo {
	if e, ok := ctx.Value(entranceKey{}).(*listenerInfo); ok {
		return e
	}
	return new(listenerInfo)
}

// hostNames returns the accepted values of the Host header. A name without a port accepts any
// port.
func hostNames(hosts []string) map[string]bool {
	names := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		names[hostName(host)] = true
	}
	return names
}

// hostName returns the normalized form of a host name.
func hostName(host string) string {
	if bare, ok := strings.CutPrefix(host, "["); ok {
		if bare, ok = strings.CutSuffix(bare, "]"); ok {
			host = bare
		}
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// answersTo reports whether the Host of a request is a name of this listener. The check stops DNS rebinding: a web page
// with a name that resolves to this address is refused.
func (l *listenerInfo) answersTo(r *http.Request) bool {
	if l.hosts == nil {
		return true
	}
	name := hostOf(r)
	if l.hosts[name] || l.hosts[hostName(r.Host)] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	asked, err := netip.ParseAddr(name)
	return ok && err == nil && asked.Unmap() == local.AddrPort().Addr().Unmap()
}

// hostOf returns the normalized host name of a request, without the port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return hostName(host)
	}
	return hostName(r.Host)
}

// elsewhere reports whether a browser uses an address that all servers of this machine have, although the web view
// has a host name. Browsers send a cookie to each port of a host, so an agent's server would get it. Nor may such a
// request lead to the name: a page of that server that knows the name gets the browser to visit its port there.
func (l *listenerInfo) elsewhere(r *http.Request) bool {
	host := hostOf(r)
	_, err := netip.ParseAddr(host)
	return l.view != "" && (err == nil || isThisMachine(host))
}

// Inside is an in-process listener. Its callers are operators.
type Inside struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

// NewInside returns an Inside without connections.
func NewInside() *Inside {
	return &Inside{conns: make(chan net.Conn), over: make(chan struct{})}
}

// Dial opens a connection to the listener.
func (i *Inside) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case i.conns <- there:
		return here, nil
	case <-i.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a connection.
func (i *Inside) Accept() (net.Conn, error) {
	select {
	case conn := <-i.conns:
		return conn, nil
	case <-i.over:
		return nil, net.ErrClosed
	}
}

// Close closes the listener; Dial and Accept then return net.ErrClosed.
func (i *Inside) Close() error {
	i.once.Do(func() { close(i.over) })
	return nil
}

// Addr implements net.Listener.
func (i *Inside) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }

func (i *Inside) entrance() *listenerInfo {
	return &listenerInfo{caller: identity.Caller{Kind: identity.Operator, Wide: true}}
}

// TCP configures a TCP listener.
type TCP struct {
	Hosts       []string // further host names that are accepted
	View        string   // the host name of the web view at a loopback address without TLS, see listenerInfo.elsewhere
	Certificate string   // a PEM file; enables TLS
	Key         string   // a PEM file
}

// TCPListener is a listener for other users and machines. Callers without a credential are
// Unknown.
type TCPListener struct {
	net.Listener
	*lobby
	raw   *net.TCPListener
	url   string
	hosts map[string]bool // the names that a Host header may have
	view  string          // the URL of the web view
	name  string          // its host name, if it has one
}

// URL returns the URL of the listener.
func (l *TCPListener) URL() string { return l.url }

// ViewURL returns the URL of the web view for browsers.
func (l *TCPListener) ViewURL() string { return l.view }

func (l *TCPListener) entrance() *listenerInfo { return &listenerInfo{hosts: l.hosts, view: l.name} }

// ListenTCP opens a listener at host:port. Without a certificate the address must be a loopback
// address, because credentials would otherwise be sent unencrypted. The resolved address
// counts, not the name.
func ListenTCP(address string, o TCP) (*TCPListener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address: %w", address, err)
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", address, err)
	}
	secure, err := o.config()
	if err != nil {
		return nil, err
	}
	if secure == nil && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%s can be reached from other machines, and so needs TLS: "+
			"set http.certificate and http.key to PEM files, or listen at 127.0.0.1", address)
	}
	listener, err := net.ListenTCP("tcp", at)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program: %w", address, syscall.EADDRINUSE)
	}
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", address, err)
	}
	return o.guard(listener, secure, host), nil
}

// config returns the TLS configuration, or nil without a certificate. Only TLS 1.3 is accepted.
func (t *TCP) config() (*tls.Config, error) {
	if t.Certificate == "" && t.Key == "" {
		return nil, nil
	}
	if info, err := os.Stat(t.Key); err == nil && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("http.key (%s) is open to every user (chmod o= closes it)", t.Key)
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("reading http.certificate (%s) and http.key (%s): %w", t.Certificate, t.Key, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // a pipe needs a separate connection
	}, nil
}

// guard wraps an open listener. An unspecified host, such as 0.0.0.0, is not an accepted host
// name.
func (t *TCP) guard(listener *net.TCPListener, secure *tls.Config, host string) *TCPListener {
	at, _ := listener.Addr().(*net.TCPAddr)
	names := t.Hosts
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	} else {
		names = append(names[:len(names):len(names)], host)
	}
	name := ""
	if secure == nil && isThisMachine(host) {
		name = t.View
	}
	if name != "" {
		names = append(names[:len(names):len(names)], name)
	}
	c := &lobby{connLimiter: connLimiter{what: listener.Addr().String(), encrypted: secure != nil}}
	l := &TCPListener{
		Listener: lobbyListener{listener, c},
		lobby:    c,
		raw:      listener,
		url:      "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port)),
		hosts:    hostNames(names),
		name:     name,
	}
	if secure != nil {
		l.Listener = tls.NewListener(l.Listener, secure)
		l.url = "https://" + net.JoinHostPort(host, fmt.Sprint(at.Port))
	}
	l.view = l.url
	if name != "" {
		l.view = "http://" + net.JoinHostPort(name, fmt.Sprint(at.Port))
	}
	return l
}

// isThisMachine reports whether a host is localhost, or an address that browsers use for names below localhost.
func isThisMachine(host string) bool {
	host = hostName(host)
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}
