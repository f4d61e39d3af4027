package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// credentials are keys or tokens: the operations on them, and their names.
type credentials struct {
	list, revoke string // operations
	noun         string
	where        string // the command that lists them
}

func (a *app) listCredentials(ctx context.Context, d *client, operation string) ([]wire.Credential, []byte, error) {
	text, err := a.ask(ctx, d, operation, struct{}{})
	if err != nil {
		return nil, nil, err
	}
	list, err := decode[wire.CredentialList](text)
	return list.Credentials, text, err
}

// showCredentials lists what there is.
func (a *app) showCredentials(operation, none string) error {
	return a.speak(func(ctx context.Context, d *client) error {
		list, raw, err := a.listCredentials(ctx, d, operation)
		switch {
		case err != nil:
			return err
		case a.flags.json:
			return a.answer(raw)
		case a.flags.quiet:
			return printNames(a, list, func(c *wire.Credential) string { return c.ID })
		case len(list) == 0:
			return a.print("%s\n", none)
		}
		p, now := a.paint(a.stdout), time.Now()
		rows := [][]cell{{text("ID"), text("KIND"), text("FOR"), text("ROLE"), text("ISSUED"), text("EXPIRES")}}
		for i := range list {
			rows = append(rows, credentialRow(&list[i], p, now))
		}
		return a.print("%s", table(rows))
	})
}

func credentialRow(c *wire.Credential, p paint, now time.Time) []cell {
	expires := "never"
	if c.ExpiresAt != "" {
		expires = plain.Clock(c.ExpiresAt, now, time.TimeOnly)
	}
	return []cell{
		{text: wire.Visible(c.ID), ink: p.strong}, text(plain.OneLine(c.Kind)), text(cmp.Or(plain.OneLine(c.For), plain.OneLine(c.Name), "-")),
		text(cmp.Or(plain.OneLine(c.Role), "-")), text(plain.Clock(c.IssuedAt, now, time.TimeOnly)), text(expires),
	}
}

// kindWord is what a credential is in a sentence: that of an actor is a token.
func kindWord(c *wire.Credential) string {
	if c.Kind == "actor" {
		return "token"
	}
	return plain.OneLine(c.Kind)
}

// revoke takes one away, which its id or a unique prefix of that names.
func (a *app) revoke(word string, of credentials, ask bool) error {
	return a.speak(func(ctx context.Context, d *client) error {
		list, _, err := a.listCredentials(ctx, d, of.list)
		if err != nil {
			return err
		}
		c, err := of.named(list, word)
		if err != nil {
			return err
		}
		if ask {
			if err := a.confirm(fmt.Sprintf("Take %s %s of %s away?", kindWord(c), wire.Visible(c.ID), cmp.Or(plain.OneLine(c.For), "no actor yet"))); err != nil {
				return err
			}
		}
		text, err := a.ask(ctx, d, of.revoke, wire.Revoke{ID: c.ID})
		switch {
		case err != nil:
			return hinted(err, wire.CodeNotFound, "See which there are: "+of.where)
		case a.flags.json:
			return a.answer(text)
		case a.flags.quiet:
			return a.print("%s\n", wire.Visible(c.ID))
		}
		return a.print("%s holds no more\n", a.paint(a.stdout).strong(wire.Visible(c.ID)))
	})
}

// named finds what a word stands for.
func (of *credentials) named(list []wire.Credential, word string) (*wire.Credential, error) {
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
	f := &failure{
		exit: exitNotFound, code: wire.CodeNotFound, message: fmt.Sprintf("no %s has an id that begins with %q", of.noun, word),
		hint: "See which there are: " + of.where, details: map[string]any{"id": word},
	}
	if len(fits) > 1 {
		f.message = fmt.Sprintf("%q fits %s: %s", word, plain.Count(len(fits), of.noun), strings.Join(fits[:min(5, len(fits))], ", "))
		f.hint = "Write more of the id"
	}
	return nil, f
}

// completeCredentials offers ids, with whose they are.
func (a *app) completeCredentials(operation string) cobra.CompletionFunc {
	return func(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a.flags.quiet = true
		door, err := a.door()
		if err != nil || len(already) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		list, _, _ := a.listCredentials(ctx, door, operation)
		var offered []cobra.Completion
		for _, c := range list {
			offered = append(offered, cobra.CompletionWithDesc(c.ID, kindWord(&c)+" of "+cmp.Or(plain.OneLine(c.For), "no actor yet")))
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}
