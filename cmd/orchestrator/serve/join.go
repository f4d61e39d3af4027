package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/home"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/runner"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/workspace"
	"orchestrator/wire"
	"orchestrator/wire/hostlink"
)

// joinFlags are the flags of join.
type joinFlags struct {
	labels   []string
	capacity int
	token    string
	yes      bool
}

// JoinCommand returns the join command.
func JoinCommand(a *cli.App) *cobra.Command {
	var f joinFlags
	verb := &cobra.Command{
		Use:   "join URL…",
		Short: "Run agents on this machine for a hub elsewhere",
		Long: `Makes this machine a host: the hub starts agents with a placement block here. The command,
the folder, the environment and the secrets of an agent are those of the configuration on this
machine, usually the same file as on the hub.

The host dials the hub, so it needs no open port. Of several URLs it uses the first that answers
as the hub at work. The token is from orchestrator token issue --actor HO:NAME at the hub, and
NAME is the name of the host. If the link is lost, the agents keep running for 20 seconds, or
for the grace of the host block. Then they are killed, and the hub starts them again on a host.

With --timeout it gives up if it cannot join in that time. Once joined, it retries forever.

Ctrl-C (or SIGTERM) drains the host: the hub stops its agents in order and starts them
elsewhere. A second one kills them.`,
		Example: `  orchestrator join https://h1:7433,https://h2:7433 --token host.token
  ORC_TOKEN=… orchestrator join https://h1:7433 --label gpu=a100 --capacity 4`,
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return joinHubs(a, f, args) },
	}
	set := verb.Flags()
	set.StringArrayVar(&f.labels, "label", nil, "describe this machine: `KEY=VALUE`, may be repeated")
	set.IntVar(&f.capacity, "capacity", 0, "run at most `N` agents")
	set.StringVar(&f.token, "token", "", "read the token of this host from `FILE` (else $ORC_TOKEN)")
	set.BoolVar(&f.yes, "yes", false, "do not ask before commands that you have not run from the file before")
	return verb
}

// A hostProgram is this program as a host.
type hostProgram struct {
	place  *hub.Place
	server *hub.Server
	config *config.Config
	base   []string
	app    *cli.App
	token  string
	urls   []*url.URL
	labels map[string]string
	flags  joinFlags
	specs  map[string]*settings.Agent

	authorities *x509.CertPool // of the certificates of hubs; nil for the authorities of the system

	host     *runner.Host
	workshop *workspace.Manager
	hub      atomic.Pointer[string] // the URL of the hub that it has joined last
	tokens   sync.Map               // of the runs here, by run
	told     map[string]string      // why the last attempt to join has failed, by the host of the URL
	unsaid   []string               // why attempts of this round have failed
}

// joinHubs runs a host until it is drained or killed.
func joinHubs(a *cli.App, f joinFlags, args []string) error {
	p := new(hub.Place)
	h := &hostProgram{place: p, server: hub.NewServer(p), app: a, flags: f, told: make(map[string]string)}
	if err := h.read(args); err != nil {
		return err
	}
	stateDir, err := h.configure()
	if err != nil {
		return err
	}
	dir := filepath.Join(stateDir, "host")
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	log := logger(a, h.config, a.Flags.JSON)
	p.StateDir, p.Socket, p.Log = dir, a.SocketPath(dir), log
	if err := p.Start(context.Background()); err != nil {
		return CannotHold(err, dir)
	}
	defer p.Stop()
	if err := h.openWorkspaces(); err != nil {
		return err
	}
	memory, err := runner.Remember(dir)
	if err != nil {
		return fmt.Errorf("preparing the state directory: %w", err)
	}
	door := &api.HostDoor{Host: h, Runs: h.place.Runs, Log: log, Guard: h.place.Guard}
	h.server.Serve(door.Handler())
	defer h.server.Stop()
	return h.serve(memory)
}

// Hub returns the URL of the hub that it has joined last, or "".
func (h *hostProgram) Hub() string { return *cmp.Or(h.hub.Load(), new(string)) }

// RunToken returns the token of a run here, or "".
func (h *hostProgram) RunToken(run string) string {
	token, _ := h.tokens.Load(run)
	text, _ := token.(string)
	return text
}

