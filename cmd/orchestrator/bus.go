package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) busCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "bus",
		Short: "Send and read messages on the bus",
		Long: `Agents write messages to each other and to you, and you to them. Each has an actor
for its sender and one for its addressee, a topic, and a JSON object. Nothing of
it is lost: who is away finds it later. Here you are GO, the one that runs it
all. More about all of it: orchestrator help bus.`,
		Example: `  orchestrator bus send --to PO:shop --topic message.direct --payload '{"text": "hello"}'
  orchestrator bus tail -f
  orchestrator bus presence`,
	},
		a.busSendCommand(), a.busPollCommand(), a.busAckCommand(), a.busTailCommand(),
		a.busPresenceCommand(), a.busTopicsCommand(),
	)
}

// mailNumber is a flag, or an argument, for the number of a message.
type mailNumber struct {
	value int64
	least int64
	given bool
}

// largestNumber is the largest that every reader of JSON can read.
const largestNumber = 1<<53 - 1

func (n *mailNumber) Type() string { return "SEQ" }

func (n *mailNumber) String() string {
	if !n.given {
		return ""
	}
	return strconv.FormatInt(n.value, 10)
}

func (n *mailNumber) Set(text string) error {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < n.least || value > largestNumber {
		return errors.New("it is the number of a message, such as 42")
	}
	n.value, n.given = value, true
	return nil
}

// pointer is the number if there is one: what is asked without it is something
// else.
func (n *mailNumber) pointer() *int64 {
	if !n.given {
		return nil
	}
	return &n.value
}

// notEmpty refuses flags that were given nothing: an empty variable of a script
// is not "leave it out".
func notEmpty(verb *cobra.Command, names ...string) error {
	for _, name := range names {
		if flag := verb.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return usageError("--"+name+" is empty", "Leave it out, or say what it is")
		}
	}
	return nil
}

// actorGiven refuses what cannot be an actor, and says who was probably meant.
func (a *app) actorGiven(flag, word string, check func(string) string) error {
	if word == "" || check(word) == "" {
		return nil
	}
	return usageError("--"+flag+" "+check(word), a.likelyActor(flag, word))
}

// likelyActor guesses which actor a word stands for: people know their agents by other
// names than the bus.
func (a *app) likelyActor(flag, word string) string {
	const who = "See who there is: orchestrator bus presence"
	var ids []string
	for _, actor := range a.actorsForShell() {
		if actor.Agent == word {
			return fmt.Sprintf("The agent %q is %s: --%s %s", word, plain.OneLine(actor.Actor), flag, plain.OneLine(actor.Actor))
		}
		ids = append(ids, actor.Actor)
	}
	for _, id := range ids { // "po:shop", and "shop" alone
		if _, name, _ := strings.Cut(id, ":"); strings.EqualFold(id, word) || strings.EqualFold(name, word) {
			return "Did you mean " + plain.OneLine(id) + "?  " + who
		}
	}
	if likely := nearest(word, ids); likely != "" {
		return "Did you mean " + plain.OneLine(likely) + "?  " + who
	}
	return who
}

// forShell asks for a list, as long as a shell waits at a Tab.
func forShell[T any](a *app, operation string, request any) (list T) {
	a.flags.quiet = true
	door, err := a.door()
	if err != nil {
		return list
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	text, err := door.ask(ctx, operation, request)
	if err == nil {
		list, _ = decode[T](text)
	}
	return list
}

func (a *app) actorsForShell() []wire.ActorView {
	return forShell[wire.ActorList](a, "list-actors", struct{}{}).Actors
}

// completeActors offers those who have mail, and more besides.
func (a *app) completeActors(more ...cobra.Completion) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var offered []cobra.Completion
		for _, actor := range a.actorsForShell() {
			is := plain.OneLine(actor.Status)
			if actor.Agent != "" {
				is = plain.OneLine(actor.Agent) + ", " + is
			}
			offered = append(offered, cobra.CompletionWithDesc(actor.Actor, is))
		}
		return append(offered, more...), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTopics offers the topics that are registered.
func (a *app) completeTopics(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, t := range forShell[wire.TopicList](a, "list-topics", struct{}{}).Topics {
		offered = append(offered, cobra.CompletionWithDesc(t.Topic, topicWords(&t)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// completeMail offers the numbers of messages that an actor has not dealt with,
// which a flag names.
func (a *app) completeMail(flag string) cobra.CompletionFunc {
	return func(verb *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(already) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		actor, _ := verb.Flags().GetString(flag)
		var offered []cobra.Completion
		for _, m := range forShell[wire.MailList](a, "poll-messages", wire.PollMessages{Actor: actor, Limit: offeredMail}).Messages {
			offered = append(offered, cobra.CompletionWithDesc(strconv.FormatInt(m.Seq, 10), plain.OneLine(m.From)+"  "+plain.OneLine(m.Topic)))
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// offeredMail is how many messages a shell is offered: more are no choice.
const offeredMail = 30
