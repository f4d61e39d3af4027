// Package serve holds the commands that run, start, stop and maintain an orchestrator: up, run, pipe, reload, upgrade, down
// and join. Package hub is the orchestrator. Here are flags, signals and the console, and the words of errors.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/console"
	"orchestrator/cmd/orchestrator/serve/ownlog"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/cmd/orchestrator/why"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// upFlags are the flags of up.
type upFlags struct {
	detach         bool
	noDeps         bool
	ui             bool // print the address of the web view
	yes            bool // run new commands without asking
	exitWhenIdle   bool
	abortOnFailure bool
	logFormat      cli.Choice
	node           string
	answers        string
	scripted       []scripted
	report         string // a file, or ""
	reported       bool   // --report was given
	pinned         string // stays visible on a terminal, or ""
}

// UpCommand returns the up command.
func UpCommand(a *cli.App) *cobra.Command {
	f := upFlags{logFormat: cli.Choice{Value: "auto", Of: []string{"auto", "console", "json"}}}
	verb := &cobra.Command{
		Use:   "up [AGENT…]",
		Short: "Start the agents and watch them",
		Long: `Starts the agents of the configuration in the order of their dependencies, and shows
their output until you stop it. If agents are named, only these and their dependencies
start. Nothing is started if the file has a mistake. Task blocks are given out once.
On a terminal, up asks before it runs commands of a file that you have not run before.

Ctrl-C (or SIGTERM) shuts everything down cleanly; a second one kills. Closing the terminal
counts as the first Ctrl-C. Any other SIGHUP reloads the file, as orchestrator reload
does. The exit code is 0 after a clean stop, and 130 or 143 after a forced one.

On a terminal the last rows show current work and open questions. To answer, type the
question's id and the answer, or only the answer if one question is open. At the end, up
prints a summary of completed and lost work.`,
		Example: `  orchestrator up
  orchestrator up web worker         only these and their dependencies
  orchestrator up -d                 in the background, once all have started
  orchestrator up --exit-when-idle   ends with the last task or agent
  orchestrator up --exit-when-idle --report tasks.xml    for CI, as JUnit`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteAgents,
		RunE: func(verb *cobra.Command, args []string) error {
			f.reported = verb.Flags().Changed("report")
			for { // a hub that another one has replaced stands by again
				if err := up(a, f, args); !errors.Is(err, hub.ErrDeposed) {
					return err
				}
			}
		},
	}
	set := verb.Flags()
	set.BoolVarP(&f.detach, "detach", "d", false, "run in the background; returns when every agent has started")
	set.BoolVar(&f.yes, "yes", false, "do not ask before commands that you have not run from the file before")
	set.BoolVar(&f.noDeps, "no-deps", false, "start the named agents without their dependencies")
	set.BoolVar(&f.ui, "ui", false, "print the address of the web view, with a one-time sign-in code")
	set.BoolVar(&f.exitWhenIdle, "exit-when-idle", false, "stop when all agents or all tasks have ended; exit 1 if a task is not done or not merged, or an agent failed")
	set.BoolVar(&f.abortOnFailure, "abort-on-failure", false, "stop everything when one agent fails for good; exit 1")
	set.StringVar(&f.node, "node", "", "the `HUB` of a shared store that this one is, if its machine does not say so")
	set.StringVar(&f.answers, "answers", "", "answer questions from `FILE`: lines such as \"Which login* => oauth\"")
	set.StringVar(&f.report, "report", "", "write a report on the tasks to `FILE` at the end: .json, .xml (JUnit) or .html")
	set.Var(&f.logFormat, "log-format", "format of lines: console, json, or auto for console")
	return verb
}

// UpUntilIdle starts the agents of a file that the program itself has written, and stops when all tasks have ended. On a
// terminal, the pinned text stays visible.
func UpUntilIdle(a *cli.App, pinned string) error {
	return up(a, upFlags{yes: true, exitWhenIdle: true, pinned: pinned, logFormat: cli.Choice{Value: "auto"}}, nil)
}

// loader returns the function that reads the configuration, for a hub or a host. node names this hub, or is "". The
// commands of secrets run at a place.
func loader(a *cli.App, p *hub.Place, file, node string, host bool) func() (*config.Config, config.Problems) {
	return func() (*config.Config, config.Problems) {
		options := a.Options()
		options.Run, options.Rights, options.Node, options.Host = p.Run, rights, cmp.Or(node, options.Node), host
		return config.Load(file, options)
	}
}

