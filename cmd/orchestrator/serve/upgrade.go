package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/serve/team"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/web"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// upgradeEnv is set for the program that replaces this one: the file descriptor of a handover, or
// checkUpgrade, with which the program only reports whether it could go on.
const (
	upgradeEnv   = "ORC_UPGRADE"
	checkUpgrade = "check"
)

// handoverFormat changes when a program cannot read the handover of an earlier one.
const handoverFormat = 1

// States of an upgrade.
const (
	upgradeRuns   = "running"
	upgradeDone   = "done"
	upgradeFailed = "failed"
)

// A handover is what a program leaves for the one that replaces it in this process.
type handover struct {
	Format   int                 `json:"format"`
	Upgrade  control.Upgrade     `json:"upgrade"`
	Held     time.Time           `json:"held"` // since then nothing is decided
	Locks    []int               `json:"locks"`
	Socket   int                 `json:"socket"`
	TCP      map[string]int      `json:"tcp"` // by configured address
	Runs     []api.HandedRun     `json:"runs"`
	Children child.Handover      `json:"children"`
	Team     supervisor.Handover `json:"team"`
}

// An ability is what a program prints with checkUpgrade.
type ability struct {
	Format  int    `json:"format"`
	Version string `json:"version"`
	Error   string `json:"error"`
}

// UpgradeCommand returns the upgrade command.
func UpgradeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade [PROGRAM]",
		Short: "Replace the running program, and keep its agents running",
		Long: `Replaces the program of the running orchestrator by another version of it. The agents
keep running, with their stdin and stdout, and nothing that was confirmed is lost. Without
an argument the file of the running program is executed again, which may be new.

The upgrade is refused if the other program cannot read the file or the record, if the
file has changed, and while an agent is being started or stopped. Coding agents and
agents that joined over a connection cannot go over. An agent that doesn't read its
stdin keeps an upgrade from happening: decisions wait up to 3 seconds for it, then the
upgrade is refused. If it fails, everything goes on with the old program. HTTP requests
and streams that are open are cut off.`,
		Example: `  orchestrator upgrade
  orchestrator upgrade ./orchestrator-new`,
		Args: cli.ArgCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			program := ""
			if len(args) > 0 {
				program = a.Path(args[0])
			}
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return upgradeRunning(ctx, a, d, program) })
		},
	}
}

// upgradeRunning asks for an upgrade and waits for its end.
func upgradeRunning(ctx context.Context, a *cli.App, d *client.Client, program string) error {
	text, err := a.Ask(ctx, d, "upgrade", control.UpgradeRequest{Program: program})
	if err != nil {
		return err
	}
	asked, err := client.Decode[control.Upgrade](text)
	if err != nil {
		return err
	}
	u, err := awaitUpgrade(ctx, a, d, &asked)
	if err != nil {
		return err
	}
	return showUpgrade(a, u)
}

const (
	upgradeTime = time.Minute     // how long an upgrade may take for the one who has asked for it
	lookTime    = 2 * time.Second // how long it waits for a status, because a program that hangs gives none
)

// awaitUpgrade waits for the end of an upgrade. Meanwhile connections wait, and some are cut off.
func awaitUpgrade(ctx context.Context, a *cli.App, d *client.Client, asked *control.Upgrade) (*control.Upgrade, error) {
	defer a.ShowWait("the other program to go on")()
	process, err := child.Observe(asked.PID)
	if err == nil {
		defer process.Close()
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(upgradeTime)
	defer limit.Stop()
	for {
		how, ended := process.Ended() // before the look: the last look is after the end
		if u := lookAtUpgrade(ctx, d); u != nil && u.ID == asked.ID && u.State != upgradeRuns {
			return u, nil
		}
		if ended {
			return nil, endedMidway(a, how)
		}
		select {
		case <-again.C:
		case <-limit.C:
			return nil, &cli.Failure{
				Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the upgrade has not ended after a minute",
				Because: []string{fmt.Sprintf("Process %d runs, and does not say how far it is.", asked.PID)}, Hint: "Look: orchestrator status",
			}
		case <-ctx.Done():
			return nil, a.Ended(ctx)
		}
	}
}

// lookAtUpgrade returns the latest upgrade, or nil if the orchestrator does not answer at the moment.
func lookAtUpgrade(ctx context.Context, d *client.Client) *control.Upgrade {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	text, err := d.Ask(ctx, "status", struct{}{})
	if err != nil {
		return nil
	}
	status, err := client.Decode[control.Status](text)
	if err != nil {
		return nil
	}
	return status.Upgrade
}

// endedMidway returns the failure for a program that has ended before it went on.
func endedMidway(a *cli.App, how string) *cli.Failure {
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the new program has ended",
		Because: []string{"Its agents end with it. Nothing that was confirmed is lost."}, Hint: "Start the team again: orchestrator up" + a.Named(),
	}
	if how != "" {
		f.Message += " (" + how + ")"
	}
	return f
}

