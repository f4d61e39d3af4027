package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// TCP configures a TCP listener.
type TCP struct {
	Hosts       []string // further host names that are accepted
	Certificate string   // a PEM file; enables TLS
	Key         string   // a PEM file
}

// TCPListener is a listener for other users and machines. Callers without a credential are
// Unknown.
type TCPListener struct {
	net.Listener
	url   string
	hosts map[string]bool // the names by which it may be asked for
}

// URL returns the URL of the listener.
func (l *TCPListener) URL() string { return l.url }

func (l *TCPListener) entrance() *listenerInfo { return &listenerInfo{hosts: l.hosts} }

// ListenTCP opens a listener at host:port. Without a certificate the address must be a loopback
// address, because credentials would otherwise be sent unencrypted. The resolved address
// counts, not the name.
func ListenTCP(address string, o TCP) (*TCPListener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s is no address: %w", address, err)
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
		return nil, fmt.Errorf("%s can be reached from other machines, and so wants TLS: "+
			"set http.certificate and http.key to PEM files, or listen at 127.0.0.1", address)
	}
	listener, err := net.ListenTCP("tcp", at)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: %w", address, syscall.EADDRINUSE)
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
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("reading http.certificate (%s) and http.key (%s): %w", t.Certificate, t.Key, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // a pipe needs a connection of its own
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
	l := &TCPListener{
		Listener: lingerListener{listener},
		url:      "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port)),
		hosts:    hostNames(names),
	}
	if secure != nil {
		l.Listener = tls.NewListener(lingerListener{listener}, secure)
		l.url = "https://" + net.JoinHostPort(host, fmt.Sprint(at.Port))
	}
	return l
}