// read reads the flags, the token and the URLs.
func (h *hostProgram) read(args []string) error {
	h.token = h.app.Getenv("ORC_TOKEN")
	if h.flags.token != "" {
		text, err := os.ReadFile(h.app.Path(h.flags.token))
		if err != nil {
			return fmt.Errorf("reading the token: %w", err)
		}
		h.token = strings.TrimSpace(string(text))
	}
	if h.token == "" {
		return cli.UsageError("join needs the token of this host", "At the hub: orchestrator token issue --actor HO:NAME     here: --token FILE, or ORC_TOKEN=…")
	}
	h.labels = make(map[string]string)
	for _, text := range h.flags.labels {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return cli.UsageError(fmt.Sprintf("--label %q is not KEY=VALUE", text), "Write it as: --label gpu=a100")
		}
		h.labels[key] = value
	}
	if h.flags.capacity < 0 {
		return cli.UsageError("--capacity must be 1 or more", "Leave it out for any number of agents")
	}
	for _, arg := range args {
		for text := range strings.SplitSeq(arg, ",") {
			t, err := h.app.HostTarget(text)
			if err == nil && t.URL == "" {
				err = cli.UsageError(fmt.Sprintf("%q is not the URL of a hub", text), "Write it as: orchestrator join https://h1:7433")
			}
			if err != nil {
				return err
			}
			u, err := url.Parse(t.URL)
			if err != nil {
				return err
			}
			h.urls = append(h.urls, u)
		}
	}
	return nil
}

// configure reads the configuration of this machine and returns its state directory.
func (h *hostProgram) configure() (stateDir string, err error) {
	a := h.app
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return "", err
	}
	c, err := firstConfig(a, &hub.File{Load: loader(a, h.place, file, "", true)}, h.flags.yes)
	if err != nil {
		return "", err
	}
	h.config, h.base = c, hub.AgentBase(a.Environ)
	NoteLeftOut(a, c, h.base)
	if h.authorities, err = hubAuthorities(c.Store.CA); err != nil {
		return "", err
	}
	h.specs = make(map[string]*settings.Agent)
	specs := team.Agents(c, h.base)
	for i := range specs {
		h.specs[specs[i].Name] = &specs[i]
	}
	return c.Orchestrator.StateDir, nil
}

// openWorkspaces makes the workspace manager of this host. It returns an error if workspaces could not be made.
func (h *hostProgram) openWorkspaces() error {
	here := team.Workspaces(h.config, h.base)
	maps.DeleteFunc(here.Agents, func(_ string, a *workspace.Agent) bool { return !a.Placed })
	h.workshop = workspace.New(workspace.Options{
		Start: func(spec child.Spec) (workspace.Process, error) { return h.place.Host.Start(spec) }, Log: h.place.Log,
		Notes: home.Notes(h.place.Home.Dir),
	})
	h.workshop.Set(here)
	return unworkable(h.workshop.Check(context.Background(), here))
}

// serve joins hubs, again and again, until the host is drained or killed.
func (h *hostProgram) serve(memory runner.Memory) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	h.host = runner.New(ctx, runner.Options{
		Program: build.Version, Memory: memory, Labels: h.labels, Capacity: h.flags.capacity, Log: h.place.Log,
		Agents: h, Clock: child.SinceBoot, EndAt: h.place.Host.EndAt,
	})
	defer h.host.Close()
	drain := make(chan struct{})
	go func() {
		<-signals
		h.app.Note("Draining. Ctrl-C again kills the agents here.")
		close(drain)
		<-signals
		kill()
	}()
	patience := h.patience()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 3*time.Second) {
		reached := false
		h.unsaid = nil
		for _, u := range h.urls {
			joined, err := h.join(ctx, u, drain)
			if ctx.Err() != nil || isClosed(drain) && h.host.Done() {
				return nil
			}
			if final := h.final(u, err); final != nil {
				return final
			}
			if reached = reached || joined; joined {
				wait, patience = 200*time.Millisecond, nil
			}
		}
		h.sayAll()
		asked := drain
		if isClosed(drain) {
			if h.host.Idle() && !reached {
				return nil // no hub is connected that could hear of the ends
			}
			asked = nil
		}
		select {
		case <-time.After(wait):
		case <-asked:
		case <-patience:
			return h.app.TimedOut()
		case <-ctx.Done():
		}
	}
}

