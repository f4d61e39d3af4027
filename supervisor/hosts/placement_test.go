package hosts

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire"
	"orchestrator/wire/hostlink"
)

// Find chooses the host with the fewest agents among the fitting ones, and gives the reason for the
// rest.
func TestFind(t *testing.T) {
	h := newHosts()
	var changed atomic.Int64
	h.options.Owner = owner{last: 5, changed: func() { changed.Add(1) }}
	h.SetRules([]Rule{{Name: "any", Names: []string{"*"}, Labels: map[string]string{"site": "here"}}, {Name: "late"}})
	_, why := h.Find("a", "a", Placement{Hosts: "gpu-*", Labels: map[string]string{"gpu": "a100"}})
	require.Equal(t, "a host called gpu-* with gpu=a100", why)
	for _, name := range []string{"h1", "h2"} {
		joins(t, h, name, hostlink.Line{Capacity: 2, Labels: map[string]string{"disk": name}}).read(hostlink.Welcome)
	}
	require.EventuallyWithT(t, func(t *assert.CollectT) { require.EqualValues(t, 2, changed.Load()) }, time.Minute, time.Millisecond)
	var got []string
	for _, agent := range []string{"a", "b", "c", "d"} {
		host, why := h.Find(agent, "block", Placement{Labels: map[string]string{"site": "here"}})
		require.Empty(t, why)
		got = append(got, host)
	}
	require.Equal(t, "h1 h2 h1 h2", strings.Join(got, " "))
	_, why = h.Find("e", "e", Placement{})
	require.Equal(t, "a host: h1 is full, h2 is full", why)
	_, why = h.Find("e", "e", Placement{Labels: map[string]string{"disk": "h1"}})
	require.Contains(t, why, "h2 is full")
	_, err := h.Drain("h1", false)
	require.NoError(t, err)
	_, why = h.Find("e", "e", Placement{Hosts: "h1"})
	require.Contains(t, why, "h1 is being drained")
	_, err = h.Drain("h3", false)
	unknown, ok := errors.AsType[*wire.Error](err)
	require.True(t, ok)
	require.Contains(t, unknown.Hint, "orchestrator down on its machine", "it may be a hub")
	h.Close()
	_, err = h.Start(t.Context(), Order{Host: "h9", Agent: "a"})
	refused, ok := errors.AsType[*child.StartError](err)
	require.True(t, ok)
	require.True(t, refused.Temporary)
}

// Agents that an earlier hub may have placed are waited for.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{})
		h := New(Options{Settled: time.Now().Add(hostlink.GivenUp(hostlink.Grace)), Owner: owner{changed: func() { close(changed) }}})
		_, why := h.Find("a", "a", Placement{})
		require.Contains(t, why, "the hub before this one")
		<-changed
		_, why = h.Find("a", "a", Placement{})
		require.Equal(t, "a host", why)
	})
}

// A host of another version, or one that has spoken to a later hub, is refused.
func TestRefused(t *testing.T) {
	h := newHosts()
	f := joins(t, h, "attic", hostlink.Line{Epochs: map[string]int64{"team": 8, "other": 1}})
	require.Contains(t, f.read(hostlink.Refused).Error.Message, "a later hub")
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve("attic", "", link.New(here, bufio.NewReader(here))) }()
	other := link.New(there, bufio.NewReader(there))
	require.NoError(t, other.Send(&hostlink.Line{Type: hostlink.Hello, Version: 99}))
	l, err := other.Read()
	require.NoError(t, err)
	require.Contains(t, l.Error.Message, "version 99")
	_ = other.Close()
	<-served
	require.Contains(t, joins(t, h, "a/b\x1b[1m", hostlink.Line{}).read(hostlink.Refused).Error.Message, "cannot be the name of a host")
	h.SetRules([]Rule{{Name: "gpu", Names: []string{"gpu-*"}}})
	require.Contains(t, joins(t, h, "attic", hostlink.Line{}).read(hostlink.Refused).Error.Message, "no host block allows")
	joins(t, h, "gpu-1", hostlink.Line{}).read(hostlink.Welcome)
}
