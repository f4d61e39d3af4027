package access

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// credentials describes one kind of credential: its operations, noun and list command.
type credentials struct {
	list, revoke string // operations
	noun         string
	where        string // the command that lists them
}

func listCredentials(ctx context.Context, a *cli.App, d *client.Client, operation string) ([]wire.Credential, error) {
	text, err := a.Ask(ctx, d, operation, struct{}{})
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[wire.CredentialList](text)
	return list.Credentials, err
}

// listing returns the query for the credentials that operation lists. For none it prints the
// text none.
func listing(a *cli.App, operation, none string) cli.Query[wire.CredentialList] {
	return cli.Query[wire.CredentialList]{
		Operation: operation,
		Quiet: func(list *wire.CredentialList) error {
			return cli.PrintNames(a, list.Credentials, func(c *wire.Credential) string { return c.ID })
		},
		Text: func(list *wire.CredentialList) error {
			if len(list.Credentials) == 0 {
				return a.Print("%s\n", none)
			}
			p, now := a.Paint(a.Stdout), time.Now()
			rows := [][]term.Cell{{term.Text("ID"), term.Text("KIND"), term.Text("FOR"), term.Text("ROLE"), term.Text("ISSUED"), term.Text("EXPIRES")}}
			for i := range list.Credentials {
				rows = append(rows, credentialRow(&list.Credentials[i], p, now))
			}
			return a.Print("%s", term.Table(rows))
		},
	}
}

func credentialRow(c *wire.Credential, p term.Paint, now time.Time) []term.Cell {
	expires := "never"
	if c.ExpiresAt != "" {
		expires = term.Clock(c.ExpiresAt, now, time.TimeOnly)
	}
	return []term.Cell{
		{Text: wire.Visible(c.ID), Ink: p.Strong}, term.Text(term.OneLine(c.Kind)), term.Text(cmp.Or(term.OneLine(c.For), term.OneLine(c.Name), "-")),
		term.Text(cmp.Or(term.OneLine(c.Role), "-")), term.Text(term.Clock(c.IssuedAt, now, time.TimeOnly)), term.Text(expires),
	}
}

// kindWord returns the noun for a credential: "token" for an actor's credential, else its kind.
func kindWord(c *wire.Credential) string {
	if c.Kind == "actor" {
		return "token"
	}
	return term.OneLine(c.Kind)
}

// revoke revokes the credential with the id word, or with an id that begins with it.
func revoke(a *cli.App, word string, of credentials, ask bool) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		list, err := listCredentials(ctx, a, d, of.list)
		if err != nil {
			return err
		}
		c, err := of.named(list, word)
		if err != nil {
			return err
		}
		if ask {
			if err := a.Confirm(fmt.Sprintf("Revoke %s %s of %s?", kindWord(c), wire.Visible(c.ID), cmp.Or(term.OneLine(c.For), "no actor yet"))); err != nil {
				return err
			}
		}
		return of.end(ctx, a, d, c)
	})
}

// revokeAll revokes all credentials of a list.
func revokeAll(a *cli.App, of credentials, ask bool) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		list, err := listCredentials(ctx, a, d, of.list)
		if err != nil || len(list) == 0 {
			return err
		}
		if ask {
			if err := a.Confirm(fmt.Sprintf("Revoke %s?", term.Count(len(list), of.noun))); err != nil {
				return err
			}
		}
		for i := range list {
			if err := of.end(ctx, a, d, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// end revokes one credential.
func (c *credentials) end(ctx context.Context, a *cli.App, d *client.Client, one *wire.Credential) error {
	return cli.Query[struct{}]{
		Operation: c.revoke, Request: wire.Revoke{ID: one.ID},
		Explain: func(err error) error { return cli.WithHint(err, wire.CodeNotFound, "List them: "+c.where) },
		Quiet:   func(*struct{}) error { return a.Print("%s\n", wire.Visible(one.ID)) },
		Text: func(*struct{}) error {
			return a.Print("%s is no longer valid\n", a.Paint(a.Stdout).Strong(wire.Visible(one.ID)))
		},
	}.Send(ctx, a, d)
}

// named returns the credential with the id word, or the only one with an id that begins with it.
func (c *credentials) named(list []wire.Credential, word string) (*wire.Credential, error) {
	var fits []string
	var found *wire.Credential
	for i := range list {
		if list[i].ID == word {
			return &list[i], nil
		}
		if word != "" && strings.HasPrefix(list[i].ID, word) {
			fits, found = append(fits, wire.Visible(list[i].ID)), &list[i]
		}
	}
	if len(fits) == 1 {
		return found, nil
	}
	f := &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("no %s id begins with %q", c.noun, word),
		Hint: "List them: " + c.where, Details: map[string]any{"id": word},
	}
	if len(fits) > 1 {
		f.Message = fmt.Sprintf("%q matches %s: %s", word, term.Count(len(fits), c.noun), strings.Join(fits[:min(5, len(fits))], ", "))
		f.Hint = "Write more characters of the id"
	}
	return nil, f
}

// completeCredentials completes ids, each with the kind and the holder of its credential.
func completeCredentials(a *cli.App, operation string) cobra.CompletionFunc {
	return cli.OneArg(func(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list := cli.ForCompletion(a, func(ctx context.Context, d *client.Client) ([]wire.Credential, error) {
			return listCredentials(ctx, a, d, operation)
		})
		var offered []cobra.Completion
		for _, c := range list {
			offered = append(offered, cobra.CompletionWithDesc(c.ID, kindWord(&c)+" of "+cmp.Or(term.OneLine(c.For), "no actor yet")))
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	})
}