// files reads the answers and checks the file of the report.
func (f *upFlags) files(a *cli.App) (err error) {
	if f.reported && f.report == "" {
		return cli.UsageError("--report is empty", "Name a file FILE.json, FILE.xml or FILE.html, or leave it out")
	}
	if f.answers != "" {
		if f.scripted, err = readAnswers(a.Path(f.answers)); err != nil {
			return err
		}
	}
	if f.report != "" {
		f.report = a.Path(f.report)
		return console.FitReport(f.report)
	}
	return nil
}

func up(a *cli.App, f upFlags, names []string) error {
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return err
	}
	if err := f.files(a); err != nil {
		return err
	}
	p, own := new(hub.Place), hub.NewFile()
	own.Chosen, own.NoDeps = names, f.noDeps
	own.Load = loader(a, p, file, f.node, false)
	c, err := firstConfig(a, own, f.yes)
	if err != nil {
		return err
	}
	if a.Getenv(hub.UpgradeEnv) == hub.CheckUpgrade {
		return readsRecord(a, c)
	}
	if p.Before, err = handedOver(a); err != nil {
		return err
	}
	if f.detach && !isDetached(a) {
		if err := detach(a, c); err != nil || !f.ui {
			return err
		}
		return noteWeb(a)
	}
	if f.detach {
		own := ownlog.New(os.Stdout)
		a.Stdout, a.Stderr = own, own
	}
	console.Prepare(a, f.logFormat.Value == "json")
	t := NewHub(a, p, own, c, logger(a, c, a.Flags.JSON || f.logFormat.Value == "json"))
	ctx := context.Background()
	if err := t.Hold(ctx); err != nil {
		return CannotHold(err, p.StateDir)
	}
	defer t.Stop()
	own.Config, own.Base = c, hub.AgentBase(a.Environ)
	urls, err := begin(ctx, t, supervisor.Options{
		Name: c.Orchestrator.Name, Config: file, ExitWhenIdle: f.exitWhenIdle, AbortOnFailure: f.abortOnFailure,
	})
	if err != nil {
		return err
	}
	defer a.NoteTeam(file, a.SocketPath(c.Orchestrator.StateDir))()
	greet(a, c, file, urls)
	NoteLeftOut(a, c, own.Base)
	return work(a, t, f)
}

// begin starts the parts of a hub before its API, and returns the URLs of its listeners.
func begin(ctx context.Context, t *hub.Hub, o supervisor.Options) (urls []string, err error) {
	c := t.Config
	if urls, err = t.Listen(ctx); err != nil {
		return nil, cannotListen(err, c.Place("http.listen"))
	}
	if c.Store.Shared() {
		if err := standBy(t); err != nil {
			return nil, err
		}
	}
	if err := t.Supervise(ctx, o); err != nil {
		return nil, CannotRecord(err, c.Store)
	}
	if wrong, ok := errors.AsType[*hub.WorkError](t.CheckWork(ctx)); ok {
		return nil, unworkable(wrong.Reasons)
	}
	return urls, nil
}

// NewHub returns a hub at a place in a state directory.
func NewHub(a *cli.App, p *hub.Place, own *hub.File, c *config.Config, log hclog.Logger) *hub.Hub {
	p.StateDir, p.Socket, p.Log = c.Orchestrator.StateDir, a.SocketPath(c.Orchestrator.StateDir), log
	return hub.New(p, own, hub.Options{Version: build.Version, Config: c, Environ: a.Environ, Note: a.Note, MCP: serveMCP, Explain: why.Text, Commands: &commands{up: a, file: c.File, stateDir: p.StateDir, socket: p.Socket}})
}

// standBy waits for the turn of a hub, or a signal.
func standBy(t *hub.Hub) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := t.Config
	if err := whichHub(c.Store, "up"); err != nil {
		return err
	}
	if err := notMoved(c); err != nil {
		return err
	}
	switch err := t.StandBy(ctx); {
	case errors.Is(err, hub.ErrEnded):
		return cli.ExitWith(cli.ExitOK)
	case err != nil:
		return cannotShare(err, c.Store)
	}
	return nil
}

