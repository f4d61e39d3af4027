package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/home"
)

// A Place is the part of a hub or a host that holds its state directory, its socket and its process tree.
type Place struct {
	StateDir string
	Socket   string // the path of the operators' socket
	Log      hclog.Logger
	Before   *Handover // from the program before this one; nil if this one was started

	// While it is held:
	Home   *home.Home
	Host   *child.Host
	socket *api.Socket
	Runs   *api.Runs // agents with their own sockets
	signer *api.Signer
	Guard  *guard
}

// Start acquires the place. It also ends agents that an earlier orchestrator left running.
func (p *Place) Start(context.Context) error {
	var err error
	if p.Before != nil {
		p.Home, err = home.TakeOver(p.StateDir, p.Before.Locks)
	} else {
		p.Home, err = OpenHome(p.StateDir, p.Socket)
	}
	if err != nil {
		return err
	}
	if err := p.open(); err != nil {
		p.Stop()
		return err
	}
	return nil
}

// Stop releases the place.
func (p *Place) Stop() {
	if p.socket != nil {
		_ = p.socket.Close()
	}
	if p.Host != nil {
		if left := p.Host.Close(); len(left) > 0 {
			p.Log.Warn("ended processes that no agent could be found for", "processes", programs(left))
		}
	}
	// The socket is removed next to last. Clients that wait for the end wait for its
	// removal, and may start another orchestrator at once.
	if p.socket != nil {
		p.socket.Remove()
		home.RemoveSocketDir(p.socket.Addr().String(), p.Home.Dir)
	}
	p.Home.Close()
}

// Run runs a short command.
func (p *Place) Run(ctx context.Context, command []string, dir string, env []string) ([]byte, error) {
	return p.Host.Run(ctx, command, dir, env)
}

// OpenHome opens the state directory of the orchestrator with a socket. A killed orchestrator
// holds the directory until the kernel has closed its files. Its socket remains and does
// not answer, and OpenHome waits for its end.
func OpenHome(stateDir, socket string) (*home.Home, error) {
	for deadline := time.Now().Add(api.Answering); ; time.Sleep(10 * time.Millisecond) {
		held, err := home.Open(stateDir)
		if _, busy := errors.AsType[*home.BusyError](err); !busy || time.Now().After(deadline) {
			return held, err
		}
		if there, unknown := api.Answers(socket, api.Answering); there || unknown != nil {
			return nil, err
		}
	}
}

func (p *Place) open() error {
	var err error
	if err = home.MakeSocketDir(p.Socket, p.Home.Dir); err != nil {
		return fmt.Errorf("making the folder of the socket: %w", err)
	}
	// The socket is opened first: if another orchestrator answers there, its agents must
	// not be ended.
	options := child.Options{Home: p.Home.Dir, UserDir: p.Home.UserDir, Hidden: []string{home.UserDir(p.Home.Dir)}, Watchdog: true}
	var runs []api.HandedRun
	if p.Before != nil {
		p.socket, err = api.Inherit(p.Before.Socket)
		options.Upgraded, runs = &p.Before.Children, p.Before.Runs
	} else {
		p.socket, err = api.Listen(p.Socket)
	}
	if err != nil {
		return fmt.Errorf("opening the socket: %w", err)
	}
	p.Host, err = child.NewHost(options)
	if err != nil {
		return err
	}
	if p.Before == nil {
		p.clearEarlier()
	}
	p.Guard = &guard{log: p.Log}
	trace := func(pid int) (api.Origin, error) {
		o, err := p.Host.Origin(pid)
		return api.Origin(o), err
	}
	p.Runs = api.NewRuns(p.socket, runs...)
	p.socket.Trace, p.Runs.Trace = trace, trace
	p.Runs.Connections, p.Runs.UserDir = p.Guard.connections, p.Home.UserDir
	p.signer = &api.Signer{Path: filepath.Join(p.Home.Dir, "jwt.key")}
	return nil
}

// clearEarlier ends the agents that a killed orchestrator left running.
func (p *Place) clearEarlier() {
	ended, survivors := p.Host.ClearEarlier()
	ended = append(p.Host.Swept(), ended...)
	p.Home.ClearUserDir()
	p.Home.ClearMerges()
	if len(ended) > 0 {
		p.Log.Warn("ended processes that an earlier orchestrator had left running", "processes", programs(ended))
	}
	if len(survivors) > 0 {
		p.Log.Error("processes of an earlier orchestrator do not die", "processes", programs(survivors))
	}
}

// Launch starts a process for the supervisor.
func (p *Place) Launch(spec child.Spec) (supervisor.Process, error) {
	c, err := p.Before.adopt(p.Host, spec)
	if c == nil && err == nil {
		c, err = p.Host.Start(spec)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func programs(processes []child.Process) string {
	var words []string
	for _, p := range processes {
		words = append(words, fmt.Sprintf("%d %s", p.PID, p.Program))
	}
	return strings.Join(words, ", ")
}
