package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// certified makes a certificate for this machine and returns its files, and a pool that trusts
// it.
func certified(t *testing.T) (TCP, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	o := TCP{Certificate: filepath.Join(t.TempDir(), "cert.pem"), Key: filepath.Join(t.TempDir(), "key.pem"), Hosts: []string{"localhost"}}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(o.Certificate, text, 0o600))
	require.NoError(t, os.WriteFile(o.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return o, pool
}

func TestTLS(t *testing.T) {
	guard, pool := certified(t)
	h := build(t, func(d *API) { d.Pipes = map[string]Pipe{"pipe": nil} }, guard)
	require.True(t, strings.HasPrefix(h.tcp.URL(), "https://127.0.0.1:"), h.tcp.URL())
	encrypted := func(c *tls.Config) *http.Client {
		c.RootCAs = pool
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	}
	a := asks{client: encrypted(&tls.Config{}), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {"orc_coder"}}}
	response, text := a.do(t, http.MethodPost, "/api/v1/operations/poll-messages", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, `"2/coder///false"`, text)
	require.EqualValues(t, tls.VersionTLS13, response.TLS.Version)
	require.Equal(t, 1, response.ProtoMajor)

	a.header = http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonAdmin)}, "Connection": {"Upgrade"}, "Upgrade": {PipeProtocol}}
	status, text := a.post(t, "pipe", "")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "works only on the orchestrator")

	_, err := encrypted(&tls.Config{MaxVersion: tls.VersionTLS12}).Get(h.tcp.URL())
	require.ErrorContains(t, err, "protocol version")
	plain, err := http.Get(strings.Replace(h.tcp.URL(), "https:", "http:", 1) + "/api/bus/poll")
	require.NoError(t, err)
	require.NoError(t, plain.Body.Close())
	require.Equal(t, http.StatusBadRequest, plain.StatusCode, "nothing is served in the open")
}

// TestListenTCPRefuses checks that an address that other machines can reach needs a certificate,
// however it is spelled.
//
// Rows: S-15.
func TestListenTCPRefuses(t *testing.T) {
	good, _ := certified(t)
	for address, says := range map[string]string{
		"0.0.0.0:0":   "set http.certificate and http.key",
		"[::]:0":      "set http.certificate and http.key",
		":0":          "set http.certificate and http.key",
		"192.0.2.1:0": "set http.certificate and http.key",
		"127.0.0.1":   "is not an address",
		"[::1":        "is not an address",
	} {
		_, err := ListenTCP(address, TCP{})
		require.ErrorContains(t, err, says, address)
	}
	for says, guard := range map[string]TCP{
		"http.certificate":        {Certificate: good.Certificate},
		"http.key":                {Key: good.Key},
		"no such file":            {Certificate: good.Certificate, Key: good.Key + ".gone"},
		"reading http.certificat": {Certificate: good.Key, Key: good.Key},
	} {
		_, err := ListenTCP("127.0.0.1:0", guard)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, os.Chmod(good.Key, 0o644))
	_, err := ListenTCP("127.0.0.1:0", good)
	require.ErrorContains(t, err, "is open to every user")
}

func TestListenTCP(t *testing.T) {
	first, err := ListenTCP("127.0.0.1:0", TCP{})
	require.NoError(t, err)
	defer first.Close()
	_, err = ListenTCP(first.Addr().String(), TCP{})
	require.ErrorContains(t, err, "is in use by another program")
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	good, _ := certified(t)
	everywhere, err := ListenTCP("0.0.0.0:0", good)
	require.NoError(t, err)
	defer everywhere.Close()
	where, err := url.Parse(everywhere.URL())
	require.NoError(t, err)
	require.Equal(t, "localhost", where.Hostname(), "an address that can be gone to")
}

// TestNamesOfTheHost checks that requests for an unknown host name (DNS rebinding) are refused,
// and so are requests that a browser makes for another origin.
func TestNamesOfTheHost(t *testing.T) {
	h := build(t, nil, TCP{Hosts: []string{"Shop.Example", "[::1]", "with.port:81"}})
	_, port, err := net.SplitHostPort(h.tcp.Addr().String())
	require.NoError(t, err)
	for host, status := range map[string]int{
		"127.0.0.1:" + port:          200,
		"127.0.0.1":                  200,
		"[::ffff:127.0.0.1]:" + port: 200,
		"shop.example":               200,
		"SHOP.example.:1":            200,
		"::1":                        200,
		"[::1]:" + port:              200,
		"with.port:81":               200,
		"with.port:82":               403,
		"with.port":                  403,
		"localhost":                  403, // not among the given names
		"evil.example:" + port:       403,
		"127.0.0.1.evil.example":     403,
		"127.0.0.2:" + port:          403,
		"shop.example@evil.example":  403,
		"[":                          403,
	} {
		for _, path := range []string{"/api/bus/poll", "/nothing"} {
			a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"Host": {host}, "X-Api-Key": {"orc_coder"}}}
			response, text := a.do(t, http.MethodGet, path, "")
			want := status
			if status == http.StatusOK && path == "/nothing" {
				want = http.StatusNotFound
			}
			require.Equal(t, want, response.StatusCode, "%s: %s", host, text)
			require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
			require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
		}
	}
	a := asks{client: over(h.socket), header: http.Header{"Host": {"evil.example"}}}
	status, _ := a.post(t, "operations/poll-messages", "")
	require.Equal(t, http.StatusOK, status, "no page has a socket")
}

func TestNoPreflight(t *testing.T) {
	h := build(t, nil, TCP{})
	for _, path := range []string{"/api/v1/tasks", "/api/v1/operations/poll-messages", "/api/v1/servers/register", "/"} {
		a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{
			"Origin": {"https://evil.example"}, "Access-Control-Request-Method": {"POST"},
		}}
		response, _ := a.do(t, http.MethodOptions, path, "")
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, response.StatusCode)
		for name := range response.Header {
			require.False(t, strings.HasPrefix(name, "Access-Control-"), name)
		}
	}
}
