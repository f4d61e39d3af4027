package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/hashicorp/go-hclog"

	"orchestrator/wire"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/identity"
)

// Hubs share a key. One that stands by passes requests on to the hub at work, with the caller's own
// credential. A caller at its operators' socket has none, so the hub vouches for that caller: with a
// proof in the header Orchestrator-Forwarded, which is signed with the shared key and lasts a minute.

const (
	forwarded        = "Orchestrator-Forwarded"
	forwardAudience  = "orchestrator-hub"
	forwardedFor     = time.Minute
	forwardedWaiting = 5 * time.Second // for a connection to the hub at work
)

// CodeNoQuorum is the code of a refusal because no hub is at work, or because it cannot reach most other hubs.
const CodeNoQuorum wire.Code = "no_quorum"

// A forwardedProof names the hub that passes a request on, and whether its caller is an operator at the socket of that
// hub.
type forwardedProof struct {
	jwt.RegisteredClaims
	Operator bool `json:"operator,omitzero"`
}

// forward signs a proof of the hub with a name.
func (s *Signer) forward(hub string, operator bool, now time.Time) (string, error) {
	key, err := s.open()
	if err != nil {
		return "", err
	}
	return jwt.NewWithClaims(jwt.SigningMethodEdDSA, &forwardedProof{
		Operator: operator,
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: tokenIssuer, Audience: jwt.ClaimStrings{forwardAudience}, Subject: hub, ExpiresAt: jwt.NewNumericDate(now.Add(forwardedFor)),
		},
	}).SignedString(key)
}

// forwarder verifies a proof and returns it.
func (s *Signer) forwarder(text string, now time.Time) (*forwardedProof, error) {
	if len(text) > maxTokenLength {
		return nil, errForwarded
	}
	key, err := s.open()
	if err != nil {
		return nil, err
	}
	proof := new(forwardedProof)
	_, err = jwt.ParseWithClaims(text, proof, func(*jwt.Token) (any, error) { return key.Public(), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithIssuer(tokenIssuer), jwt.WithAudience(forwardAudience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil || proof.Subject == "" {
		return nil, errForwarded
	}
	return proof, nil
}

var errForwarded = unauthenticated("the request claims that a hub forwarded it, and has no valid proof", "Compare the clocks of the hubs")

// identifyForwarded returns the caller of a request that another hub has passed on, and whether it
// is one.
func (api *API) identifyForwarded(r *http.Request) (c caller, is bool, err error) {
	values := r.Header.Values(forwarded)
	if len(values) == 0 {
		return caller{}, false, nil
	}
	if len(values) > 1 || api.Signer == nil || api.Signer.Seed == nil {
		return caller{}, true, errForwarded
	}
	proof, err := api.Signer.forwarder(values[0], time.Now())
	if err != nil {
		return caller{}, true, err
	}
	credential, refusal := credentialOf(r.Header)
	if refusal != nil {
		return caller{}, true, refusal
	}
	switch {
	case credential != "":
		c, _, err = api.bearer(credential)
	case proof.Operator:
		c.who = identity.Caller{Kind: identity.Operator, Wide: true}
	default:
		c, _, err = api.identifyBrowser(new(listenerInfo), r)
	}
	c.hub = proof.Subject
	return c, true, err
}

// A Standby is a hub that stands by. As a handler, it gets a request that reads again when the hub at work has changed.
type Standby interface {
	http.Handler
	// AtWork returns the hub at work. The name is "" if none is known, and the URL if it cannot be reached. The channel
	// is closed when requests go elsewhere.
	AtWork() (name, url string, over <-chan struct{})
	// Waits returns which hubs this one waits for before there can be a hub at work, or "".
	Waits() string
	// Hubs answers list-hubs, for the operator at its socket.
	Hubs() any
	// Down ends this hub, for the operator at its socket, and writes the answer.
	Down(w http.ResponseWriter)
}

// A Forwarder is the handler of a hub that stands by. It passes requests on to the hub at work.
type Forwarder struct {
	Node   string // the name of this hub
	Hub    Standby
	Runs   *Runs
	Signer *Signer        // must have the key that all hubs share when Hub knows one at work
	Roots  *x509.CertPool // of the certificates of hubs; nil: the roots of the system
	Log    hclog.Logger

	refuser API
	proxy   *httputil.ReverseProxy
}

// Handler returns the handler. It must be called only once.
func (f *Forwarder) Handler() http.Handler {
	f.refuser.Log, f.refuser.Runs = f.Log, f.Runs
	f.proxy = newProxy(f.Roots, f.Log, f.failed)
	return whole(f.refuser.guard(f))
}

// newProxy returns a proxy for requests with a passage.
func newProxy(roots *x509.CertPool, log hclog.Logger, failed func(http.ResponseWriter, *http.Request, error)) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		FlushInterval: -1, ErrorHandler: failed,
		Rewrite: func(r *httputil.ProxyRequest) {
			p := passageOf(r.In)
			r.SetURL(p.to)
			r.Out.Host = p.to.Host
			r.Out.Header.Set(p.header, p.value)
		},
		ErrorLog: log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: forwardedWaiting}).DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots},
			TLSHandshakeTimeout: forwardedWaiting, DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
		},
	}
}

