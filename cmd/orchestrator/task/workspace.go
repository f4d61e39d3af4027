package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

func taskDiffCommand(a *cli.App) *cobra.Command {
	stat := false
	verb := &cobra.Command{
		Use:   "diff ID",
		Short: "Show the changes in the workspace of a task",
		Long: `Shows the changes in the workspace of a task since its branch began, in the format of git
diff: committed changes, uncommitted ones and new files.`,
		Example:           "  orchestrator task diff 91c0\n  orchestrator task diff 91c0 --stat\n  orchestrator task diff 91c0 > change.patch",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			return onTask(a, args[0], func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
				return diff(ctx, a, d, id, stat)
			})
		},
	}
	verb.Flags().BoolVar(&stat, "stat", false, "print only file names and counts of lines")
	return verb
}

func diff(ctx context.Context, a *cli.App, d *client.Client, id string, stat bool) error {
	text, err := a.Ask(ctx, d, "diff-task", control.DiffRequest{TaskID: id, Whole: !stat && !a.JSON() && !term.IsTerminal(a.Stdout)})
	if err != nil {
		return mergedBefore(ctx, d, id, err)
	}
	if a.JSON() {
		return a.Answer(text)
	}
	found, err := client.Decode[control.TaskDiff](text)
	if err != nil {
		return err
	}
	if n := len(found.Uncommitted); n > 0 {
		a.Note("%s not committed on %s.", term.Count(n, "changed file"), term.OneLine(found.Branch))
	}
	switch {
	case found.Patch == "":
		a.Note("The task has no changes on %s.", term.OneLine(found.Branch))
		return nil
	case stat:
		var rows [][]term.Cell
		for _, f := range filesOf(found.Patch) {
			rows = append(rows, []term.Cell{term.Text(term.OneLine(f.Name)), term.Figure("+" + strconv.Itoa(f.Added)), term.Figure("-" + strconv.Itoa(f.Removed))})
		}
		return a.Print("%s", term.Table(rows))
	case !term.IsTerminal(a.Stdout):
		return a.Print("%s", cmp.Or(string(found.Bytes), found.Patch))
	}
	p := a.Paint(a.Stdout)
	var b strings.Builder
	for line := range strings.Lines(found.Patch) {
		line = wire.Visible(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
		b.WriteString(p.Ink(term.DiffInk(line), line) + "\n")
	}
	return a.Print("%s", b.String())
}

// filesOf returns the files of a patch, with the lines added and removed.
func filesOf(patch string) (files []changedFile) {
	f, begun := changedFile{}, false
	flush := func() {
		if begun {
			files = append(files, f)
		}
		f, begun = changedFile{}, true
	}
	old, young := 0, 0 // lines of the hunk that are still to come
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		if old > 0 || young > 0 {
			switch {
			case strings.HasPrefix(line, "+"):
				f.Added, young = f.Added+1, young-1
			case strings.HasPrefix(line, "-"):
				f.Removed, old = f.Removed+1, old-1
			case !strings.HasPrefix(line, "\\"):
				old, young = old-1, young-1
			}
			continue
		}
		if both, ok := strings.CutPrefix(line, "diff --git "); ok {
			flush()
			f.Name = sameName(both)
		} else if h := hunkHead.FindStringSubmatch(line); h != nil {
			old, young = linesOf(h[1]), linesOf(h[2])
		} else if to, ok := strings.CutPrefix(line, "rename to "); ok {
			f.Name = unquoted(to)
		} else if to, ok := strings.CutPrefix(line, "+++ "); ok && to != "/dev/null" {
			f.Name = strings.TrimPrefix(unquoted(strings.TrimSuffix(to, "\t")), "b/")
		}
	}
	flush()
	return files
}

