package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// A bossGuard lets the boss operate, and notes reports.
type bossGuard []string

func (*bossGuard) MayOperate(agent string) bool { return agent == "boss" }

func (g *bossGuard) Report(agent, run, what string) { *g = append(*g, agent+" "+run+": "+what) }

// A process from below an agent is that agent at the socket of its run, and has no rights at any
// other one. A process of the user is the caller of the socket.
//
// Rows: S-01.
func TestDescent(t *testing.T) {
	runOf := func(agent, run string) *runSocket {
		return &runSocket{caller: identity.Caller{Kind: identity.Agent, Name: agent, Run: run}}
	}
	mine, other := runOf("mine", "r1"), runOf("other", "r2")
	runs := &Runs{visits: map[[sha256.Size]byte]*runSocket{{1}: mine, {2}: other, {3}: runOf("boss", "r3")}}
	var trespasses bossGuard
	a := &API{Runs: runs, Guard: &trespasses}
	operators := &listenerInfo{caller: identity.Caller{Kind: identity.Operator}}
	at := func(v *runSocket) *listenerInfo { return &listenerInfo{caller: v.caller, visit: v} }
	below := func(run string) *peer {
		return &peer{Origin: Origin{PID: 7, Program: "curl\x1b", Below: true, Run: run}}
	}
	orphan := func(run, claim string) *peer {
		p := below(run)
		p.Orphan, p.Claim = true, claim
		return p
	}
	const unseen = `curl\x1b (process 7) was started by an unknown agent, and its parents have ended`
	foreign := &peer{Origin: Origin{PID: 7, Program: "curl", Foreign: true}}
	for name, test := range map[string]struct {
		at      *listenerInfo
		peer    *peer
		want    identity.Caller
		refusal string
		told    string
	}{
		"the user":               {at: operators, peer: &peer{Origin: Origin{PID: 7}}, want: operators.caller},
		"root":                   {at: operators, want: operators.caller},
		"the user at a run":      {at: at(mine), peer: &peer{Origin: Origin{PID: 7}}, want: mine.caller},
		"its own socket":         {at: at(mine), peer: below("r1"), want: mine.caller},
		"an agent that operates": {at: operators, peer: below("r3"), want: identity.Caller{Kind: identity.Operator, Name: "agent:boss"}},
		"an agent":               {at: operators, peer: below("r1"), refusal: `curl\x1b (process 7) was started by agent mine, and this is the operators' socket`},
		"an orphan of no run":    {at: operators, peer: orphan("", ""), refusal: unseen},
		"an orphan that names one that operates": {at: operators, peer: orphan("", "r3"), refusal: unseen,
			told: `boss r3: a process that was not seen to be its own tried to be the operator: curl\x1b (process 7), which names the run of agent boss in its environment, asked for GET /tasks at the operators' socket`},
		"an orphan of one that operates": {at: operators, peer: orphan("r3", ""), refusal: `curl\x1b (process 7) was started by agent boss, and this is the operators' socket. Its parents have ended, so it cannot be the operator`},
		"an orphan of another that names one that operates": {at: operators, peer: orphan("r1", "r3"), refusal: `curl\x1b (process 7) was started by agent mine, and this is the operators' socket`,
			told: `mine r1: tried to be the operator: curl\x1b (process 7), which names the run of agent boss in its environment, asked for GET /tasks at the operators' socket`},
		"an orphan at its own socket":         {at: at(mine), peer: orphan("r1", "r2"), want: mine.caller},
		"an orphan of no run at a run":        {at: at(mine), peer: orphan("", "r1"), refusal: unseen},
		"an orphan at another run":            {at: at(other), peer: orphan("r1", "r2"), refusal: `curl\x1b (process 7) was started by agent mine, and this is the socket of agent other`},
		"an orphan that names no run of ours": {at: at(mine), peer: orphan("", "r9"), refusal: unseen},
		"a foreign agent":                     {at: operators, peer: foreign, refusal: `curl (process 7) was started by an agent of another orchestrator, and this is the operators' socket`},
		"a foreign one at a run":              {at: at(mine), peer: foreign, refusal: `curl (process 7) was started by an agent of another orchestrator, and this is the socket of agent mine`},
		"another run":                         {at: at(other), peer: below("r1"), refusal: `curl\x1b (process 7) was started by agent mine, and this is the socket of agent other`},
		"an operator at a run":                {at: at(other), peer: below("r3"), refusal: `curl\x1b (process 7) was started by agent boss, and this is the socket of agent other`},
		"an unknown origin":                   {at: operators, peer: &peer{Origin: Origin{PID: 7}, err: errors.New("it has ended")}, refusal: "the origin of process 7 is unknown: it has ended"},
		"an unknown one at a run":             {at: at(mine), peer: &peer{Origin: Origin{PID: 7, Below: true, Run: "r1"}, err: errors.New("x")}, refusal: "the origin of process 7 is unknown: x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/tasks", nil)
			if test.peer != nil {
				r = r.WithContext(context.WithValue(r.Context(), peerKey{}, test.peer))
			}
			trespasses = nil
			got, err := a.descends(test.at, r)
			if test.refusal == "" {
				require.NoError(t, err)
				require.Equal(t, test.want, got)
				require.Empty(t, trespasses)
				return
			}
			refused, ok := errors.AsType[*wire.Error](err)
			require.True(t, ok)
			require.Equal(t, wire.CodeDenied, refused.Code)
			require.Equal(t, test.refusal, refused.Message)
			require.NotEqual(t, identity.Operator, got.Kind)
			require.Equal(t, test.peer.err == nil, len(trespasses) == 1, "the user is told: %q", trespasses)
			if test.told != "" {
				require.Equal(t, bossGuard{test.told}, trespasses)
			}
		})
	}
}

