package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// completionPatience is how long a shell waits for names at a Tab.
const completionPatience = 300 * time.Millisecond

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script for tab completion",
		Long: `Prints a script that teaches your shell to complete verbs, flags and the names of
your agents.`,
		Example: `  source <(orchestrator completion bash)                     this bash
  orchestrator completion zsh > "${fpath[1]}/_orchestrator"
  orchestrator completion fish > ~/.config/fish/completions/orchestrator.fish
  orchestrator completion powershell | Out-String | Invoke-Expression`,
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		Args: func(verb *cobra.Command, args []string) error {
			if err := argCount(1, 1)(verb, args); err != nil {
				return err
			}
			if !slices.Contains(shells, args[0]) {
				return usageError(fmt.Sprintf("no completion for %q%s", args[0], didYouMean(args[0], shells)), "Write: "+verb.UseLine())
			}
			return nil
		},
		RunE: func(verb *cobra.Command, args []string) error {
			if a.flags.json {
				return usageError("completion prints a script, not JSON", "Leave out --json")
			}
			return completionScript(verb.Root(), args[0], a.stdout)
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

// completeFlags teaches shells the values of the flags that every verb has.
func (a *app) completeFlags(root *cobra.Command) {
	none := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	_ = root.RegisterFlagCompletionFunc("color", a.flags.color.complete)
	_ = root.RegisterFlagCompletionFunc("timeout", none)
	_ = root.RegisterFlagCompletionFunc("var", none)
	_ = root.MarkPersistentFlagFilename("config", "hcl", "json")
	_ = root.MarkPersistentFlagDirname("state-dir")
}

// completeAgents offers the names of agents that are not on the line yet: of
// the orchestrator that runs, else of the file. A mistake offers nothing, for
// a shell at a Tab has no place for messages.
func (a *app) completeAgents(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	a.flags.quiet = true
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

func (a *app) runningNames() []cobra.Completion {
	door, err := a.door()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	status, _, err := a.status(ctx, door)
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for _, agent := range status.Agents {
		names = append(names, cobra.CompletionWithDesc(agent.Name, wire.Visible(string(agent.State))))
	}
	return names
}

func (a *app) declaredNames() []cobra.Completion {
	file, err := a.findConfig()
	if err != nil {
		return nil
	}
	options := a.options()
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
