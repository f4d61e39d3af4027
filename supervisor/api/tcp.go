package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// TCP says how a TCP listener is guarded.
type TCP struct {
	Hosts       []string // the names by which it may be asked for, besides its address
	Certificate string   // a PEM file; with it all speak TLS
	Key         string   // a PEM file
}

// TCPListener is a listener that others than this user's programs reach. Who
// comes in by it without a credential is Unknown.
type TCPListener struct {
	net.Listener
	url   string
	hosts map[string]bool // the names by which it may be asked for
}

// URL is where it is.
func (l *TCPListener) URL() string { return l.url }

func (l *TCPListener) entrance() *listenerInfo { return &listenerInfo{hosts: l.hosts} }

// ListenTCP opens a listener at an address, host:port. What other machines can
// reach is encrypted, or the credentials of every agent would travel in the
// open: without a certificate the address must be this machine's own. It is the
// address that counts, not the name that stands for it.
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

// config is how TLS is spoken, nil if it is not. Only the newest is.
func (o *TCP) config() (*tls.Config, error) {
	if o.Certificate == "" && o.Key == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	if err != nil {
		return nil, fmt.Errorf("reading http.certificate (%s) and http.key (%s): %w", o.Certificate, o.Key, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // a caller that gives its connection over must have it alone
	}, nil
}

// guard makes a listener of ours of an open one. A host that stands for all
// addresses is no name to ask for.
func (o *TCP) guard(listener *net.TCPListener, secure *tls.Config, host string) *TCPListener {
	at, _ := listener.Addr().(*net.TCPAddr)
	names := o.Hosts
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
