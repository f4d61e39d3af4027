package agent

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

func agentServersCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "servers",
		Short: "List the registered servers",
		Long: `Lists the external servers that have registered as agents. A server is online as long as
it sends requests or heartbeats. A server with a revoked key gets no work.`,
		Example:           "  orchestrator agent servers\n  orchestrator key register --name build-1",
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return listServers(a) },
	}
}

func listServers(a *cli.App) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := a.Ask(ctx, d, "query-servers", struct{}{})
		if err != nil {
			return err
		}
		all, err := client.Decode[wire.ServerList](text)
		if err != nil {
			return err
		}
		far := wire.ServerList{Servers: []wire.Server{}}
		for _, s := range all.Servers {
			if s.Remote {
				far.Servers = append(far.Servers, s)
			}
		}
		return showServers(a, &far)
	})
}

func showServers(a *cli.App, far *wire.ServerList) error {
	if a.Flags.JSON {
		text, err := object.Encode(far)
		if err != nil {
			return err
		}
		return a.Answer(text)
	}
	if a.Flags.Quiet {
		return cli.PrintNames(a, far.Servers, func(s *wire.Server) string { return s.Name })
	}
	if len(far.Servers) == 0 {
		a.Note("No server has registered. To let one: orchestrator key register --name NAME")
		return nil
	}
	rows := [][]term.Cell{{term.Text("NAME"), term.Text("STATUS"), term.Text("HOST"), term.Figure("RUNNING"), term.Text("LAST SEEN")}}
	for _, s := range far.Servers {
		rows = append(rows, []term.Cell{
			term.Text(term.OneLine(s.Name)), term.Text(s.Status), term.Text(cmp.Or(term.OneLine(s.Hostname), "-")), term.Figure(strconv.Itoa(s.Running)), term.Text(term.Clock(s.LastSeen, time.Now(), time.TimeOnly)),
		})
	}
	return a.Print("%s", term.Table(rows))
}
