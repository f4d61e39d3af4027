package hub

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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/web"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// UpgradeEnv is set for the program that replaces this one: the file descriptor of a handover, or
// CheckUpgrade, if the program is only to report whether it could go on.
const (
	UpgradeEnv   = "ORC_UPGRADE"
	CheckUpgrade = "check"
)

// handoverFormat changes when a program cannot read the handover of an earlier one.
const handoverFormat = 1

// States of an upgrade.
const (
	UpgradeRuns   = "running"
	upgradeDone   = "done"
	UpgradeFailed = "failed"
)

// A Handover is the state that a program leaves to its successor in this process.
type Handover struct {
	Format   int                 `json:"format"`
	Upgrade  control.Upgrade     `json:"upgrade"`
	Held     time.Time           `json:"held"` // since then all decisions wait
	Locks    []int               `json:"locks"`
	Socket   int                 `json:"socket"`
	TCP      map[string]int      `json:"tcp"` // by configured address
	Runs     []api.HandedRun     `json:"runs"`
	Children child.Handover      `json:"children"`
	Team     supervisor.Handover `json:"team"`
}

// An ability is the output of a program with CheckUpgrade.
type ability struct {
	Format  int    `json:"format"`
	Version string `json:"version"`
	Error   string `json:"error"`
}

// upgrades replace the program of a hub by another one.
type upgrades struct {
	version   string
	place     *Place
	file      *File
	record    *record
	listeners *listeners
	server    *Server
	own       *requester
	web       *web.View
	latest    atomic.Pointer[control.Upgrade]
	Drain     func() // prints waiting lines, and erases the rows of the terminal; may be nil
}

// upgrade checks whether another program can go on, and starts the upgrade. Status tells its end.
func (x *upgrades) upgrade(ctx context.Context, r control.UpgradeRequest) (control.Upgrade, error) {
	if c := api.CallerOf(ctx); !c.Wide || c.Name != "" { // it may execute any program, outside of any confinement
		return control.Upgrade{}, &wire.Error{Code: wire.CodeDenied, Message: "an upgrade is only for the user, at the operators' socket"}
	}
	u := control.Upgrade{FormatVersion: wire.FormatVersion, ID: uuid.NewString(), From: x.version, State: UpgradeRuns, PID: os.Getpid()}
	if err := x.file.lock(ctx); err != nil {
		return u, err
	}
	if err := x.mayUpgrade(ctx, r, &u); err != nil {
		x.file.unlock()
		return u, err
	}
	x.latest.Store(&u)
	go func() {
		defer x.file.unlock()
		x.replace(u)
	}()
	return u, nil
}

// mayUpgrade completes u, or returns an error if no upgrade is possible.
func (x *upgrades) mayUpgrade(ctx context.Context, r control.UpgradeRequest, u *control.Upgrade) (err error) {
	refused := func(format string, args ...any) error {
		return &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf(format, args...), Hint: "Nothing was changed."}
	}
	if x.file.Load == nil || x.file.Config.Store.Kind == "memory" {
		return refused("this orchestrator keeps no record, and so cannot be upgraded")
	}
	if x.record.shared != nil { // another hub would take over
		return refused("a hub is not upgraded in place: stop it, and start the new program. Until then, another hub takes over")
	}
	next, problems := x.file.Load()
	if problems.Errors() > 0 {
		return refused("the configuration has a mistake. Show it: orchestrator validate")
	}
	if changes := config.Compare(x.file.Config, next); len(changes) > 0 {
		return refused("the configuration has changed; apply it first: orchestrator reload")
	}
	if u.Program, err = programOf(r.Program); err != nil {
		return refused("%v", err)
	}
	can, err := x.ability(ctx, u.Program)
	switch {
	case err != nil:
		return refused("%s cannot continue: %v", u.Program, err)
	case can.Error != "":
		return refused("%s cannot continue: %s", u.Program, can.Error)
	case can.Format != handoverFormat:
		return refused("%s (version %s) reads other handovers than this version %s; stop and start instead: orchestrator down", u.Program, can.Version, x.version)
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
func (x *upgrades) ability(ctx context.Context, program string) (can ability, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return can, err
	}
	out, err := x.place.Host.Run(ctx, append([]string{program}, os.Args[1:]...), dir, upgradeEnviron(CheckUpgrade))
	if err != nil {
		return can, err
	}
	if json.Unmarshal(out, &can) != nil || can.Version == "" {
		return can, errors.New("it is not an orchestrator that this one can upgrade to")
	}
	return can, nil
}

// upgradeEnviron returns the environment of the other program.
func upgradeEnviron(value string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, UpgradeEnv+"=") })
	return append(env, UpgradeEnv+"="+value)
}

// PauseTime is how long HTTP requests may take to end before an upgrade cuts them off. Streams do not end
// by themselves.
const PauseTime = 200 * time.Millisecond

