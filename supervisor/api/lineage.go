package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// A process that descends from this one was started by an agent. At the operators' socket it would be an operator, and
// at the socket of another run it would be that agent. So both refuse it, and also processes that an agent of another
// orchestrator of this user has started. The user has started all other processes.
//
// An orphan has no living parents. It is refused everywhere if its run is not known, and is never an operator: no
// living process of the agent answers for it.

// An Origin describes where a process comes from.
type Origin struct {
	PID     int
	Program string
	Below   bool   // it descends from this process
	Run     string // the run that it comes from; "" if that is not known
	Orphan  bool   // its parents have ended
	Claim   string // the run that an orphan's environment names, if that differs from Run
	Foreign bool   // an agent of another orchestrator has started it
}

// Trace returns the origin of a process of this user.
type Trace func(pid int) (Origin, error)

// A peer is the process at the other end of a unix socket.
type peer struct {
	Origin
	guest bool  // it is another user's, who is admitted for one run
	err   error // why the origin is not known
}

// peerOf returns the process at the other end of a socket, or nil if it is root's and this process
// is not, or if processes are not traced. Root can do everything anyway. The guest is the user that
// Socket.guest names; a process of the guest must be traced.
func peerOf(conn syscall.Conn, trace Trace, guest int) *peer {
	if trace == nil && guest == 0 {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return &peer{err: err}
	}
	var p *peer
	err = raw.Control(func(fd uintptr) {
		uid, pid, err := credOf(fd)
		theirs := guest != 0 && uid == guest
		switch {
		case err == nil && !theirs && (trace == nil || uid != os.Geteuid() || pid == 0): // 0: outside of this container
			return
		case err == nil && theirs && (trace == nil || pid == 0):
			err = errUntraced
		}
		p = &peer{guest: theirs, err: err}
		if err != nil {
			return
		}
		there, err := hold(fd, pid)
		if err == nil {
			p.Origin, err = trace(pid)
			if !there() {
				err = errors.New("it has ended")
			}
		}
		p.PID, p.err = pid, err
	})
	if err != nil {
		return &peer{err: err}
	}
	return p
}

var errUntraced = errors.New("it is not in the reach of this process")

// mayBe reports whether a process may be the caller at a socket: the socket of an operator, or of a run, which is then
// visit. The user of this process may also start a program for a run. A guest may not, because other programs may run
// as the same user.
func (p *peer) mayBe(visit *runSocket) bool {
	switch {
	case p == nil:
		return true
	case p.err != nil:
		return false
	case p.Foreign:
		return false
	case !p.Below:
		return !p.guest
	}
	return visit != nil && p.Run == visit.caller.Run
}

// peerKey is the context key of a peer.
type peerKey struct{}

// visitorKey is the context key of a visitor.
type visitorKey struct{}

// withPeer returns the context of the requests of a connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	switch l := lingeringOf(conn); {
	case l == nil:
	case l.peer != nil:
		ctx = context.WithValue(ctx, peerKey{}, l.peer)
	case l.visitor != nil:
		ctx = context.WithValue(ctx, visitorKey{}, l.visitor)
	}
	return ctx
}

// visitorOf returns the connection of a request at a TCP listener, or nil.
func visitorOf(r *http.Request) *visitor {
	v, _ := r.Context().Value(visitorKey{}).(*visitor)
	return v
}

