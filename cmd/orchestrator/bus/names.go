package bus

import (
	"context"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire/mail"
)

// names shows actors as people know them: by the names of their agents. A command that cannot ask for
// them shows the actors themselves.
type names struct {
	app    *cli.App
	known  mail.Names      // nil before the first look
	missed map[string]bool // actors that were not found
}

// namesPatience is how long a command waits for the names of actors.
const namesPatience = 2 * time.Second

func newNames(a *cli.App) *names {
	return &names{app: a, missed: make(map[string]bool)}
}

func (n *names) look() {
	if n.known == nil {
		n.known = mail.Names{}
	}
	d, err := n.app.Connect()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), namesPatience)
	defer cancel()
	text, err := d.Ask(ctx, "list-actors", struct{}{})
	if err != nil {
		return
	}
	if list, err := client.Decode[mail.ActorList](text); err == nil {
		n.known = mail.NamesOf(list.Actors)
	}
}

// of returns the name of an actor. It looks again for the actor of a run, which may be a new one.
func (n *names) of(actor string) string {
	if n.known == nil || n.known[actor] == "" && mail.Passing(actor) && !n.missed[actor] {
		n.missed[actor] = true
		n.look()
	}
	return term.OneLine(n.known.Of(actor))
}

func (n *names) parties(from, to string) string { return n.of(from) + " -> " + n.of(to) }