// replace executes another program. It returns only if that fails.
func (x *upgrades) replace(u control.Upgrade) {
	x.server.Pause(PauseTime)
	held := time.Now()
	err := x.own.HandOver(context.Background(), func(team supervisor.Handover) error {
		h := &Handover{Format: handoverFormat, Upgrade: u, Held: held, Team: team}
		return x.become(u.Program, h)
	})
	x.server.Resume()
	u.State, u.Error = UpgradeFailed, err.Error()
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		u.Hint = refusal.Hint
	}
	x.latest.Store(&u)
	x.place.Log.Error("the upgrade has failed, and this program continues", "program", u.Program, "error", err)
	x.own.Report(&wire.Event{Kind: events.OrchestratorRemained, Text: "an upgrade to " + u.To + " has failed: " + u.Error})
}

// become executes a program with a handover.
func (x *upgrades) become(program string, h *Handover) error {
	var err error
	if h.Children, err = x.place.Host.Handover(); err != nil {
		return err
	}
	if h.Runs, err = x.place.Runs.Handover(); err != nil {
		return err
	}
	if h.Socket, err = api.FileOf(x.place.socket); err != nil {
		return err
	}
	h.Locks, h.TCP = x.place.Home.Files(), make(map[string]int)
	files := append(h.Children.Files(), append(h.Locks, h.Socket)...)
	for _, r := range h.Runs {
		if r.File >= 0 {
			files = append(files, r.File)
		}
	}
	for i, address := range x.file.Config.HTTP.Listen {
		if h.TCP[address], err = api.FileOf(x.listeners.open[i]); err != nil {
			return err
		}
		files = append(files, h.TCP[address])
	}
	if own := x.web.Listener(); own != nil {
		if h.TCP[web.Address], err = api.FileOf(own); err != nil {
			return err
		}
		files = append(files, h.TCP[web.Address])
	}
	h.Upgrade.Agents = len(h.Children.Children)
	state, err := stateFile(x.place.Home.Dir, h)
	if err != nil {
		return err
	}
	defer state.Close()
	if x.Drain != nil {
		x.Drain()
	}
	fd := int(state.Fd())
	return x.place.Host.Exec(program, os.Args, upgradeEnviron(strconv.Itoa(fd)), append(files, fd))
}

// stateFile returns a file without a name that has a handover.
func stateFile(dir string, h *Handover) (*os.File, error) {
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

// adopt goes on with a child of the program before this one. It returns nil if the run is not one
// of these.
func (h *Handover) adopt(host *child.Host, spec child.Spec) (*child.Child, error) {
	if h == nil {
		return nil, nil
	}
	i := slices.IndexFunc(h.Children.Children, func(c child.Handed) bool { return c.Run == spec.Run })
	if i < 0 {
		return nil, nil
	}
	return host.Adopt(spec, h.Children.Children[i])
}

// listen opens a TCP listener, or takes over the one of the program before.
func (h *Handover) listen(address string, o api.TCP) (*api.TCPListener, error) {
	if h != nil {
		if fd, ok := h.TCP[address]; ok {
			return api.InheritTCP(fd, address, o)
		}
	}
	return api.ListenTCP(address, o)
}

// TakenOver reads the handover of the program before this one.
func TakenOver(fd int) (*Handover, error) {
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "handover")
	defer file.Close()
	h := new(Handover)
	if err := json.NewDecoder(file).Decode(h); err != nil {
		return nil, fmt.Errorf("reading the handover: %w", err)
	}
	if h.Format != handoverFormat {
		return nil, fmt.Errorf("the handover has format %d, and this program reads %d", h.Format, handoverFormat)
	}
	return h, nil
}

// settled records the end of an upgrade.
func (x *upgrades) settled() {
	if x.place.Before == nil {
		return
	}
	if n := x.place.Host.Unclaimed(); n > 0 {
		x.place.Log.Error("children of the program before were ended, because no agent has them", "count", n)
	}
	done := x.place.Before.Upgrade
	done.State, done.To, done.TookMS = upgradeDone, x.version, time.Since(x.place.Before.Held).Milliseconds()
	x.latest.Store(&done)
	x.place.Before.Team, x.place.Before.Runs = supervisor.Handover{}, nil // they may be large
	x.place.Log.Info("upgraded", "from", done.From, "to", done.To, "agents", done.Agents, "took", time.Since(x.place.Before.Held).Round(time.Millisecond))
}

// restores returns an error unless the state can be restored from the record.
func restores(c *config.Config, version string) error {
	ctx := context.Background()
	record, err := eventlog.Open(ctx, eventlog.Options{Path: c.Store.Path, ReadOnly: true})
	if err != nil {
		return err
	}
	defer record.Close()
	o := supervisor.Options{Name: c.Orchestrator.Name, Version: version, Record: record, ReadOnly: true, Log: hclog.NewNullLogger()}
	o.Rules, o.Protocol = team.Rules(c)
	return supervisor.New(o, new(File).specs(c)).Restore(ctx)
}

// GoesOn returns whether this program could go on with a configuration and its record.
func GoesOn(c *config.Config, version string) ability {
	can := ability{Format: handoverFormat, Version: version}
	if err := restores(c, version); err != nil {
		can.Error = err.Error()
	}
	return can
}