// A process of another user may be only the run that it belongs to.
func TestGuestOfRun(t *testing.T) {
	t.Parallel()
	visit := &runSocket{caller: identity.Caller{Kind: identity.Agent, Name: "coder", Run: "run-1"}}
	for name, c := range map[string]struct {
		peer *peer
		run  bool // it may be the run
	}{
		"its own process":            {&peer{guest: true, Origin: Origin{Below: true, Run: "run-1"}}, true},
		"of another run":             {&peer{guest: true, Origin: Origin{Below: true, Run: "run-2"}}, false},
		"from elsewhere":             {&peer{guest: true}, false},
		"not known":                  {&peer{guest: true, err: errUntraced}, false},
		"ours from elsewhere":        {&peer{}, true},
		"ours, of another run":       {&peer{Origin: Origin{Below: true, Run: "run-2"}}, false},
		"not traced, such as root's": {nil, true},
	} {
		require.Equal(t, c.run, c.peer.mayBe(visit), name)
		operator := c.peer == nil || c.peer.err == nil && !c.peer.Below && !c.peer.guest
		require.Equal(t, operator, c.peer.mayBe(nil), name)
	}
}

// The socket of a run of another user admits that user, and the processes there must be traced. The
// socket of an operator does not.
func TestSocketAdmitsGuest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := Listen(path)
	require.NoError(t, err)
	defer listener.Close()
	client, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer client.Close()
	conn, err := listener.Listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	stream, ok := conn.(syscall.Conn)
	require.True(t, ok)
	require.Nil(t, peerOf(stream, nil, 0))
	p := peerOf(stream, nil, os.Geteuid()) // as if this user were another
	if os.Geteuid() != 0 {
		require.True(t, p.guest)
		require.ErrorIs(t, p.err, errUntraced)
	}
	trace := func(pid int) (Origin, error) { return Origin{PID: pid, Below: true, Run: "run-1"}, nil }
	p = peerOf(stream, trace, 0)
	require.False(t, p.guest)
	require.Equal(t, os.Getpid(), p.PID)
	require.True(t, listener.admits(conn))
}