// hunkHead has the numbers of lines.
var hunkHead = regexp.MustCompile(`^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)

func linesOf(number string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(number, ","))
	if err != nil {
		return 1
	}
	return n
}

// sameName returns the name of a file that the first line of its patch has twice: behind a/ and behind b/. The names
// of a renamed file differ, and other lines have them.
func sameName(both string) string {
	half := both[:len(both)/2]
	return strings.TrimPrefix(unquoted(half), "a/")
}

// unquoted returns a name that git quotes if it has special characters.
func unquoted(name string) string {
	if plain, err := strconv.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
		return plain
	}
	return name
}

func taskMergeCommand(a *cli.App) *cobra.Command {
	var in control.MergeRequest
	verb := &cobra.Command{
		Use:   "merge ID",
		Short: "Merge the branch of a task after a successful verification",
		Long: `Merges the branch of a task into the branch where it began, or into another one. The merge
is made in a separate folder, and the verify commands of its agent run there. If they
succeed, the branch moves, and so do your files if it is checked out. Nothing is pushed.
Then the workspace and the branch of the task are removed, unless keep is "all".

Nothing is merged if the workspace has uncommitted changes, if both branches change the same
lines, or if a verify command fails. In the last two cases the agent usually gets a
follow-up task: orchestrator help verified.`,
		Example:           "  orchestrator task merge 91c0\n  orchestrator task merge 91c0 --into release",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			return onTask(a, args[0], func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
				in.TaskID = id
				return merge(ctx, a, d, in)
			})
		},
	}
	verb.Flags().StringVar(&in.Into, "into", "", "`branch` to merge into (default: the branch where the task began)")
	_ = verb.RegisterFlagCompletionFunc("into", cobra.NoFileCompletions)
	return verb
}

func merge(ctx context.Context, a *cli.App, d *client.Client, in control.MergeRequest) error {
	text, err := a.Ask(ctx, d, "merge-task", in)
	if err != nil {
		return mergedBefore(ctx, d, in.TaskID, err)
	}
	if a.JSON() {
		return a.Answer(text)
	}
	m, err := client.Decode[control.MergeReply](text)
	if err != nil {
		return err
	}
	word := "is merged into"
	if m.Already {
		word = "is already merged into"
	}
	a.Note("%s %s %s.", term.OneLine(m.Branch), word, term.OneLine(m.Into))
	return a.Print("%s\n", term.OneLine(m.Commit))
}

// WorkspaceCommand returns the workspace command.
func WorkspaceCommand(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "workspace",
		Short: "Inspect and remove the workspaces of tasks",
		Long: `Each task of an agent with a workspace block has its own git worktree and branch. See
orchestrator help verified.`,
		Example: "  orchestrator workspace ls\n  orchestrator workspace show 91c0\n  orchestrator workspace prune",
	},
		cli.OnRecord(workspacesCommand(a, "ls", "list-workspaces", "List the workspaces of tasks", "Lists the workspaces of tasks: their branches, and what has not been committed or merged.")),
		cli.OnRecord(workspaceCommand(a)),
		workspacesCommand(a, "prune", "prune-workspaces", "Remove the workspaces of merged tasks",
			"Removes the workspaces and branches of tasks whose work has been merged, and prints which. It\nleaves those with changes that are not committed or not merged, and those without a commit."),
	)
}

func workspacesCommand(a *cli.App, word, operation, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: word, Short: short, Long: long,
		Example: "  orchestrator workspace " + word + "\n  orchestrator workspace " + word + " --json",
		Args:    cli.ArgCount(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return workspaces(ctx, a, d, operation) })
		},
	}
}

func workspaceCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show the workspace of a task",
		Long: `Shows the workspace of a task: its folder and branch, its changed files, and its uncommitted
or unmerged work. For the changes themselves, use task diff.`,
		Example: "  orchestrator workspace show 91c0\n  orchestrator workspace show 91c0 --json",
		Args:    cli.ArgCount(1, 1), ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error { return onTask(a, args[0], showWorkspace) },
	}
}

// workspaceDocument is the output of workspace show --json.
type workspaceDocument struct {
	FormatVersion string `json:"format_version"`
	control.WorkspaceView
	Files []changedFile `json:"files"`
}

// A changedFile is a file of a patch, with the lines added and removed.
type changedFile struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

func showWorkspace(ctx context.Context, a *cli.App, d *client.Client, id string) error {
	text, err := d.Ask(ctx, "list-workspaces", struct{}{})
	if err != nil {
		return err
	}
	list, err := client.Decode[control.WorkspaceList](text)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list.Workspaces, func(w control.WorkspaceView) bool { return w.TaskID == id })
	if i < 0 {
		return &cli.Failure{
			Exit: cli.ExitNo, Code: wire.CodeNotFound, Message: "the task has no workspace", Hint: "List the workspaces: orchestrator workspace ls",
		}
	}
	doc := workspaceDocument{FormatVersion: wire.FormatVersion, WorkspaceView: list.Workspaces[i], Files: []changedFile{}}
	trouble := ""
	if found, err := d.Ask(ctx, "diff-task", control.DiffRequest{TaskID: id}); err == nil {
		diff, err := client.Decode[control.TaskDiff](found)
		if err != nil {
			return err
		}
		doc.Files = append(doc.Files, filesOf(diff.Patch)...)
	} else {
		trouble = err.Error()
	}
	if a.JSON() {
		return a.Document(doc)
	}
	t, _, err := GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	w, p := &doc.WorkspaceView, a.Paint(a.Stdout)
	var c term.Card
	c.Row("agent", t.AssignedTo)
	c.Row("folder", w.Path)
	c.Row("branch", w.Branch+", from "+w.Base)
	c.Row("work", workOf(w))
	var files []string
	for _, f := range doc.Files {
		files = append(files, fmt.Sprintf("%s  +%d -%d", f.Name, f.Added, f.Removed))
	}
	c.Rows("changed", files)
	c.Row("trouble", trouble)
	return a.Print("%s  %s  %s\n%s", p.Strong(wire.Visible(t.ID)), term.OneLine(t.Name), p.Task(t.State, wire.Visible(string(t.State))), term.Table(c.Lines))
}

func workspaces(ctx context.Context, a *cli.App, d *client.Client, operation string) error {
	text, err := a.Ask(ctx, d, operation, struct{}{})
	if err != nil {
		return err
	}
	list, err := client.Decode[control.WorkspaceList](text)
	switch {
	case err != nil:
		return err
	case a.JSON():
		return a.Answer(text)
	case a.Flags.Quiet:
		return cli.PrintNames(a, list.Workspaces, func(w *control.WorkspaceView) string { return w.Path })
	case len(list.Workspaces) == 0 && operation == "prune-workspaces":
		a.Note("Nothing to remove.")
		return nil
	case len(list.Workspaces) == 0:
		a.Note("No task has a workspace. See orchestrator help verified")
		return nil
	}
	rows := [][]term.Cell{{term.Text("TASK"), term.Text("BRANCH"), term.Text("WORK"), term.Text("FOLDER")}}
	for i := range list.Workspaces {
		w := &list.Workspaces[i]
		rows = append(rows, []term.Cell{term.Text(term.ID(w.TaskID)), term.Text(term.OneLine(w.Branch)), term.Text(workOf(w)), term.Text(term.OneLine(w.Path))})
	}
	return a.Print("%s", term.Table(rows))
}

// workOf describes the content of a workspace.
func workOf(w *control.WorkspaceView) string {
	var parts []string
	if w.Trouble != "" {
		parts = append(parts, term.OneLine(w.Trouble))
	}
	if w.Missing {
		parts = append(parts, "folder missing")
	}
	if w.Uncommitted > 0 {
		parts = append(parts, term.Count(w.Uncommitted, "file")+" not committed")
	}
	if w.Ahead > 0 {
		parts = append(parts, term.Count(w.Ahead, "commit")+" not in "+term.OneLine(w.Base))
	}
	if len(parts) > 0 && w.Heir != "" {
		parts = append(parts, "to be merged with the branch of "+term.ID(w.Heir))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case w.Moved && w.Heir != "":
		return "merged with the branch of " + term.ID(w.Heir)
	case w.Moved:
		return "merged"
	}
	return "no changes yet"
}

// LastMerge returns the latest event about the merge of a task's branch, or nil.
func LastMerge(found []wire.Event) *wire.Event {
	for _, e := range slices.Backward(found) {
		if isMerge(&e) {
			return &e
		}
	}
	return nil
}

func isMerge(e *wire.Event) bool { return e.Kind == events.TaskMerged || e.Kind == events.TaskUnmerged }

// MergeWords returns the text of an event about a merge, without the task.
func MergeWords(e *wire.Event) string {
	about, _ := client.Decode[struct {
		Name string `json:"name"`
	}](e.Payload)
	return strings.TrimPrefix(e.Text, fmt.Sprintf("%s %q ", wire.ShortID(e.Task), wire.Visible(about.Name)))
}

// lastMerge is LastMerge for a task. It returns nil, too, if the events cannot be read.
func lastMerge(ctx context.Context, d *client.Client, id string) *wire.Event {
	found, _ := client.Collect(ctx, d, "events", url.Values{"task": {id}}, isMerge)
	return LastMerge(found)
}

// mergedBefore adds to the error of a task without a workspace that its branch is merged.
func mergedBefore(ctx context.Context, d *client.Client, id string, err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != wire.CodeNotFound {
		return err
	}
	if e := lastMerge(ctx, d, id); e != nil && e.Kind == events.TaskMerged {
		f.Message = "the branch of the task " + term.OneLine(MergeWords(e))
		if _, commit, ok := strings.Cut(MergeWords(e), ": "); ok {
			f.Hint = "See its changes: git show -m --first-parent " + term.OneLine(commit)
		}
	}
	return err
}