// unworkable returns the failure for the reasons why workspaces could not be made, or nil without
// reasons.
func unworkable(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitUsage, Code: wire.CodeInvalid, Message: reasons[0], Because: append(reasons[1:], "Nothing was started."),
		Hint: "See orchestrator help verified",
	}
}

// greet reports the start of the team.
func greet(a *cli.App, c *config.Config, file string, urls []string) {
	a.Note("%s  %s  %s", build.Line(), c.Orchestrator.Name, file)
	for _, url := range urls {
		a.Note("Listening at %s", url)
	}
	if term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stdout) {
		a.Note("Ctrl-C shuts everything down cleanly. A second Ctrl-C kills it.")
	}
}

// NoteLeftOut lists variables that look like credentials, and are therefore not passed on to
// agents.
func NoteLeftOut(a *cli.App, c *config.Config, base []string) {
	if names := c.LeftOut(base); len(names) > 0 {
		a.Note("Not passed to agents, because they look like credentials: %s. To pass one: orchestrator help environment", strings.Join(names, ", "))
	}
}

// firstConfig loads the configuration of a team that is about to start, and checks whether its
// commands may run.
func firstConfig(a *cli.App, f *hub.File, yes bool) (*config.Config, error) {
	c, problems := f.Load()
	if problems.Errors() > 0 {
		return nil, a.Invalid(problems, "Nothing was started.")
	}
	if len(problems) > 0 {
		_ = a.ShowProblems(problems, "", cli.ExitOK)
	}
	if err := knowAgents(c, f.Chosen, "up"); err != nil || isDetached(a) || a.Getenv(hub.UpgradeEnv) != "" {
		return c, err
	}
	return c, a.CheckTrust(c, c.Commands(), yes, "Read them, then: orchestrator up --yes")
}

// work runs a team until its end, with its API open and its output shown.
func work(a *cli.App, t *hub.Hub, f upFlags) error {
	began := time.Now()
	signals := heed(a, t) // before a client can see that it runs
	show := console.New(a, shown(a, t, f, signals.hurry))
	defer show.Close()
	t.BeforeUpgrade(func() { show.Drain(hub.PauseTime) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		show.Run()
	}()
	t.Serve()
	noteURL(a, t.ShowWeb(f.ui && !isDetached(a)))
	responding, enough := context.WithCancel(signals.ctx)
	defer enough()
	if f.detach && isDetached(a) {
		turning, stop := context.WithCancel(context.Background())
		defer stop()
		go ownlog.Keep(turning, filepath.Join(t.Place.Home.Dir, "orchestrator.log"), func(err error) {
			t.Place.Log.Error("orchestrator.log can no longer be rotated", "error", err)
		})
	}
	respond(responding, a, t, f.scripted, show.Typed())
	if f.exitWhenIdle && show.Typed() == nil && f.logFormat.Value != "json" {
		go console.Standby(responding, a, t.Super) // it holds no resources and ends with responding
	}
	err := t.Run(signals.ctx)
	if !signals.await(done) {
		show.Close() // restore the terminal for the messages below
		t.Place.Log.Warn("the last lines are not shown: their reader does not read them")
	}
	forced := signals.end()
	if forced == 0 {
		t.NoteEnd(err)
	}
	t.Shut()
	unwritten := writeReport(t, f.report, began)
	switch {
	case forced != 0:
		if unwritten != nil {
			a.Note("%v", unwritten)
		}
		return cli.ExitWith(forced)
	case unwritten != nil:
		return unwritten
	case errors.Is(err, supervisor.ErrAgentsFailed), errors.Is(err, supervisor.ErrTasksUndone), errors.Is(err, supervisor.ErrUnmerged):
		return cli.ExitWith(cli.ExitNo)
	}
	return cannotGoOn(err, t.Place.StateDir)
}

// shown returns the settings of the console of up.
func shown(a *cli.App, t *hub.Hub, f upFlags, hurry <-chan struct{}) console.Options {
	o := console.Options{
		Team: t.Super, Log: t.Place.Log, JSON: f.logFormat.Value == "json", Output: !isDetached(a), Hurry: hurry,
		Signal:   t.Signal,
		Pinned:   f.pinned,
		Volatile: t.Config.Store.Kind == "memory",
		Messages: t.Messages,
	}
	for i := range t.Config.Agents {
		o.Agents = append(o.Agents, t.Config.Agents[i].Name)
	}
	return o
}

// writeReport writes the report on the tasks since began to a file, if one is given.
func writeReport(t *hub.Hub, file string, began time.Time) error {
	if file == "" {
		return nil
	}
	tasks, err := t.Super.Since(began)
	if err != nil {
		t.Place.Log.Warn("the report lacks the text of some errors", "error", err)
	}
	return console.WriteReport(file, t.Config.Orchestrator.Name, began, tasks)
}

// noteURL prints the address of the web view, if there is one.
func noteURL(a *cli.App, url string) {
	if url != "" {
		a.Note("The web view is at %s (valid once, for two minutes; later: orchestrator ui)", url)
	}
}

// noteWeb prints the address of the web view of an orchestrator in the background.
func noteWeb(a *cli.App) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := a.Ask(ctx, d, "open-ui", control.OpenUIRequest{})
		if err != nil {
			return err
		}
		reply, err := client.Decode[control.OpenUIReply](text)
		noteURL(a, reply.URL)
		return err
	})
}