func showUpgrade(a *cli.App, u *control.Upgrade) error {
	if u.State == upgradeFailed {
		return &cli.Failure{
			Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: "the upgrade has failed: " + u.Error,
			Because: []string{"Everything goes on with version " + u.From + "."}, Hint: u.Hint,
		}
	}
	if a.JSON() {
		return a.Document(u)
	}
	versions := "Upgraded from " + u.From + " to " + u.To
	if u.From == u.To { // maybe the same file
		versions = "Started the program of version " + u.To + " again"
	}
	return a.Print("%s in %d ms. %s went over.\n", versions, u.TookMS, term.Count(u.Agents, "running agent"))
}

// upgrade checks whether another program can go on, and starts the upgrade. Status tells its end.
func (t *Instance) upgrade(ctx context.Context, r control.UpgradeRequest) (control.Upgrade, error) {
	if c := api.CallerOf(ctx); !c.Wide || c.Name != "" { // it may execute any program, outside of any confinement
		return control.Upgrade{}, &wire.Error{Code: wire.CodeDenied, Message: "an upgrade is only for the user, at the operators' socket"}
	}
	u := control.Upgrade{FormatVersion: wire.FormatVersion, ID: uuid.NewString(), From: cli.Version, State: upgradeRuns, PID: os.Getpid()}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return u, context.Cause(ctx)
	}
	err := t.mayUpgrade(ctx, r, &u)
	if err != nil {
		<-t.turn
		return u, err
	}
	t.upgraded.Store(&u)
	go func() {
		defer func() { <-t.turn }()
		t.replace(u)
	}()
	return u, nil
}

// mayUpgrade completes u, or returns an error if no upgrade is possible.
func (t *Instance) mayUpgrade(ctx context.Context, r control.UpgradeRequest, u *control.Upgrade) (err error) {
	refused := func(format string, args ...any) error {
		return &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf(format, args...), Hint: "Nothing was changed."}
	}
	if t.load == nil || t.config.Store.Kind == "memory" {
		return refused("this orchestrator keeps no record, and so cannot be upgraded")
	}
	if t.shared != nil { // another hub would take over meanwhile
		return refused("a hub is not upgraded in place: stop it, and start the other program. Another hub goes on meanwhile")
	}
	next, problems := t.load()
	if problems.Errors() > 0 {
		return refused("the configuration has a mistake now: orchestrator validate")
	}
	if changes := config.Compare(t.config, next); len(changes) > 0 {
		return refused("the configuration has changed; apply it first: orchestrator reload")
	}
	if u.Program, err = programOf(r.Program); err != nil {
		return refused("%v", err)
	}
	can, err := t.ability(ctx, u.Program)
	switch {
	case err != nil:
		return refused("%s cannot go on: %v", u.Program, err)
	case can.Error != "":
		return refused("%s cannot go on: %s", u.Program, can.Error)
	case can.Format != handoverFormat:
		return refused("%s (version %s) reads other handovers than this version %s; stop and start instead: orchestrator down", u.Program, can.Version, cli.Version)
	}
	u.To = can.Version
	return nil
}

// programOf returns the path of a program, or of the file that this program was started from. That
// file may have been replaced.
func programOf(program string) (string, error) {
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		program = strings.TrimSuffix(self, " (deleted)")
	}
	if !filepath.IsAbs(program) {
		return "", fmt.Errorf("%q is not an absolute path", program)
	}
	if err := unix.Access(program, unix.X_OK); err != nil {
		return "", fmt.Errorf("%s cannot be executed: %w", program, err)
	}
	return program, nil
}

// checkTime is how long another program may take to read the record.
const checkTime = time.Minute

// ability runs a program to find out whether it can go on.
func (t *Instance) ability(ctx context.Context, program string) (can ability, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return can, err
	}
	out, err := t.host.Run(ctx, append([]string{program}, os.Args[1:]...), dir, upgradeEnviron(checkUpgrade))
	if err != nil {
		return can, err
	}
	if json.Unmarshal(out, &can) != nil || can.Version == "" {
		return can, errors.New("it is no orchestrator that can be upgraded to")
	}
	return can, nil
}

// upgradeEnviron returns the environment of the other program.
func upgradeEnviron(value string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, upgradeEnv+"=") })
	return append(env, upgradeEnv+"="+value)
}

// pauseTime is how long HTTP requests may take to end before an upgrade cuts them off. Streams do not end
// by themselves.
const pauseTime = 200 * time.Millisecond

// replace executes another program. It returns only if that fails.
func (t *Instance) replace(u control.Upgrade) {
	t.server.Pause(pauseTime)
	held := time.Now()
	err := t.Super.HandOver(context.Background(), func(team supervisor.Handover) error {
		h := &handover{Format: handoverFormat, Upgrade: u, Held: held, Team: team}
		return t.become(u.Program, h)
	})
	t.server.Resume()
	u.State, u.Error = upgradeFailed, err.Error()
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		u.Hint = refusal.Hint
	}
	t.upgraded.Store(&u)
	t.log.Error("the upgrade has failed, and this program goes on", "program", u.Program, "error", err)
	t.Super.Report(&wire.Event{Kind: events.OrchestratorRemained, Text: "an upgrade to " + u.To + " has failed: " + u.Error})
}

