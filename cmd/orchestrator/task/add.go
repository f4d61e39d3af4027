package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// addFlags are the flags of task add.
type addFlags struct {
	kind         string
	spec         string
	payload      string
	role         cli.Choice
	capabilities []string
	priority     string
	needs        needFlags
	wants        wantFlags
	details      detailFlags
	assign       string
	verify       []string
	review       bool
	plan         bool
	wait         bool
}

// noRole is the value of --role for a task that any role may do.
const noRole = "none"

func taskAddCommand(a *cli.App) *cobra.Command {
	f := addFlags{role: cli.Choice{Of: append(slices.Clone(wire.Roles), noRole), Open: true}}
	verb := &cobra.Command{
		Use:   "add TITLE",
		Short: "Submit a new task",
		Long: `Creates a task. When the tasks it needs are done, it is assigned to an idle agent that
has the role and all of the capabilities.

The default role is worker. With --role none any agent with the capabilities can get
the task. A task with requirements instead (--repo, --language and so on) is matched:
it goes to the agent that fits best. With --assign it goes to the named agent. With
--review it goes to the architect of the team's session, for example orchestrator lead,
who has it done and reviewed.

--spec and --payload take the text itself, @FILE for the contents of a file, or - for
stdin. See orchestrator help work.`,
		Example: `  orchestrator task add "Say hello"
  orchestrator task add "API handlers" --needs 7f3a --capability go --wait
  orchestrator task add "Review the API" --role reviewer --spec @review.md
  orchestrator task add "Client" --input 7f3a:api_schema --language go
  orchestrator task add "Paginate GET /orders" --spec @orders.md --review
  orchestrator task add "Migrate" --assign coder-0 --require-plan
  orchestrator task add "Paginate GET /orders" --verify "go test ./..."
  id=$(orchestrator task add "Write the spec" -q)`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, args []string) error {
			if f.review && f.assign != "" {
				return cli.UsageError("--review and --assign name different agents", "Leave out one of them")
			}
			if verb.Flags().Changed("needs") && len(f.needs.needs) == 0 { // probably an unset variable of a script
				return cli.UsageError("--needs is empty", "Leave it out for a task without dependencies")
			}
			return addTask(a, args[0], &f)
		},
	}
	f.addTo(a, verb)
	return verb
}