// cannotListen returns the failure for a listener that cannot be opened, with the program
// that uses the address if it is known.
func cannotListen(err error, place string) error {
	address := ""
	if failed, ok := errors.AsType[*hub.ListenError](err); ok {
		address = failed.Address
	}
	if address == "" {
		place = ""
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot serve http.listen" + at(place) + ": " + err.Error(),
		Because: []string{"Nothing was started."},
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		f.Exit, f.Code = cli.ExitConflict, wire.CodeConflict
		if pid, name := listenerAt(address); pid != 0 {
			f.Message = fmt.Sprintf("cannot serve http.listen%s: %s is in use by pid %d (%s)", at(place), address, pid, name)
			f.Details = map[string]any{"address": address, "pid": pid, "program": name}
		}
		f.Hint = "Set another port, or 0 for any free port, or end the other program"
	case errors.Is(err, syscall.EACCES):
		f.Exit, f.Code = cli.ExitDenied, wire.CodeDenied
		f.Hint = "Ports below 1024 require privileges: set another one, for example 7433"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Hint = "No interface of this machine has that address. For this machine only, use 127.0.0.1"
	}
	return f
}

func at(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

// knowAgents returns an error for a name that is not an agent.
func knowAgents(c *config.Config, names []string, verb string) error {
	var known []string
	for i := range c.Agents {
		known = append(known, c.Agents[i].Name, c.Agents[i].Block)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		return &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
			Message: fmt.Sprintf("agent %q does not exist in %s%s", name, filepath.Base(c.File), cli.DidYouMean(name, known)),
			Because: []string{declared(known), "Nothing was started."},
			Hint:    "To use all agents of the file: orchestrator " + verb,
			Details: map[string]any{"agent": name, "agents": known},
		}
	}
	return nil
}

// declared returns a sentence with the first few agents of the file.
func declared(known []string) string {
	const few = 20
	switch {
	case len(known) == 0:
		return "The file declares no agents."
	case len(known) > few:
		return fmt.Sprintf("It declares %s and %d more.", strings.Join(known[:few], ", "), len(known)-few)
	}
	return "It declares " + strings.Join(known, ", ") + "."
}

// logger returns the orchestrator's own log, on stderr. Its format is the format of the output,
// unless the file or the environment sets one.
func logger(a *cli.App, c *config.Config, asJSON bool) hclog.Logger {
	level, format := c.Log.Level, c.Log.Format
	if word := a.Getenv("ORC_LOG"); word != "" {
		level = word
	}
	if word := a.Getenv("ORC_LOG_FORMAT"); word != "" {
		format = word
	}
	color := hclog.ColorOff
	if a.Paint(a.Stderr) {
		color = hclog.ForceColor
	}
	return hclog.New(&hclog.LoggerOptions{
		Name:       "orchestrator",
		Level:      hub.LogLevel(level),
		Output:     a.Stderr,
		JSONFormat: format == "json" || format == "auto" && asJSON && !term.IsTerminal(a.Stderr),
		Color:      color,
		TimeFn:     time.Now,
	})
}