// become executes a program with a handover.
func (t *Instance) become(program string, h *handover) error {
	var err error
	if h.Children, err = t.host.Handover(); err != nil {
		return err
	}
	if h.Runs, err = t.runs.Handover(); err != nil {
		return err
	}
	if h.Socket, err = api.FileOf(t.listener); err != nil {
		return err
	}
	h.Locks, h.TCP = t.Home.Files(), make(map[string]int)
	files := append(h.Children.Files(), append(h.Locks, h.Socket)...)
	for _, r := range h.Runs {
		if r.File >= 0 {
			files = append(files, r.File)
		}
	}
	for i, address := range t.config.HTTP.Listen {
		if h.TCP[address], err = api.FileOf(t.remote[i]); err != nil {
			return err
		}
		files = append(files, h.TCP[address])
	}
	if own := t.web.Listener(); own != nil {
		if h.TCP[web.Address], err = api.FileOf(own); err != nil {
			return err
		}
		files = append(files, h.TCP[web.Address])
	}
	h.Upgrade.Agents = len(h.Children.Children)
	state, err := stateFile(t.Home.Dir, h)
	if err != nil {
		return err
	}
	defer state.Close()
	if t.drain != nil {
		t.drain()
	}
	fd := int(state.Fd())
	return t.host.Exec(program, os.Args, upgradeEnviron(strconv.Itoa(fd)), append(files, fd))
}

// stateFile returns a file without a name that has a handover.
func stateFile(dir string, h *handover) (*os.File, error) {
	file, err := os.CreateTemp(dir, "upgrade-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name())
	if err = json.NewEncoder(file).Encode(h); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// handedOver returns what the program before this one has left, or nil.
func handedOver(a *cli.App) (*handover, error) {
	value := a.Getenv(upgradeEnv)
	if value == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		return nil, cli.UsageError(fmt.Sprintf("%s is %q", upgradeEnv, wire.Visible(value)), "Unset it: it is for orchestrator upgrade")
	}
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "handover")
	defer file.Close()
	h := new(handover)
	if err := json.NewDecoder(file).Decode(h); err != nil {
		return nil, fmt.Errorf("reading the handover: %w", err)
	}
	if h.Format != handoverFormat {
		return nil, fmt.Errorf("the handover has format %d, and this program reads %d", h.Format, handoverFormat)
	}
	return h, nil
}

// adopt goes on with a child of the program before this one. It returns nil if the run is not one
// of these.
func (h *handover) adopt(host *child.Host, spec child.Spec) (*child.Child, error) {
	if h == nil {
		return nil, nil
	}
	i := slices.IndexFunc(h.Children.Children, func(c child.Handed) bool { return c.Run == spec.Run })
	if i < 0 {
		return nil, nil
	}
	return host.Adopt(spec, h.Children.Children[i])
}

// listen opens a TCP listener, or takes that of the program before this one.
func (h *handover) listen(address string, o api.TCP) (*api.TCPListener, error) {
	if h != nil {
		if fd, ok := h.TCP[address]; ok {
			return api.InheritTCP(fd, address, o)
		}
	}
	return api.ListenTCP(address, o)
}

// settled records the end of an upgrade.
func (t *Instance) settled() {
	if t.before == nil {
		return
	}
	if n := t.host.Unclaimed(); n > 0 {
		t.log.Error("children of the program before were ended, because no agent has them", "count", n)
	}
	u := t.before.Upgrade
	u.State, u.To, u.TookMS = upgradeDone, cli.Version, time.Since(t.before.Held).Milliseconds()
	t.upgraded.Store(&u)
	t.before.Team, t.before.Runs = supervisor.Handover{}, nil // they may be large
	t.log.Info("upgraded", "from", u.From, "to", u.To, "agents", u.Agents, "took", time.Since(t.before.Held).Round(time.Millisecond))
}

// readsRecord prints whether this program could go on with a configuration and its record.
func readsRecord(a *cli.App, c *config.Config) error {
	can := ability{Format: handoverFormat, Version: cli.Version}
	if err := restores(c); err != nil {
		can.Error = err.Error()
	}
	text, err := json.Marshal(can)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s\n", text)
	return err
}

// restores returns an error unless the state can be restored from the record.
func restores(c *config.Config) error {
	ctx := context.Background()
	record, err := eventlog.Open(ctx, eventlog.Options{Path: c.Store.Path, ReadOnly: true})
	if err != nil {
		return err
	}
	defer record.Close()
	t := NewTeam()
	o := supervisor.Options{Name: c.Orchestrator.Name, Version: cli.Version, Record: record, ReadOnly: true, Log: hclog.NewNullLogger()}
	o.Rules, o.Protocol = team.Rules(c)
	return supervisor.New(o, t.specs(c)).Restore(ctx)
}