// patience returns a channel that receives after --timeout: then the host gives up its first
// attempt to join.
func (h *hostProgram) patience() <-chan time.Time {
	if limit := h.app.Flags.Timeout.Duration; limit > 0 {
		return time.After(limit)
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// final returns the failure for an error that another attempt would have as well. Other errors are shown, and it
// returns nil.
func (h *hostProgram) final(u *url.URL, err error) error {
	refusal, ok := errors.AsType[*wire.Error](err)
	if refused, is := errors.AsType[*runner.RefusedError](err); is {
		refusal, ok = refused.Why, true
	}
	if !ok {
		h.say(u, err)
		return nil
	}
	switch refusal.Code {
	case wire.CodeDenied, wire.CodeUnauthenticated, wire.CodeInvalid, wire.CodeNotFound:
		return &cli.Failure{Exit: cli.ExitDenied, Code: refusal.Code, Message: u.String() + ": " + refusal.Message, Hint: refusal.Hint}
	}
	h.say(u, refusal)
	return nil
}

// say keeps why a hub could not be joined for sayAll, unless the same was shown before.
func (h *hostProgram) say(u *url.URL, err error) {
	if err == nil || h.told[u.Host] == err.Error() {
		return
	}
	h.told[u.Host] = err.Error()
	h.unsaid = append(h.unsaid, fmt.Sprintf("Cannot join %s: %v", u, err))
}

// sayAll shows why no hub could be joined. Nobody needs to know which hubs stand by if another one was joined.
func (h *hostProgram) sayAll() {
	for _, text := range h.unsaid {
		h.app.Note("%s", text)
	}
	h.unsaid = nil
}

// join joins a hub and runs agents for it until the link ends. It reports whether it had joined.
func (h *hostProgram) join(ctx context.Context, u *url.URL, drain <-chan struct{}) (joined bool, err error) {
	conn, err := dialHub(ctx, u, h.authorities)
	if err != nil {
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
			err = fmt.Errorf("%w. Copy the certificate of the authority to this machine and set store.ca or SSL_CERT_FILE", err)
		}
		return false, err
	}
	defer conn.Close()
	in, err := api.DialLink(conn, u.Host, h.token)
	if err != nil {
		return false, err
	}
	at := u.String()
	err = h.host.Serve(ctx, link.New(conn, in), drain, func(l *hostlink.Line) {
		joined, h.unsaid = true, nil
		clear(h.told)
		h.hub.Store(&at)
		h.app.Note("Joined %s at %s.", wire.Visible(l.Hub), at)
	})
	if joined && err != nil { // it is nil after the host was drained
		h.app.Note("The link to %s is gone: %v", at, err)
	}
	return joined, err
}

// hubAuthorities returns the authorities of the certificates of hubs: the authorities of the
// system, and the authority of the store, if its file is on this machine.
func hubAuthorities(ca string) (*x509.CertPool, error) {
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	return pool, nil
}

// dialHub opens a connection to a hub.
func dialHub(ctx context.Context, u *url.URL, authorities *x509.CertPool) (net.Conn, error) {
	host, port := u.Hostname(), u.Port()
	dialer := &net.Dialer{Timeout: hostlink.Silence}
	if u.Scheme == "https" {
		secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}}
		return secure.DialContext(ctx, "tcp", net.JoinHostPort(host, cmp.Or(port, "443")))
	}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, cmp.Or(port, "80")))
}

// Launch starts the run that the hub has ordered.
func (h *hostProgram) Launch(ctx context.Context, order *hostlink.Line, spec child.Spec) (runner.Process, error) {
	if uuid.Validate(order.Run) != nil { // it becomes a part of paths
		return nil, &child.StartError{Reason: fmt.Sprintf("the hub orders a run %.40q, which is not a UUID", order.Run)}
	}
	agent := h.specs[order.Agent]
	if agent == nil {
		return nil, &child.StartError{
			Reason: fmt.Sprintf("the configuration there has no agent %q", order.Agent), Hint: "use the same file on the hub and its hosts", Err: runner.ErrUnknownAgent,
		}
	}
	user, err := child.FindUser(agent.User)
	if err != nil {
		return nil, err
	}
	uid := 0
	if user != nil {
		uid = user.UID
	}
	h.Renew(order)
	env := slices.DeleteFunc(slices.Clone(order.Env), func(entry string) bool {
		return !strings.HasPrefix(entry, "ORC_") || strings.HasPrefix(entry, api.EnvURL+"=") || strings.HasPrefix(entry, api.EnvSocket+"=")
	})
	ways, shut, err := h.place.Runs.Open(order.Agent, spec.Run, uid)
	if err != nil {
		h.place.Log.Warn("agents have no socket", "agent", order.Agent, "error", err)
	}
	for _, entry := range ways {
		if strings.HasPrefix(entry, api.EnvSocket+"=") {
			env = append(env, entry)
		}
	}
	leave := func() {
		shut()
		h.tokens.Delete(spec.Run)
	}
	spec.Listener = hostRun{Listener: spec.Listener, leave: leave}
	p, err := supervisor.Launch(ctx, agent, h.place.Launch, append(env, api.EnvURL+"="+*h.hub.Load()), order.Conversation, spec)
	if err != nil {
		leave()
		return nil, err
	}
	return p, nil
}

// A hostRun listens to a run for the hub.
type hostRun struct {
	child.Listener
	leave func() // takes the socket and the token of the run away
}

func (r hostRun) Ended(ending child.Ending) {
	r.leave()
	r.Listener.Ended(ending)
}

// Renew stores the token of a run, which is in the hub's start line.
func (h *hostProgram) Renew(order *hostlink.Line) {
	for _, entry := range order.Env {
		if token, ok := strings.CutPrefix(entry, api.EnvToken+"="); ok {
			h.tokens.Store(order.Run, token)
		}
	}
}

// Work answers a request about the workspace of an agent.
func (h *hostProgram) Work(ctx context.Context, agent string, request []byte) ([]byte, error) {
	return h.workshop.Serve(ctx, agent, request)
}