// ServeHTTP implements http.Handler.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		f.refuser.write(w, http.StatusOK, healthReply{Version: busVersion})
		return
	}
	own, err := f.refuser.descends(entranceOf(r.Context()), r)
	credential, refused := credentialOf(r.Header)
	switch {
	case refused != nil:
		f.refuser.refuse(w, r, refused)
		return
	case err != nil:
		f.refuser.refuse(w, r, err)
		return
	case credential != "":
		own = identity.Caller{}
	}
	operator := own.Kind == identity.Operator
	if operator && r.Method == http.MethodPost && r.URL.Path == operationsPath+"down" {
		f.Hub.Down(w)
		return
	}
	if operator && r.Method == http.MethodPost && r.URL.Path == operationsPath+"list-hubs" {
		f.refuser.write(w, http.StatusOK, f.Hub.Hubs())
		return
	}
	if err := f.answer(w, r, operator); err != nil {
		f.refuser.refuse(w, r, err)
	}
}

// answer passes a request on, or returns why it cannot.
func (f *Forwarder) answer(w http.ResponseWriter, r *http.Request, operator bool) error {
	name, at, over := f.Hub.AtWork()
	refusal := &wire.Error{Code: CodeNoQuorum, Message: f.Node + " stands by: no hub is at work yet", Hint: hubsHint}
	switch waits := f.Hub.Waits(); {
	case name == "" && waits != "":
		refusal.Message, refusal.Hint, refusal.Details = f.Node+" waits for other hubs: "+waits, "Start them: orchestrator up", map[string]any{"waits": waits}
	case name == "":
	case name == f.Node: // it has taken its turn, and is about to answer
		return f.await(w, r, over)
	case at == "":
		refusal.Code, refusal.Message = wire.CodeConflict, fmt.Sprintf("%s stands by: the hub is %s", f.Node, name)
		refusal.Hint = "Send the request there. If the hubs can reach each other at http.listen, any hub forwards requests"
		refusal.Details = map[string]any{"hub": name}
	case r.URL.Path == commandPath:
		refusal.Code, refusal.Message = wire.CodeConflict, f.Node+" stands by, and runs no commands"
	case r.URL.Path == apiPath+"pipe":
		refusal.Code, refusal.Message = wire.CodeConflict, fmt.Sprintf("%s stands by, and a pipe works only on the machine of the hub, %s", f.Node, name)
		refusal.Hint = "Run it there"
	case r.URL.Path == hostlink.Path: // a link through this hub would end with this hub
		refusal.Message = fmt.Sprintf("%s stands by, and the hub is %s: join there", f.Node, name)
	case r.Header.Get(forwarded) != "": // the other hub did not know that this one is no longer at work
		refusal.Message = f.Node + " stands by, and another hub has already forwarded this"
	default:
		return f.pass(w, r, passage{name: name, over: over, header: forwarded}, at, operator)
	}
	return refusal
}

