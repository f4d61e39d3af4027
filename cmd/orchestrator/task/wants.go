package task

import (
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// wantFlags are the flags for the requirements of a task: a document, or parts of one.
type wantFlags struct {
	document     string
	repo         string
	languages    []string
	tools        []string
	environments []string
	tags         []string
	prefer       string
}

func (f *wantFlags) addTo(a *cli.App, verb *cobra.Command) {
	set := verb.Flags()
	set.StringVar(&f.document, "requirements", "", "requirements for the agent: a `JSON` object, @FILE or -")
	set.StringVar(&f.repo, "repo", "", "the agent must have the `REPO`sitory")
	set.StringSliceVar(&f.languages, "language", nil, "languages that the agent must know: comma-separated `NAMES`; may be repeated")
	set.StringSliceVar(&f.environments, "environment", nil, "environments of which the agent must have one: comma-separated `NAMES`; may be repeated")
	set.StringSliceVar(&f.tools, "tool", nil, "prefer agents with these tools: comma-separated `NAMES`; may be repeated")
	set.StringSliceVar(&f.tags, "tag", nil, "prefer agents with these tags, which count less: comma-separated `NAMES`; may be repeated")
	set.StringVar(&f.prefer, "prefer", "", "prefer `AGENT`")
	_ = verb.RegisterFlagCompletionFunc("prefer", a.CompleteAgents)
	for _, name := range []string{"repo", "language", "environment", "tool", "tag"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// read returns the requirements for the flags, or nil if there are none.
func (f *wantFlags) read(a *cli.App) (*hub.Requirements, error) {
	brief := &hub.Requirements{
		Repo: f.repo, Languages: f.languages, Environments: f.environments, Tools: f.tools, Tags: f.tags, Prefer: f.prefer,
	}
	switch {
	case f.document != "" && !brief.Empty():
		return nil, cli.UsageError("--requirements is the whole document, and the short flags make another", "Write all of it in one of the two ways")
	case f.document != "":
		document, err := cli.GivenDocument(a, "requirements", f.document)
		return hub.ReadRequirements(document), err
	case brief.Empty():
		return nil, nil
	}
	return brief, nil
}

// wantWords returns a description of requirements, or "" if there are none.
func wantWords(document wire.Raw) string {
	r := hub.ReadRequirements(document)
	if r.Empty() {
		return ""
	}
	var parts []string
	add := func(what, joint string, which ...string) {
		if text := strings.Join(which, joint); text != "" {
			parts = append(parts, what+" "+text)
		}
	}
	add("repo", "", r.Repo)
	add("language", " and ", r.Languages...)
	add("environment", " or ", r.Environments...)
	add("tools", ", ", r.Tools...)
	add("tags", ", ", r.Tags...)
	add("rather on", "", r.Prefer)
	return strings.Join(parts, "; ")
}
