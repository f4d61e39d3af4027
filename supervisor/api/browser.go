package api

import (
	"cmp"
	"context"
	"net/http"
	"os/user"
	"slices"
	"strings"
	"time"

	"orchestrator/supervisor/api/signin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// People use the web view with a browser. They sign in with a code that holds once, and get a cookie. A cookie counts
// only at a TCP listener, and there for the paths that are for people: everything below /api/v1/, and /metrics. A
// request with another credential has no cookie.

const (
	// UIPath is the path of the web view.
	UIPath      = "/ui/"
	signInPath  = UIPath + "sign-in"
	signOutPath = UIPath + "sign-out"
	mePath      = UIPath + "me"

	cookieName = "orchestrator_session"
	// maxSecrets is how many secrets a cookie has. Browsers send a cookie to all ports of a host, so
	// the orchestrators behind one name share it. Each has its own secret there.
	maxSecrets = 8
)

// signInBody is the body of a sign-in.
type signInBody struct {
	// The code from the command "orchestrator ui". It holds once, and for two minutes.
	Code string `json:"code"`
}

// signedIn describes who has signed in.
type signedIn struct {
	// The person, as the audit names it.
	Name string `json:"name"`
	// The rights of the person: a viewer only reads.
	Role string `json:"role" schema:"enum=wire.PersonRoles"`
	// The name of the team.
	Team string `json:"team"`
	// The version of the orchestrator.
	Version string `json:"version"`
}

// browse registers the routes of the web view.
func (api *API) browse(at func(pattern string, do func(http.ResponseWriter, *http.Request))) {
	if api.SignIns == nil {
		return
	}
	at("POST "+signInPath, api.authenticated("sign-in", nil, api.signIn))
	at("GET "+mePath, api.toBrowser("me", func(w http.ResponseWriter, _ *http.Request, in *signin.SignIn) {
		api.write(w, http.StatusOK, api.describeSignIn(in))
	}))
	at("POST "+signOutPath, api.toBrowser("sign-out", api.signOut))
	if api.Pages != nil {
		at("GET "+UIPath, api.page)
	}
}

// toBrowser wraps a handler for people who have signed in.
func (api *API) toBrowser(what string, do func(http.ResponseWriter, *http.Request, *signin.SignIn)) http.HandlerFunc {
	may := func(c identity.Caller, _ *http.Request) *wire.Error {
		if c.Kind == identity.Unknown {
			return errNotSignedIn
		}
		return nil
	}
	return api.authenticated(what, may, func(w http.ResponseWriter, r *http.Request) {
		in := callerOf(r.Context()).browser
		if in == nil { // it has another credential, or is at a unix socket
			api.refuse(w, r, errNotSignedIn)
			return
		}
		do(w, r, in)
	})
}

var (
	errNotSignedIn  = unauthenticated("this browser is not signed in", "Sign in: orchestrator ui")
	errSignInEnded  = unauthenticated("this browser's sign-in has ended", "Sign in again: orchestrator ui")
	errUnknownCode  = unauthenticated("the code is unknown, used or expired", "Get a new one: orchestrator ui")
	errOtherOrigin  = denied("the request comes from a page of another site")
	errElsewhere    = &wire.Error{Code: wire.CodeDenied, Message: "the web view has its own host name, and this is not it", Hint: "Open it: orchestrator ui"}
	errUIForPersons = denied("the web view is for people: at the operators' socket, or with the token of an operator")
)

// page answers with a file of the web view.
func (api *API) page(w http.ResponseWriter, r *http.Request) {
	c, _, err := api.examine(nil, w, r)
	c.account = api.open(c.who, "ui", true)
	defer c.account.close()
	if err != nil {
		api.refuse(w, r.WithContext(withCaller(r.Context(), c)), err)
		return
	}
	if entranceOf(r.Context()).elsewhere(r) {
		api.refuse(w, r, errElsewhere)
		return
	}
	control := http.NewResponseController(w)
	_ = hurry(control)
	api.Pages.ServeHTTP(w, r)
	_ = sent(control)
}

// signIn signs a person in who has a code.
func (api *API) signIn(w http.ResponseWriter, r *http.Request) {
	refuse := func(err error) { api.refuse(w, r, err) }
	if refusal := sameOrigin(r); refusal != nil {
		refuse(refusal)
		return
	}
	if refusal := api.descendsOverTCP(r); refusal != nil {
		refuse(refusal)
		return
	}
	if entranceOf(r.Context()).elsewhere(r) {
		refuse(errElsewhere)
		return
	}
	text, err := api.body(w, r)
	if err != nil {
		refuse(err)
		return
	}
	var body signInBody
	if err := object.Decode(text, &body); err != nil {
		refuse(&wire.Error{Code: wire.CodeMalformed, Message: "the request cannot be read: " + err.Error()})
		return
	}
	secret, in := api.SignIns.kept.Use(body.Code, time.Now())
	if in == nil {
		refuse(errUnknownCode)
		return
	}
	var others []string
	for _, other := range secretsOf(r) {
		if before := api.SignIns.kept.Of(other, time.Now()); before != nil {
			api.SignIns.kept.End(before)
		} else {
			others = append(others, other)
		}
	}
	setCookie(w, r, append(others, secret))
	account := accountOf(r.Context())
	account.From = in.Who
	account.From.Via = via(r, caller{browser: in})
	if api.SignedIn != nil {
		api.SignedIn(in.Who.Name, in.Who.Role)
	}
	api.Log.Info("signed in to the web view", "name", in.Who.Name, "role", in.Who.Role, "address", r.RemoteAddr, "credential", in.ID())
	api.write(w, http.StatusOK, api.describeSignIn(in))
}

// signOut ends the sign-in of a browser.
func (api *API) signOut(w http.ResponseWriter, r *http.Request, in *signin.SignIn) {
	setCookie(w, r, slices.DeleteFunc(secretsOf(r), func(secret string) bool { return api.SignIns.kept.Of(secret, time.Now()) == in }))
	api.SignIns.kept.End(in)
	api.write(w, http.StatusOK, struct{}{})
}

func (api *API) describeSignIn(in *signin.SignIn) signedIn {
	return signedIn{Name: in.Who.Name, Role: in.Who.Role, Team: api.SignIns.Team, Version: api.Version}
}

// secretsOf returns the secrets in the cookie of a request.
func secretsOf(r *http.Request) (secrets []string) {
	for _, c := range r.CookiesNamed(cookieName) {
		for secret := range strings.SplitSeq(c.Value, ".") {
			if secret != "" && len(secrets) < maxSecrets {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

// setCookie gives a browser a cookie with secrets, or removes it if secrets is empty.
func setCookie(w http.ResponseWriter, r *http.Request, secrets []string) {
	secrets = secrets[max(0, len(secrets)-maxSecrets):]
	c := &http.Cookie{
		Name: cookieName, Value: strings.Join(secrets, "."), Path: "/", MaxAge: int(signin.Time / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
	if len(secrets) == 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// identifyBrowser returns the caller of a request without another credential, and whether it has a cookie
// that counts. At a unix socket none does.
func (api *API) identifyBrowser(e *listenerInfo, r *http.Request) (c caller, is bool, err error) {
	secrets := secretsOf(r)
	if api.SignIns == nil || e.caller.Kind != identity.Unknown || len(secrets) == 0 || !forBrowsers(r.URL.Path) {
		return caller{}, false, nil
	}
	if e.elsewhere(r) {
		return caller{}, true, errElsewhere
	}
	for _, secret := range secrets {
		in := api.SignIns.kept.Of(secret, time.Now())
		if in == nil {
			continue
		}
		c = caller{who: in.Who, until: in.Until, token: in.Token, browser: in}
		if api.lapsed(c) { // the token that requested the code was revoked
			continue
		}
		if refusal := sameOrigin(r); refusal != nil {
			return caller{}, true, refusal
		}
		return c, true, nil
	}
	return caller{}, true, errSignInEnded
}

// forBrowsers reports whether a cookie counts for a path.
func forBrowsers(path string) bool {
	return strings.HasPrefix(path, apiPath) || path == metricsPath || strings.HasPrefix(path, UIPath)
}

// sameOrigin returns an error for a request that a page of another origin has caused. Another port of the
// same host is another origin, and the cookie comes from there, too. So requests that read are refused as well, if the
// browser tells where they come from.
func sameOrigin(r *http.Request) *wire.Error {
	site := r.Header.Get("Sec-Fetch-Site")
	if new(http.CrossOriginProtection).Check(r) == nil && (site == "" || site == "same-origin" || site == "none") {
		return nil
	}
	return errOtherOrigin
}

// A SignIns has the people who have signed in to the web view of a team.
type SignIns struct {
	Team string // its name
	kept signin.List
}

// Invite returns the path of the web view with a code for the caller of the request in a context. An
// agent that may operate gets none, because the sign-in would outlast its run. A browser gets none, because
// its sign-in would never end.
func (s *SignIns) Invite(ctx context.Context, r control.OpenUIRequest) (string, error) {
	by := callerOf(ctx)
	switch {
	case r.Page && (!by.who.Wide || by.hub != ""):
		return "", &wire.Error{Code: wire.CodeInvalid, Message: "a page for the browser is for callers on the machine of the team", Details: map[string]any{"pointer": "/page"}}
	case by.who.Kind != identity.Operator, by.browser != nil, by.who.Wide && by.who.Name != "":
		return "", errUIForPersons
	case r.Role != "" && r.Role != wire.PersonOperator && r.Role != wire.PersonViewer:
		return "", &wire.Error{Code: wire.CodeInvalid, Message: "role must be " + wire.PersonOperator + " or " + wire.PersonViewer, Details: map[string]any{"pointer": "/role"}}
	}
	who := identity.Caller{Kind: identity.Operator, Name: cmp.Or(by.who.Name, login()), Role: cmp.Or(r.Role, wire.PersonOperator)}
	holds := signin.CodeTime
	if r.Page {
		holds = signin.PageTime
	}
	return UIPath + "#code=" + s.kept.Invite(who, by.token, by.until, time.Now(), holds), nil
}

// Open keeps the sign-ins in a file, and reads the sign-ins of the program before this one.
func (s *SignIns) Open(path string) error { return s.kept.Open(path, time.Now()) }

// Any reports whether somebody is signed in.
func (s *SignIns) Any() bool { return s.kept.Any(time.Now()) }

// InviteUser is Invite for the user of this process.
func (s *SignIns) InviteUser() string {
	who := identity.Caller{Kind: identity.Operator, Name: login(), Role: wire.PersonOperator}
	return UIPath + "#code=" + s.kept.Invite(who, "", time.Time{}, time.Now(), signin.CodeTime)
}

// login returns the name of the user of this process.
func login() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return wire.PersonOperator
}

// browserEndpoints describes the routes of the web view.
func (api *API) browserEndpoints() map[string]*endpoint {
	if api.SignIns == nil {
		return nil
	}
	person := inSchema("The person.", refer("signed-in"))
	found := map[string]*endpoint{
		"POST " + signInPath: {
			ID: "sign_in", Summary: "Sign in with a code from open-ui", Tags: []string{tagDoor},
			Description: "The answer sets a cookie. It expires after 12 hours or 100 newer sign-ins.",
			Body:        &openBody{Required: true, Content: map[string]openContent{inJSON: {Schema: refer("sign-in")}}},
			Responses:   responses(person, 400, 401, 413, 415),
		},
		"GET " + mePath:       {ID: "me", Summary: "Show the person who is signed in", Tags: []string{tagDoor}, Security: security(byCookie), Responses: responses(person, 401)},
		"POST " + signOutPath: {ID: "sign_out", Summary: "Sign out", Tags: []string{tagDoor}, Security: security(byCookie), Responses: responses(inSchema("Signed out.", anyObject), 401)},
	}
	if api.Pages != nil {
		found["GET "+UIPath] = &endpoint{
			ID: "ui", Summary: "The pages of the web view", Tags: []string{tagDoor},
			Responses: responses(openResponse{Description: "A file.", Content: map[string]openContent{"*/*": {Schema: wire.Raw(`{"type":"string"}`)}}}, 404),
		}
	}
	return found
}
