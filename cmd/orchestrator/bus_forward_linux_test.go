package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
)

// Two teams with records of their own send each other messages: an agent in each stands for the other team. All
// processes are killed by turns, and each message arrives once and in order.
func TestBusForward(t *testing.T) {
	t.Parallel()
	ports := freeAddresses(t, 2)
	shop, kitchen := newBranch(t, ports[0]), newBranch(t, ports[1])
	shop.opens("PO:shop", "PO:kitchen", kitchen)
	kitchen.opens("PO:kitchen", "PO:shop", shop)

	const many = 60
	for n := range many {
		switch n {
		case 10:
			kitchen.kill()
		case 20:
			kitchen.up("--json").serving()
		case 30:
			shop.killBridge()
		case 40:
			shop.kill()
			shop.up("--json").serving()
		case 50:
			kitchen.killBridge()
		}
		shop.ask("bus", "send", "--to", "PO:kitchen", "--topic", direct, "--payload", fmt.Sprintf(`{"n":%d}`, n))
	}
	kitchen.ask("bus", "send", "--to", "PO:shop", "--topic", direct, "--payload", `{"back":true}`, "--reply-to", "7")
	back, answer := mailOf(shop, "PO:shop", 1)[0], forwarded{}
	require.NoError(t, json.Unmarshal(back.Payload, &answer))
	require.Equal(t, "PO:kitchen", back.From, "the sender is the actor of the token")
	require.EqualValues(t, 7, *answer.Forwarded.ReplyTo)
	for n, m := range mailOf(kitchen, "PO:kitchen", many) {
		var payload forwarded
		require.NoError(t, json.Unmarshal(m.Payload, &payload))
		require.Equal(t, n, payload.N, "each message once, and in order")
		require.Equal(t, "PO:shop", m.From)
		require.Equal(t, "GO", payload.Forwarded.From)
		require.Positive(t, payload.Forwarded.Seq)
	}

	shop.ask("bus", "send", "--to", "PO:kitchen", "--topic", direct, "--payload", `{"forwarded":{}}`)
	waitForThat(t, "report of the refused message", func() bool {
		return strings.Contains(shop.ask("bus", "poll", "--json", "--cursor", "0"), "it was forwarded before")
	})
	shop.stop()
	kitchen.stop()
}

// A forwarded message, as it is stored there.
type forwarded struct {
	N         int
	Forwarded struct {
		From    string `json:"from_actor"`
		Seq     int64  `json:"seq"`
		ReplyTo *int64 `json:"reply_to"`
	}
}

// A branch is one of several teams.
type branch struct {
	*stage
	address string
}

func newBranch(t *testing.T, address string) *branch {
	return &branch{stage: newStage(t, quick), address: address}
}

// opens starts a branch with the actor own, and with an agent that stands for the actor of another branch.
func (b *branch) opens(own, other string, there *branch) {
	b.t.Helper()
	b.write("orchestrator.hcl", quick+fmt.Sprintf("http {\n  listen = [%q]\n}\n", b.address)+
		fmt.Sprintf("agent \"own\" {\n  command = [\"sleep\", \"1000\"]\n  actor = %q\n}\n", own)+
		fmt.Sprintf("agent \"bridge\" {\n  command = [%q, \"bus\", \"forward\", \"--to\", %q, \"--token\", \"token\"]\n  actor = %q\n  dir = %q\n%s\n}\n", b.program, "http://"+there.address, other, b.dir, again))
	b.up("--json").serving()
	there.write("token", b.ask("key", "issue", "bridge", "-q"))
}

// kill kills the program.
func (b *branch) kill() {
	b.t.Helper()
	require.NoError(b.t, b.process.Process.Kill())
	b.await()
}

// killBridge kills the agent that stands for the other team.
func (b *branch) killBridge() {
	b.t.Helper()
	for _, view := range b.status().Agents {
		if view.Name == "bridge" && view.PID > 0 {
			require.NoError(b.t, syscall.Kill(view.PID, syscall.SIGKILL))
		}
	}
}

// mailOf waits until an actor has got n messages on one topic, and returns them.
func mailOf(b *branch, actor string, n int) (found []letter) {
	b.t.Helper()
	waitForThat(b.t, fmt.Sprintf("%d messages to %s", n, actor), func() bool {
		var list struct{ Messages []letter }
		require.NoError(b.t, json.Unmarshal([]byte(b.ask("bus", "poll", "--json", "--actor", actor, "--cursor", "0", "-n", "1000")), &list))
		found = about(list.Messages, direct)
		return len(found) >= n
	})
	require.Len(b.t, found, n)
	return found
}

// The command says what is missing or wrong before it reads a message.
func TestBusForwardRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+"agent \"own\" {\n  command = [\"sleep\", \"1000\"]\n}\n")
	s.up("--json").serving()
	for _, c := range []struct {
		want  string
		flags []string
		exit  int
	}{
		{want: "the other team is missing", exit: cli.ExitUsage},
		{want: "it is not said whose messages", flags: []string{"--to", "https://x:1"}, exit: cli.ExitUsage},
		{want: "must be GO, HO:host", flags: []string{"--to", "https://x:1", "--actor", "shop"}, exit: cli.ExitUsage},
		{want: "unencrypted", flags: []string{"--to", "http://x:1", "--actor", "PO:x"}, exit: cli.ExitUsage},
		{want: "reading the token", flags: []string{"--to", "https://x:1", "--actor", "PO:x", "--token", "nowhere"}, exit: cli.ExitNo},
	} {
		_, said, code := s.call(append([]string{"bus", "forward"}, c.flags...)...)
		require.Equal(t, c.exit, code, said)
		require.Contains(t, said, c.want)
	}
	s.stop()
}