// descendsOverTCP refuses a request from this machine that a process of an agent has sent, or may have sent because it
// hides its connections. A request that no process can have sent is refused, too: its sender hides the connection.
// Processes outside of this container, or of another user, are not refused.
func (api *API) descendsOverTCP(r *http.Request) *wire.Error {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if api.Runs == nil || api.Runs.Trace == nil || at == nil {
		return nil
	}
	pids, known := holdersOf("/proc", r.RemoteAddr, at.String())
	switch {
	case !known:
		return nil
	case len(pids) == 0:
		return &wire.Error{
			Code: wire.CodeDenied, Message: "the program that sent the request is unknown, and the web view is for people",
			Hint: "Sign in with a browser on this machine, or over ssh with a forwarded port: orchestrator help security",
		}
	}
	for _, pid := range pids {
		p, err := api.Runs.Trace(pid)
		if err != nil || !p.Below && !p.Foreign {
			continue
		}
		program := fmt.Sprintf("%s (process %d)", wire.Visible(p.Program), pid)
		if api.Guard != nil {
			api.Guard.Report(api.Runs.agentOf(p.Run), p.Run, fmt.Sprintf("tried to be a person: %s asked for %s %s", program, r.Method, wire.Visible(r.URL.Path)))
		}
		return &wire.Error{Code: wire.CodeDenied, Message: program + " was started by an agent, and the web view is for people"}
	}
	return nil
}

// descends returns the caller at the socket of an operator or a run, or an error if the process at
// the other end may not be that caller. An agent that may operate is the operator of its name.
func (api *API) descends(e *listenerInfo, r *http.Request) (identity.Caller, error) {
	p, _ := r.Context().Value(peerKey{}).(*peer)
	switch {
	case p.mayBe(e.visit):
		return e.caller, nil
	case p.err != nil:
		return identity.Caller{}, denied(fmt.Sprintf("the origin of process %d is unknown: %v", p.PID, p.err))
	case !p.Below && !p.Foreign:
		return identity.Caller{}, denied(fmt.Sprintf("process %d of another user does not belong to %s", p.PID, displayName(e.visit.caller)))
	}
	agent := ""
	if p.Below {
		agent = api.Runs.agentOf(p.Run)
	}
	if e.visit == nil && !p.Orphan && agent != "" && api.mayOperate(agent) {
		c := e.caller
		c.Name = "agent:" + agent
		return c, nil
	}
	return identity.Caller{Kind: identity.Agent, Name: agent, Run: p.Run}, api.trespass(e, r, p, agent)
}

// trespass reports a process of an agent at the socket of another caller, and returns the refusal. The
// agent is "" if it is not known. An orphan of no known run is reported for the agent that it names.
func (api *API) trespass(e *listenerInfo, r *http.Request, p *peer, agent string) error {
	who := "an agent"
	switch {
	case agent != "":
		who = "agent " + agent
	case p.Foreign:
		who = "an agent of another orchestrator"
	}
	whom, place := "the operator", "the operators' socket"
	if e.visit != nil {
		whom, place = displayName(e.visit.caller), "the socket of "+displayName(e.visit.caller)
	}
	program := fmt.Sprintf("%s (process %d)", wire.Visible(p.Program), p.PID)
	text, of, run := "tried to be "+whom+": "+program, agent, p.Run
	if claimed := api.Runs.agentOf(p.Claim); claimed != "" {
		text += ", which names the run of agent " + claimed + " in its environment,"
		if agent == "" {
			of, run = claimed, p.Claim
			text = "a process that was not seen to be its own " + text
		}
	}
	if api.Guard != nil {
		api.Guard.Report(of, run, fmt.Sprintf("%s asked for %s %s at %s", text, r.Method, wire.Visible(r.URL.Path), place))
	}
	refusal := &wire.Error{
		Code: wire.CodeDenied, Message: program + " was started by " + who + ", and this is " + place,
		Hint: "An agent uses $ORC_SOCKET, under its own name",
	}
	switch {
	case p.Foreign:
		refusal.Hint = "Give it a token for HTTP: orchestrator help http"
	case p.Orphan && agent == "":
		refusal.Message = program + " was started by an unknown agent, and its parents have ended"
		refusal.Hint = "Keep its parent alive while it asks: orchestrator help security"
	case p.Orphan && e.visit == nil && api.mayOperate(agent):
		refusal.Message += ". Its parents have ended, so it cannot be the operator"
		refusal.Hint = "Keep its parent alive while it asks: orchestrator help security"
	}
	return refusal
}

// mayOperate reports whether an agent may be an operator.
func (api *API) mayOperate(agent string) bool { return api.Guard != nil && api.Guard.MayOperate(agent) }
