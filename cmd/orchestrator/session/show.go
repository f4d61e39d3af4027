package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// sessionFlags are the flags of session show.
type sessionFlags struct {
	task  string
	chain string
	most  string
	all   bool
}

func sessionShowCommand(a *cli.App) *cobra.Command {
	var f sessionFlags
	verb := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a session with its members, tasks and messages",
		Long: `Shows a session: its rules, its members with their current work, and its messages by
correlation, with replies below the messages they answer. Each task has its phase, its
number of reviews and their limit, and its open findings. Rejected messages are shown
with their errors.

Only the last 100 messages are shown. -v shows them in full; --json shows everything.`,
		Example: `  orchestrator session show checkout
  orchestrator session show checkout --task login-form
  orchestrator session show checkout --all -v
  orchestrator session show checkout --json`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.Completion(completeSessions)),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "task", "chain", "limit"); err != nil {
				return err
			}
			return showSession(a, args[0], &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.task, "task", "", "only messages about the task `ID`")
	set.StringVar(&f.chain, "chain", "", "only messages with this `CORRELATION`")
	set.StringVarP(&f.most, "limit", "n", "", "only the last `N` messages, or all (default 100; with --json all)")
	set.BoolVar(&f.all, "all", false, "all messages")
	_ = verb.RegisterFlagCompletionFunc("task", completeOfSession(a, sessionTasks))
	_ = verb.RegisterFlagCompletionFunc("chain", completeOfSession(a, sessionChains))
	_ = verb.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	return verb
}

// shownMessages is how many messages are shown by default.
const shownMessages = 100

// maxMessages returns the number of wanted messages, or 0 for all.
func (f *sessionFlags) mostMessages(json bool) (int, error) {
	switch {
	case f.all && f.most != "":
		return 0, cli.UsageError("--all and --limit cannot be combined", "Leave out one of them")
	case f.all, f.most == "" && json:
		return 0, nil
	case f.most == "":
		return shownMessages, nil
	}
	return cli.ParseCount(f.most, "messages", 1, 0)
}

func showSession(a *cli.App, name string, f *sessionFlags) error {
	most, err := f.mostMessages(a.Flags.JSON)
	if err != nil {
		return err
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		seen, err := getSession(ctx, a, d, &wire.GetSession{SessionID: name, TaskID: f.task, CorrelationID: f.chain}, most)
		if err != nil {
			return noSession(ctx, d, name, err)
		}
		if a.Flags.JSON {
			text, err := seen.document()
			if err != nil {
				return err
			}
			return a.Answer(text)
		}
		log, err := readLog(seen)
		switch {
		case err != nil:
			return err
		case a.Flags.Quiet:
			named := slices.DeleteFunc(log.said, func(s said) bool { return s.id == "" })
			return cli.PrintNames(a, named, func(s *said) string { return s.id })
		}
		return showLog(a, f, seen, log)
	})
}

// showLog prints a session for people.
func showLog(a *cli.App, f *sessionFlags, seen *sessionSeen, log *sessionLog) error {
	p, now := a.Paint(a.Stdout), time.Now()
	wide := max(term.Columns(a.Stdout, 120), 60)
	if a.Flags.Verbose {
		wide = 0
	}
	text := ""
	if f.task == "" && f.chain == "" {
		text = sessionCard(&seen.SessionView, p) + "\n" + membersTable(&seen.SessionView, p)
	}
	drawn := log.draw(p, now, wide)
	switch {
	case drawn != "" && text != "":
		text += "\n" + drawn
	case drawn != "":
		text = drawn
	case text != "":
		text += "\nNo messages yet. How to send one: orchestrator help session\n"
	default:
		text = "No message matches. All messages: orchestrator session show " + term.OneLine(seen.ID) + "\n"
	}
	if err := a.Print("%s", text); err != nil {
		return err
	}
	if seen.before > 0 {
		a.Note("%s not shown here: orchestrator session show %s --all", earlierMessages(seen.before), term.OneLine(seen.ID))
	}
	return nil
}

func earlierMessages(n int) string {
	if n == 1 {
		return "1 earlier message is"
	}
	return term.Count(n, "earlier message") + " are"
}

// completeOfSession completes items of the session that the arguments name.
func completeOfSession(a *cli.App, have func(*wire.SessionView) []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		seen := cli.CompletionList[sessionSeen](a, "get-session", wire.GetSession{SessionID: words[0], Limit: 1})
		return have(&seen.SessionView), cobra.ShellCompDirectiveNoFileComp
	}
}

func sessionTasks(v *wire.SessionView) (offered []cobra.Completion) {
	for i := range v.Tasks {
		t := &v.Tasks[i]
		offered = append(offered, cobra.CompletionWithDesc(t.TaskID, term.Clip(term.OneLine(t.Name), 40)+", "+term.OneLine(t.Phase)))
	}
	return offered
}

func sessionChains(v *wire.SessionView) (offered []cobra.Completion) {
	known := make(map[string]bool)
	for i := range v.Tasks {
		t := &v.Tasks[i]
		if t.CorrelationID != "" && !known[t.CorrelationID] {
			known[t.CorrelationID] = true
			offered = append(offered, cobra.CompletionWithDesc(t.CorrelationID, term.Clip(term.OneLine(t.Name), 40)))
		}
	}
	return offered
}

// sessionSeen is a session with messages of its log. The messages are unchanged JSON, which
// keeps keys unknown to this version.
type sessionSeen struct {
	wire.SessionView
	Messages []wire.Raw `json:"messages"`

	before int    // number of omitted earlier messages
	raw    []byte // the last page; current except for its messages
	pages  int
}

// getSession returns a session with its last most messages, or with all for 0. It reads all
// pages, because the API only pages forward.
func getSession(ctx context.Context, a *cli.App, d *client.Client, want *wire.GetSession, most int) (*sessionSeen, error) {
	var kept []wire.Raw
	before := 0
	want.Limit = session.MaxPage
	for n := 1; ; n++ {
		text, err := a.Ask(ctx, d, "get-session", want)
		if err != nil {
			return nil, err
		}
		page, err := client.Decode[sessionSeen](text)
		if err != nil {
			return nil, err
		}
		kept = append(kept, page.Messages...)
		if over := len(kept) - most; most > 0 && over > 0 {
			kept, before = append([]wire.Raw(nil), kept[over:]...), before+over
		}
		if !page.More || page.Next <= want.After {
			page.Messages, page.before, page.raw, page.pages = kept, before, text, n
			return &page, nil
		}
		want.After = page.Next
	}
}

// document returns the JSON of the session with the messages of all pages.
func (s *sessionSeen) document() ([]byte, error) {
	if s.pages == 1 && s.before == 0 {
		return s.raw, nil
	}
	members, err := client.Decode[map[string]wire.Raw](s.raw)
	if err != nil {
		return nil, err
	}
	if members["messages"], err = object.Encode(append([]wire.Raw{}, s.Messages...)); err != nil {
		return nil, fmt.Errorf("joining the messages: %w", err)
	}
	return object.Encode(members)
}
