package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// completionPatience is how long completion waits for the orchestrator.
const completionPatience = 300 * time.Millisecond

// completionCommand returns the completion command.
func (a *App) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script for tab completion",
		Long: `Prints a script that lets your shell complete commands, flags and the names of your agents.
The script for bash needs the package bash-completion.`,
		Example: `  source <(orchestrator completion bash)                     this bash
  orchestrator completion zsh > "${fpath[1]}/_orchestrator"
  orchestrator completion fish > ~/.config/fish/completions/orchestrator.fish
  orchestrator completion powershell | Out-String | Invoke-Expression`,
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		Args: func(verb *cobra.Command, args []string) error {
			if err := ArgCount(1, 1)(verb, args); err != nil {
				return err
			}
			if !slices.Contains(shells, args[0]) {
				return UsageError(fmt.Sprintf("no completion for %q%s", args[0], DidYouMean(args[0], shells)), "Usage: "+verb.UseLine())
			}
			return nil
		},
		RunE: func(verb *cobra.Command, args []string) error {
			if a.Flags.JSON {
				return UsageError("completion prints a script, not JSON", "Leave out --json")
			}
			return completionScript(verb.Root(), args[0], a.Stdout)
		},
	}
}

func completionScript(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	}
	return root.GenPowerShellCompletionWithDesc(w)
}

// completeFlags registers the completion of the flags of every command.
func (a *App) completeFlags(root *cobra.Command) {
	none := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	_ = root.RegisterFlagCompletionFunc("color", a.Flags.color.Complete)
	_ = root.RegisterFlagCompletionFunc("timeout", none)
	_ = root.RegisterFlagCompletionFunc("var", none)
	_ = root.MarkPersistentFlagFilename("config", "hcl", "json")
	_ = root.MarkPersistentFlagDirname("state-dir")
}

// unquoteUsage removes the backquotes from the descriptions of flags. They mark the name of
// the value for help, and completion would show them.
func unquoteUsage(verb *cobra.Command) {
	unquote := func(flag *pflag.Flag) { flag.Usage = strings.ReplaceAll(flag.Usage, "`", "") }
	verb.Flags().VisitAll(unquote)
	verb.PersistentFlags().VisitAll(unquote)
	for _, sub := range verb.Commands() {
		unquoteUsage(sub)
	}
}

// CompleteAgents completes agents that are not among the arguments yet. It asks the running
// orchestrator, or else reads the file. It ignores errors: a shell cannot show them during
// completion.
func (a *App) CompleteAgents(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	a.Flags.Quiet = true
	names := a.runningNames()
	if len(names) == 0 {
		names = a.declaredNames()
	}
	names = slices.DeleteFunc(names, func(offered cobra.Completion) bool {
		return slices.ContainsFunc(already, func(word string) bool {
			return offered == word || len(offered) > len(word) && offered[:len(word)+1] == word+"\t"
		})
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *App) runningNames() []cobra.Completion {
	status := CompletionList[control.Status](a, "status", struct{}{})
	var names []cobra.Completion
	for _, agent := range status.Agents {
		names = append(names, cobra.CompletionWithDesc(agent.Name, wire.Visible(string(agent.State))))
	}
	return names
}

func (a *App) declaredNames() []cobra.Completion {
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return nil
	}
	options := a.Options()
	options.NoEnv = true
	c, _ := config.Load(file, options)
	if c == nil {
		return nil
	}
	var names []cobra.Completion
	for _, agent := range c.Agents {
		names = append(names, cobra.CompletionWithDesc(agent.Name, wire.Visible(agent.Description)))
	}
	return names
}

// CompletionList returns the answer of an operation for completion. It returns an empty one
// as ForCompletion does.
func CompletionList[T any](a *App, operation string, request any) T {
	return ForCompletion(a, func(ctx context.Context, d *client.Client) (list T, err error) {
		text, err := d.Ask(ctx, operation, request)
		if err != nil {
			return list, err
		}
		return client.Decode[T](text)
	})
}

// ForCompletion returns the result of read, or a zero value after an error or completionPatience. A
// shell cannot show errors during completion.
func ForCompletion[T any](a *App, read func(context.Context, *client.Client) (T, error)) (found T) {
	a.Flags.Quiet = true
	d, err := a.Connect()
	if err != nil {
		return found
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	if seen, err := read(ctx, d); err == nil {
		found = seen
	}
	return found
}

// Completion adapts a completion function that needs the app.
func (a *App) Completion(complete func(*App, *cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return complete(a, verb, args, toComplete)
	}
}

// OneArg completes only the first argument.
func OneArg(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(verb *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(already) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(verb, already, begun)
	}
}
