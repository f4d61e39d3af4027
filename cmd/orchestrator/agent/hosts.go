package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// HostsCommand returns the hosts command.
func HostsCommand(a *cli.App) *cobra.Command {
	var hubs, follow bool
	verb := &cobra.Command{
		Use:   "hosts",
		Short: "List the machines that run agents, and the hubs",
		Long: `Lists the machines that have joined with orchestrator join: their labels, agents and last
contact. --hubs lists the machines that share the record; each hub reports how many records
it has followed.

A host is joined, draining (its agents are being moved) or gone. A hub is at work, standing
by or missing. Its epoch is the number of the record that began its turn.`,
		Example: `  orchestrator hosts
  orchestrator hosts -f          again every second, until Ctrl-C
  orchestrator hosts --hubs`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error {
				if follow {
					return a.EverySecond(ctx, func() error { return listHosts(ctx, a, d, hubs) })
				}
				return listHosts(ctx, a, d, hubs)
			})
		},
	}
	verb.Flags().BoolVar(&hubs, "hubs", false, "list the machines that share the record")
	verb.Flags().BoolVarP(&follow, "follow", "f", false, "list again every second")
	return verb
}

func listHosts(ctx context.Context, a *cli.App, d *client.Client, hubs bool) error {
	operation := "list-hosts"
	if hubs {
		operation = "list-hubs"
	}
	text, err := a.Ask(ctx, d, operation, struct{}{})
	if err != nil {
		return err
	}
	reply, err := client.Decode[control.HostsReply](text)
	switch {
	case err != nil:
		return err
	case a.JSON():
		return a.Answer(text)
	case hubs:
		return showHubs(a, &reply)
	case a.Flags.Quiet:
		return cli.PrintNames(a, reply.Hosts, func(h *control.HostView) string { return h.Name })
	case len(reply.Hosts) == 0:
		a.Note("No hosts have joined. On another machine: orchestrator join URL --token FILE")
		return nil
	}
	rows := [][]term.Cell{{term.Text("HOST"), term.Text("STATE"), term.Figure("AGENTS"), term.Text("LABELS"), term.Text("HEARD"), term.Text("RUNS")}}
	for _, h := range reply.Hosts {
		agents := strconv.Itoa(len(h.Agents))
		if h.Capacity > 0 {
			agents = fmt.Sprintf("%d/%d", len(h.Agents), h.Capacity)
		}
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
			labels = append(labels, key+"="+h.Labels[key])
		}
		rows = append(rows, []term.Cell{
			term.Text(term.OneLine(h.Name)), term.Text(h.State), term.Figure(agents), term.Text(cmp.Or(term.OneLine(strings.Join(labels, " ")), "-")),
			term.Text(cmp.Or(term.Clock(h.HeardAt, time.Now(), time.TimeOnly), "-")), term.Text(cmp.Or(term.OneLine(strings.Join(h.Agents, " ")), "-")),
		})
	}
	return a.Print("%s", term.Table(rows))
}

func showHubs(a *cli.App, reply *control.HostsReply) error {
	if a.Flags.Quiet {
		return cli.PrintNames(a, reply.Hubs, func(h *control.HubView) string { return h.Name })
	}
	if len(reply.Hubs) == 0 {
		a.Note("The record is only on this machine: orchestrator help many-machines")
		return nil
	}
	number := func(n int64) term.Cell {
		if n == 0 {
			return term.Figure("-")
		}
		return term.Figure(strconv.FormatInt(n, 10))
	}
	rows := [][]term.Cell{{term.Text("HUB"), term.Text("STATE"), term.Figure("EPOCH"), term.Figure("FOLLOWED"), term.Text("URL")}}
	for _, h := range reply.Hubs {
		rows = append(rows, []term.Cell{
			term.Text(term.OneLine(h.Name)), term.Text(strings.ReplaceAll(h.State, "_", " ")), number(h.Epoch), number(h.Followed), term.Text(cmp.Or(term.OneLine(h.URL), "-")),
		})
	}
	if err := a.Print("%s", term.Table(rows)); err != nil {
		return err
	}
	p := a.Paint(a.Stdout)
	switch {
	case reply.NoQuorum != "":
		return a.Print("%s %s\n", p.Bad("No quorum:"), wire.Visible(reply.NoQuorum))
	case reply.Degraded:
		return a.Print("%s if one more hub is lost, the team stops.\n", p.Warn("Degraded:"))
	}
	return nil
}

// DrainCommand returns the drain command.
func DrainCommand(a *cli.App) *cobra.Command {
	var wait, undo bool
	verb := &cobra.Command{
		Use:   "drain HOST",
		Short: "Move the agents of a host to other hosts",
		Long: `Stops the agents of a host in order and starts them again on other hosts that fit. No new
agent starts on a draining host.`,
		Example: `  orchestrator drain gpu-1 --wait
  orchestrator drain gpu-1 --undo    let it run agents again`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return drain(ctx, a, d, args[0], wait, undo) })
		},
	}
	verb.Flags().BoolVar(&wait, "wait", false, "wait until no agent runs there")
	verb.Flags().BoolVar(&undo, "undo", false, "let the host run agents again")
	return verb
}

func drain(ctx context.Context, a *cli.App, d *client.Client, host string, wait, undo bool) error {
	text, err := a.Ask(ctx, d, "drain-host", control.DrainRequest{Host: host, Undo: undo})
	if err != nil {
		return err
	}
	reply, err := client.Decode[control.DrainReply](text)
	if err != nil {
		return err
	}
	if wait && !undo {
		if err := awaitEmpty(ctx, a, d, host); err != nil {
			return err
		}
	}
	switch {
	case a.JSON():
		return a.Answer(text)
	case undo:
		return a.Print("%s can run agents again.\n", host)
	case len(reply.Agents) == 0:
		return a.Print("%s gets no more agents. No agent runs there.\n", host)
	case wait:
		return a.Print("%s gets no more agents. %s stopped there: %s\n", host, term.Count(len(reply.Agents), "agent"), strings.Join(reply.Agents, ", "))
	}
	return a.Print("%s gets no more agents. Stopping there: %s\n", host, strings.Join(reply.Agents, ", "))
}

// awaitEmpty waits until no agent runs on a host.
func awaitEmpty(ctx context.Context, a *cli.App, d *client.Client, host string) error {
	done := a.ShowWait("its agents to stop")
	defer done()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		text, err := a.Ask(ctx, d, "list-hosts", struct{}{})
		if err != nil {
			return err
		}
		reply, err := client.Decode[control.HostsReply](text)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(reply.Hosts, func(h control.HostView) bool { return h.Name == host && len(h.Agents) > 0 }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return d.Failed(ctx, ctx.Err())
		case <-again.C:
		}
	}
}