// await passes a request to this hub as soon as it answers.
func (f *Forwarder) await(w http.ResponseWriter, r *http.Request, over <-chan struct{}) error {
	select {
	case <-over:
		f.Hub.ServeHTTP(w, r)
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

const hubsHint = "Try again in a few seconds: orchestrator hosts --hubs"

// A passage is the target of a forwarded request, and the header that names the hub passing it on.
type passage struct {
	to            *url.URL
	header, value string

	// Only for another hub.
	name string
	over <-chan struct{} // closed when requests go elsewhere
	in   *http.Request   // as the caller sent it
	body []byte          // of a request that reads
}

// passageKey is the context key of a passage.
type passageKey struct{}

// passageOf returns the passage of a request.
func passageOf(r *http.Request) passage {
	p, _ := r.Context().Value(passageKey{}).(passage)
	return p
}

// maxRead is the size of the largest request that is sent again. Larger ones are not.
const maxRead = 64 << 10

// pass passes a request on to the hub at a URL. It vouches for an operator. It waits for the answer until requests go
// elsewhere.
func (f *Forwarder) pass(w http.ResponseWriter, r *http.Request, p passage, at string, operator bool) (err error) {
	if p.to, err = url.Parse(at); err != nil {
		return err
	}
	if p.value, err = f.Signer.forward(f.Node, operator, time.Now()); err != nil {
		return err
	}
	p.in = r
	if isRead(r) && r.ContentLength >= 0 && r.ContentLength <= maxRead {
		if p.body, err = io.ReadAll(r.Body); err != nil {
			return &wire.Error{Code: wire.CodeMalformed, Message: "the request is incomplete"}
		}
		r.Body = io.NopCloser(bytes.NewReader(p.body))
	}
	if err := unhurried(w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), passageKey{}, p))
	defer cancel()
	go func() {
		select {
		case <-p.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// isRead reports whether a request only reads.
func isRead(r *http.Request) bool {
	name, ok := strings.CutPrefix(r.URL.Path, operationsPath)
	return r.Method == http.MethodGet || ok && r.Method == http.MethodPost && !declared(name).IsWrite()
}

// failed answers a request that got no answer. A request that reads is sent again if another hub is at work. For a
// request that writes, the caller learns that it may have been carried out.
func (f *Forwarder) failed(w http.ResponseWriter, out *http.Request, err error) {
	p := passageOf(out)
	r := p.in
	dialing, is := errors.AsType[*net.OpError](err)
	if is && dialing.Op == "dial" {
		f.refuser.refuse(w, r, &wire.Error{
			Code: CodeNoQuorum, Message: fmt.Sprintf("%s stands by, and cannot reach the hub %s: %v", f.Node, p.name, dialing.Err), Hint: hubsHint,
		})
		return
	}
	f.Log.Debug("the hub at work has not answered", "error", err)
	over := false
	select {
	case <-p.over:
		over = true
	default:
	}
	switch {
	case !over && r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the caller is gone
	case over && p.body != nil:
		r.Body = io.NopCloser(bytes.NewReader(p.body))
		f.Hub.ServeHTTP(w, r)
	case isRead(r):
		f.refuser.refuse(w, r, &wire.Error{Code: CodeNoQuorum, Message: fmt.Sprintf("the hub %s has ended before it answered", p.name), Hint: hubsHint})
	default:
		f.refuser.refuse(w, r, &wire.Error{
			Code: wire.CodeTimeout, Message: fmt.Sprintf("the hub %s has not answered. Your request was not confirmed, and may have been recorded", p.name),
			Hint: "Check before you repeat it: orchestrator events",
		})
	}
}

// orCut returns the error of a hub that could not be dialed. For any other error it cuts the connection.
func orCut(log hclog.Logger, err error) *net.OpError {
	dialing, is := errors.AsType[*net.OpError](err)
	if !is || dialing.Op != "dial" {
		log.Debug("the hub at work has not answered", "error", err)
		panic(http.ErrAbortHandler)
	}
	return dialing
}

// A Host is a machine that runs agents for a hub.
type Host interface {
	// Hub returns the URL of the hub that the host has joined, or "".
	Hub() string
	// RunToken returns the token of a run, or "".
	RunToken(run string) string
}

// A HostDoor is the handler of a host. It passes requests at the socket of a run on to the hub, with the
// token of the run.
type HostDoor struct {
	Host  Host
	Runs  *Runs
	Roots *x509.CertPool // of the certificate of the hub; nil: the roots of the system
	Log   hclog.Logger

	Guard Guard // hears of a process at a socket that is not its own

	refuser API
	proxy   *httputil.ReverseProxy
}

// Handler returns the handler. It must be called only once.
func (d *HostDoor) Handler() http.Handler {
	d.refuser.Log, d.refuser.Runs, d.refuser.Guard = d.Log, d.Runs, d.Guard
	d.proxy = newProxy(d.Roots, d.Log, func(w http.ResponseWriter, r *http.Request, err error) {
		dialing := orCut(d.Log, err)
		d.refuser.refuse(w, r, &wire.Error{Code: CodeNoQuorum, Message: "the hub cannot be reached: " + dialing.Err.Error()})
	})
	return whole(d.refuser.guard(d))
}

// ServeHTTP implements http.Handler.
func (d *HostDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := entranceOf(r.Context())
	_, err := d.refuser.descends(e, r)
	if err == nil {
		err = d.pass(w, r, e)
	}
	if err != nil {
		d.refuser.refuse(w, r, err)
	}
}

func (d *HostDoor) pass(w http.ResponseWriter, r *http.Request, e *listenerInfo) error {
	hub := d.Host.Hub()
	if e.visit == nil || hub == "" {
		return &wire.Error{Code: wire.CodeConflict, Message: "this program runs agents for a hub, and answers only them", Hint: "Ask the hub: " + cmp.Or(hub, "it is not connected")}
	}
	to, err := url.Parse(hub)
	if err != nil {
		return err
	}
	if err := unhurried(w); err != nil {
		return err
	}
	r.Header.Del("X-API-Key") // at its own socket a run is always itself
	p := passage{to: to, header: "Authorization", value: "Bearer " + d.Host.RunToken(e.visit.caller.Run)}
	d.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passageKey{}, p)))
	return nil
}
