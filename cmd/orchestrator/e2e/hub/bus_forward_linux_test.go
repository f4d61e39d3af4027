package hub

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
)

// Two teams with records of their own send each other messages: an agent in each stands for the other team. All
// processes are killed by turns, and each message arrives once and in order.
func TestBusForward(t *testing.T) {
	t.Parallel()
	ports := stage.FreeAddresses(t, 2)
	shop, kitchen := newBranch(t, ports[0]), newBranch(t, ports[1])
	shop.opens("PO:shop", "PO:kitchen", kitchen)
	kitchen.opens("PO:kitchen", "PO:shop", shop)

	const many = 60
	for n := range many {
		switch n {
		case 10:
			kitchen.kill()
		case 20:
			kitchen.Up("--json").Serving()
		case 30:
			shop.killBridge()
		case 40:
			shop.kill()
			shop.Up("--json").Serving()
		case 50:
			kitchen.killBridge()
		}
		shop.Ask("bus", "send", "--to", "PO:kitchen", "--topic", stage.Direct, "--payload", fmt.Sprintf(`{"n":%d}`, n))
	}
	kitchen.Ask("bus", "send", "--to", "PO:shop", "--topic", stage.Direct, "--payload", `{"back":true}`, "--reply-to", "7")
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

	shop.Ask("bus", "send", "--to", "PO:kitchen", "--topic", stage.Direct, "--payload", `{"forwarded":{}}`)
	stage.WaitFor(t, "report of the refused message", func() bool {
		return strings.Contains(shop.Ask("bus", "poll", "--json", "--cursor", "0"), "it was forwarded before")
	})
	shop.Stop()
	kitchen.Stop()
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
	*stage.Orchestrator
	address string
}

func newBranch(t *testing.T, address string) *branch {
	return &branch{Orchestrator: stage.New(t, stage.QuickStop), address: address}
}

// opens starts a branch with the actor own, and with an agent that stands for the actor of another branch.
func (b *branch) opens(own, other string, there *branch) {
	b.T.Helper()
	b.Write("orchestrator.hcl", stage.QuickStop+fmt.Sprintf("http {\n  listen = [%q]\n}\n", b.address)+
		fmt.Sprintf("agent \"own\" {\n  command = [\"sleep\", \"1000\"]\n  actor = %q\n}\n", own)+
		fmt.Sprintf("agent \"bridge\" {\n  command = [%q, \"bus\", \"forward\", \"--to\", %q, \"--token\", \"token\"]\n  actor = %q\n  dir = %q\n%s\n}\n", b.Program, "http://"+there.address, other, b.Dir, again))
	b.Up("--json").Serving()
	there.Write("token", b.Ask("key", "issue", "bridge", "-q"))
}

// kill kills the program.
func (b *branch) kill() {
	b.T.Helper()
	require.NoError(b.T, b.Process.Process.Kill())
	b.Await()
}

// killBridge kills the agent that stands for the other team.
func (b *branch) killBridge() {
	b.T.Helper()
	for _, view := range b.Status().Agents {
		if view.Name == "bridge" && view.PID > 0 {
			require.NoError(b.T, syscall.Kill(view.PID, syscall.SIGKILL))
		}
	}
}

// mailOf waits until an actor has got n messages on one topic, and returns them.
func mailOf(b *branch, actor string, n int) (found []stage.Mail) {
	b.T.Helper()
	stage.WaitFor(b.T, fmt.Sprintf("%d messages to %s", n, actor), func() bool {
		var list struct{ Messages []stage.Mail }
		require.NoError(b.T, json.Unmarshal([]byte(b.Ask("bus", "poll", "--json", "--actor", actor, "--cursor", "0", "-n", "1000")), &list))
		found = about(list.Messages, stage.Direct)
		return len(found) >= n
	})
	require.Len(b.T, found, n)
	return found
}

// The command names missing or wrong arguments before it reads a message.
func TestBusForwardRefused(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+"agent \"own\" {\n  command = [\"sleep\", \"1000\"]\n}\n")
	s.Up("--json").Serving()
	for _, c := range []struct {
		want  string
		flags []string
		exit  int
	}{
		{want: "the address of the other team is missing", exit: cli.ExitUsage},
		{want: "the actor whose messages", flags: []string{"--to", "https://x:1"}, exit: cli.ExitUsage},
		{want: "must be GO, HO:host", flags: []string{"--to", "https://x:1", "--actor", "shop"}, exit: cli.ExitUsage},
		{want: "unencrypted", flags: []string{"--to", "http://x:1", "--actor", "PO:x"}, exit: cli.ExitUsage},
		{want: "reading the token", flags: []string{"--to", "https://x:1", "--actor", "PO:x", "--token", "nowhere"}, exit: cli.ExitNo},
	} {
		_, said, code := s.Call(append([]string{"bus", "forward"}, c.flags...)...)
		require.Equal(t, c.exit, code, said)
		require.Contains(t, said, c.want)
	}
	s.Stop()
}
