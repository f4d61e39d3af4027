package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) agentServersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "servers",
		Short: "List the registered servers",
		Long: `Lists the servers that have registered from elsewhere. They work beside the agents
that run here, and are online as long as they are heard of. One whose key is revoked
gets nothing any more.`,
		Example:           "  orchestrator agent servers\n  orchestrator key register --name build-1",
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.listServers() },
	}
}

func (a *app) listServers() error {
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, "query-servers", struct{}{})
		if err != nil {
			return err
		}
		all, err := decode[wire.ServerList](text)
		if err != nil {
			return err
		}
		far := wire.ServerList{Servers: []wire.Server{}}
		for _, s := range all.Servers {
			if s.Remote {
				far.Servers = append(far.Servers, s)
			}
		}
		return a.showServers(&far)
	})
}

func (a *app) showServers(far *wire.ServerList) error {
	if a.flags.json {
		text, err := wire.Encode(far)
		if err != nil {
			return err
		}
		return a.answer(text)
	}
	if a.flags.quiet {
		return printNames(a, far.Servers, func(s *wire.Server) string { return s.Name })
	}
	if len(far.Servers) == 0 {
		a.note("No server has registered. To let one: orchestrator key register --name NAME")
		return nil
	}
	rows := [][]cell{{text("NAME"), text("STATUS"), text("HOST"), figure("RUNNING"), text("LAST SEEN")}}
	for _, s := range far.Servers {
		rows = append(rows, []cell{
			text(plain.OneLine(s.Name)), text(s.Status), text(cmp.Or(plain.OneLine(s.Hostname), "-")), figure(strconv.Itoa(s.Running)), text(plain.Clock(s.LastSeen, time.Now(), time.TimeOnly)),
		})
	}
	return a.print("%s", table(rows))
}