func (f *addFlags) addTo(a *cli.App, verb *cobra.Command) {
	set := verb.Flags()
	set.StringVar(&f.kind, "type", "task", "`KIND` of work, shown to the agent")
	set.StringVar(&f.spec, "spec", "", "description of the task: `TEXT`, @FILE or -")
	set.StringVar(&f.payload, "payload", "", "a `JSON` object for the agent; or @FILE or -")
	f.needs.addTo(a, verb)
	set.Var(&f.role, "role", "the role of the agent: worker, planner, reviewer, one of the file, or none for any")
	set.StringSliceVar(&f.capabilities, "capability", nil, "capabilities that the agent must have: comma-separated `NAMES`; may be repeated")
	f.wants.addTo(a, verb)
	set.StringVar(&f.assign, "assign", "", "assign the task to `AGENT`")
	set.StringArrayVar(&f.verify, "verify", nil, "`COMMAND` of the shell that must succeed before the task is done; may be repeated")
	set.BoolVar(&f.review, "review", false, "have the result reviewed in the session of the team")
	set.BoolVar(&f.plan, "require-plan", false, "the agent must submit a plan for approval first")
	set.StringVar(&f.priority, "priority", "", "critical, high, normal, low, or a number: `P` 1 comes first (default 3)")
	f.details.addTo(verb)
	set.BoolVar(&f.wait, "wait", false, "wait until the task has ended, as task wait does")
	_ = verb.RegisterFlagCompletionFunc("role", f.role.Complete)
	_ = verb.RegisterFlagCompletionFunc("assign", a.CompleteAgents)
	_ = verb.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(priorityWords, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"type", "capability", "verify"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// request returns the request for the flags. The needed tasks are added later.
func (f *addFlags) request(a *cli.App, title string) (*wire.SubmitTask, error) {
	r := &wire.SubmitTask{Type: f.kind, Name: title, RequiredCapabilities: f.capabilities}
	for _, line := range f.verify {
		r.Verify = append(r.Verify, []string{"sh", "-c", line})
	}
	if err := oneFromStdin("spec", f.spec, "payload", f.payload, "structured-spec", f.details.spec, "requirements", f.wants.document); err != nil {
		return nil, err
	}
	var err error
	if r.Requirements, err = f.wants.read(a); err != nil {
		return nil, err
	}
	if r.RequiredRole, err = f.requiredRole(r.Requirements); err != nil {
		return nil, err
	}
	if r.Priority, err = priorityOf(f.priority); err != nil {
		return nil, err
	}
	if r.Description, err = a.ReadArg("--spec", f.spec); err != nil {
		return nil, err
	}
	if err = f.details.readInto(a, r); err != nil {
		return nil, err
	}
	r.Payload, err = a.GivenDocument("payload", f.payload)
	return r, err
}

// requiredRole returns the role that the task requires. A matched task and one for a named
// agent have none, because a role would assign the task to any agent that has it.
func (f *addFlags) requiredRole(requirements *hub.Requirements) (string, error) {
	asks := f.role.Value != "" || len(f.capabilities) > 0
	matched := !requirements.Empty()
	switch {
	case f.plan && f.assign == "":
		return "", cli.UsageError("--require-plan requires an agent", "Name it: --assign AGENT")
	case f.assign != "" && asks && f.role.Value != noRole:
		return "", cli.UsageError("--assign cannot be combined with --role or --capability", "Leave out --role and --capability")
	case f.role.Value == noRole && len(f.capabilities) == 0 && !matched && f.assign == "":
		return "", cli.UsageError("--role none requires a --capability: a task without requirements is not assigned", "For any worker, leave out --role")
	case f.role.Value == noRole, !asks && (matched || f.assign != "" || f.review):
		return "", nil
	case !asks:
		return wire.RoleWorker, nil
	}
	return f.role.Value, nil
}

func addTask(a *cli.App, title string, f *addFlags) error {
	request, err := f.request(a, title)
	if err != nil {
		return err
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		if request.Dependencies, err = f.needs.read(ctx, NewFinder(a, d)); err != nil {
			return err
		}
		if f.review {
			if f.assign, err = architect(ctx, d); err != nil {
				return err
			}
		}
		t, text, err := makeTask(ctx, a, d, request, f)
		if err != nil {
			return err
		}
		words := ""
		switch {
		case a.Flags.JSON && !f.wait:
			return a.Answer(text)
		case a.Flags.JSON:
		case a.Flags.Quiet:
			err = a.Print("%s\n", wire.Visible(t.ID))
		default:
			words, err = created(ctx, a, d, t)
		}
		if err != nil || !f.wait {
			return err
		}
		return waitForNew(ctx, a, d, t.ID, words)
	})
}

// architect returns the architect of the open session that has one.
func architect(ctx context.Context, d *client.Client) (name string, err error) {
	text, err := d.Ask(ctx, "list-sessions", struct{}{})
	if err != nil {
		return "", err
	}
	list, err := client.Decode[session.List](text)
	if err != nil {
		return "", err
	}
	var found []string
	for _, s := range list.Sessions {
		for _, m := range s.Members {
			if s.State == session.Open && m.AgentType == session.AgentArchitect {
				found, name = append(found, s.ID+" by "+m.AgentID), m.AgentID
			}
		}
	}
	switch len(found) {
	case 0:
		return "", &cli.Failure{
			Exit: cli.ExitNo, Code: wire.CodeNotFound, Message: "no session of the team has an architect to review the task",
			Hint: "Write a team with one: orchestrator init --team review     or: orchestrator help session",
		}
	case 1:
		return name, nil
	}
	return "", cli.UsageError("several sessions have an architect: "+strings.Join(found, ", "), "Name the architect: --assign AGENT")
}

// makeTask submits a task, for the named agent if there is one. It first checks that the agent
// exists, for a better error.
func makeTask(ctx context.Context, a *cli.App, d *client.Client, request *wire.SubmitTask, f *addFlags) (Seen, []byte, error) {
	if f.assign != "" {
		if err := isAgent(ctx, a, d, f.assign); err != nil {
			return Seen{}, nil, err
		}
		request.AssignTo, request.RequirePlan = f.assign, f.plan
	}
	return askTask(ctx, a, d, "submit-task", request)
}

// created prints that a task was created, with its current state.
func created(ctx context.Context, a *cli.App, d *client.Client, t Seen) (words string, err error) {
	if now, _, err := GetTask(ctx, a, d, t.ID); err == nil {
		t = now
	}
	words = stateOf(ctx, a, d, &t)
	err = a.Print("%s created, %s\n", a.Paint(a.Stdout).Strong(term.ID(t.ID)), words)
	if IsMatched(&t.Task) && len(t.WaitsFor) == 0 {
		a.Note("Assign it: orchestrator task assign --auto %s     Compare agents: orchestrator task match %[1]s", term.ID(t.ID))
	}
	if t.State == wire.TaskPending && AsksByName(&t.Task) && len(t.WaitsFor) == 0 {
		fits, err := Fits(ctx, a, d, &t) // without an answer it prints no note
		if err == nil && !slices.ContainsFunc(fits, func(f Fit) bool {
			return f.Status != "offline" && f.Status != "crashed" && (f.Good() || f.Full)
		}) {
			a.Note("No agent fits it yet. Why: orchestrator why %s", term.ID(t.ID))
		}
	}
	return words, err
}

// waitForNew waits for a new task as task wait does.
func waitForNew(ctx context.Context, a *cli.App, d *client.Client, id, told string) error {
	v := vigil(a, d, []string{id}, false)
	v.told[0] = told
	if err := v.keep(ctx); err != nil {
		return err
	}
	if a.Flags.JSON {
		if err := a.Document(taskDocument{FormatVersion: wire.FormatVersion, Task: v.tasks[0].raw}); err != nil {
			return err
		}
	}
	return v.verdict()
}

// detailFlags are the flags for parts that few tasks have.
type detailFlags struct {
	spec       string
	targetRepo string
	criteria   []string
	project    string
}

func (f *detailFlags) addTo(verb *cobra.Command) {
	set := verb.Flags()
	set.StringVar(&f.spec, "structured-spec", "", "machine-readable spec: a `JSON` object, @FILE or -")
	set.StringVar(&f.targetRepo, "target-repo", "", "repository `REPO` of the task")
	set.StringArrayVar(&f.criteria, "criterion", nil, "acceptance criterion: `TEXT`, may be repeated")
	set.StringVar(&f.project, "project", "", "project of the task: an `ID` of your choice")
	for _, name := range []string{"target-repo", "criterion", "project"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// readInto adds the flags to the request for a new task.
func (f *detailFlags) readInto(a *cli.App, r *wire.SubmitTask) error {
	r.TargetRepo, r.AcceptanceCriteria, r.ProjectID = f.targetRepo, f.criteria, f.project
	spec, err := a.GivenDocument("structured-spec", f.spec)
	if spec != nil {
		r.Spec = &hub.Spec{Document: spec}
	}
	return err
}

// oneFromStdin returns an error if two flags read stdin. Its arguments alternate between
// names and values.
func oneFromStdin(flags ...string) error {
	first := ""
	for i := 0; i < len(flags); i += 2 {
		switch {
		case flags[i+1] != "-":
		case first != "":
			return cli.UsageError(fmt.Sprintf("--%s and --%s cannot both come from stdin", first, flags[i]), "Read one of them from @FILE")
		default:
			first = flags[i]
		}
	}
	return nil
}

// priorityWords lists the names of priorities, the most urgent first.
var priorityWords = []string{"critical", "high", "normal", "low"}

// priorityOf parses a --priority: a number, or one of the words.
func priorityOf(text string) (wire.Raw, error) {
	if text == "" {
		return nil, nil
	}
	if slices.Contains(priorityWords, text) {
		return wire.Raw(object.Quote(text)), nil
	}
	number := wire.Raw(text)
	if !number.IsValid() || number.Kind() != '0' {
		return nil, cli.UsageError(
			fmt.Sprintf("--priority cannot be %q%s", text, cli.DidYouMean(text, priorityWords)),
			"Use a number (1 is the highest, 3 the default), or "+strings.Join(priorityWords, ", "),
		)
	}
	return number, nil
}

// needFlags are the flags for the dependencies of a task.
type needFlags struct {
	needs   []string
	inputs  []string
	related []string
}

func (f *needFlags) addTo(a *cli.App, verb *cobra.Command) {
	set := verb.Flags()
	set.StringSliceVar(&f.needs, "needs", nil, "tasks that must be done first: comma-separated `IDS`; may be repeated")
	set.StringSliceVar(&f.inputs, "input", nil, "tasks that must deliver an input first: comma-separated `ID:CONTRACT`; may be repeated")
	set.StringSliceVar(&f.related, "related", nil, "related tasks, which don't block this one: comma-separated `IDS`; may be repeated")
	for _, name := range []string{"needs", "input", "related"} {
		_ = verb.RegisterFlagCompletionFunc(name, CompleteTasks(a, true))
	}
}

// read returns the dependencies for the flags, without duplicates.
func (f *needFlags) read(ctx context.Context, find *Finder) ([]hub.Dependency, error) {
	var all []hub.Dependency
	add := func(words []string, kind string) error {
		for _, word := range words {
			d, err := find.dependency(ctx, word, kind)
			if err != nil {
				return err
			}
			same := func(o hub.Dependency) bool { return o.On == d.On && o.Type == d.Type && o.Contract == d.Contract }
			if !slices.ContainsFunc(all, same) {
				all = append(all, d)
			}
		}
		return nil
	}
	if err := add(f.needs, hub.DependsBlocks); err != nil {
		return nil, err
	}
	if err := add(f.inputs, hub.DependsInput); err != nil {
		return nil, err
	}
	return all, add(f.related, hub.DependsRelated)
}

// dependency parses ID, or ID:CONTRACT for an input.
func (f *Finder) dependency(ctx context.Context, word, kind string) (hub.Dependency, error) {
	id, contract, named := strings.Cut(word, ":")
	switch {
	case kind == hub.DependsInput && contract == "":
		return hub.Dependency{}, cli.UsageError(fmt.Sprintf("%q names no output of that task", word), "Name the contract of its spec: --input ID:CONTRACT")
	case kind != hub.DependsInput && named:
		return hub.Dependency{}, cli.UsageError(fmt.Sprintf("%q names a contract, but only inputs have contracts", word), "Write only the id")
	}
	whole, err := f.ID(ctx, id)
	return hub.Dependency{On: whole, Type: kind, Contract: contract}, err
}

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
	set.StringVar(&f.repo, "repo", "", "the agent must have the repository `REPO`")
	set.StringSliceVar(&f.languages, "language", nil, "languages that the agent must know: comma-separated `NAMES`; may be repeated")
	set.StringSliceVar(&f.environments, "environment", nil, "environments of which the agent must have one: comma-separated `NAMES`; may be repeated")
	set.StringSliceVar(&f.tools, "tool", nil, "prefer agents with these tools: comma-separated `NAMES`; may be repeated")
	set.StringSliceVar(&f.tags, "tag", nil, "prefer agents with these tags, with less weight: comma-separated `NAMES`; may be repeated")
	set.StringVar(&f.prefer, "prefer", "", "prefer `AGENT`")
	_ = verb.RegisterFlagCompletionFunc("prefer", a.CompleteAgents)
	for _, name := range []string{"repo", "language", "environment", "tool", "tag"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// read returns the requirements for the flags, or nil without flags.
func (f *wantFlags) read(a *cli.App) (*hub.Requirements, error) {
	brief := &hub.Requirements{
		Repo: f.repo, Languages: f.languages, Environments: f.environments, Tools: f.tools, Tags: f.tags, Prefer: f.prefer,
	}
	switch {
	case f.document != "" && !brief.Empty():
		return nil, cli.UsageError("--requirements cannot be combined with flags for single requirements", "Use one of the two")
	case f.document != "":
		document, err := a.GivenDocument("requirements", f.document)
		return hub.ReadRequirements(document), err
	case brief.Empty():
		return nil, nil
	}
	return brief, nil
}

// wantWords returns a description of requirements, or "".
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
