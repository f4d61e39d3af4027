package console

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/live"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// rowsData is the state of a team for the rows at the bottom of a terminal.
type rowsData struct {
	supervisor.Dashboard
	at     time.Time // when the state was read
	paint  term.Paint
	pinned string // the text of the last row, or ""
}

const (
	barSize     = 10
	stateWidth  = len("needs_human")
	roomForBars = 70 // columns; narrower rows show only a percentage
	roomToPin   = 4  // rows; with fewer, the pinned text is not shown
)

// rows returns the rows: the number of tasks by state, then questions, open tasks and
// agents.
func (r *rowsData) rows(columns, most int, now time.Time) []string {
	if most < 1 || len(r.Status.Agents) == 0 {
		return nil
	}
	rows, room := []string{r.rule(columns)}, most-1
	var pinned []string
	if r.pinned != "" && room > roomToPin {
		pinned, room = []string{r.paint.Dim(term.Clip("   "+r.pinned, columns))}, room-1
	}
	asking := min(len(r.Questions), max(1, room/3), room)
	room -= asking
	open, agents := r.open(), len(r.Status.Agents)
	tasks := min(open, room-min(agents, room/2))
	agents = min(agents, room-tasks)
	for i := range asking {
		spare := room - min(open, 1) - min(agents, 1) // tasks and agents keep a row each
		asked := r.question(&r.Questions[i], columns, spare, now)
		room -= len(asked) - 1
		rows = append(rows, asked...)
	}
	tasks = max(0, min(tasks, room-min(agents, room/2)))
	agents = max(0, min(agents, room-tasks))
	rows = append(rows, r.tasks(tasks, columns)...)
	return append(append(rows, r.agents(agents, columns, now)...), pinned...)
}

// open returns the number of tasks that have not ended.
func (r *rowsData) open() int {
	n := &r.Status.Tasks
	return n.Pending + n.Assigned + n.Planning + n.PlanReview + n.Running + n.NeedsHuman + n.InReview + n.Verifying
}

// rule returns the first row, with the number of tasks in each state.
func (r *rowsData) rule(columns int) string {
	counts := []struct {
		n     int
		state wire.TaskState
	}{
		{r.Status.Tasks.Running, wire.TaskRunning}, {r.Status.Tasks.Assigned, wire.TaskAssigned},
		{r.Status.Tasks.Planning, wire.TaskPlanning}, {r.Status.Tasks.PlanReview, wire.TaskPlanReview},
		{r.Status.Tasks.NeedsHuman, wire.TaskNeedsHuman}, {r.Status.Tasks.InReview, wire.TaskInReview}, {r.Status.Tasks.Verifying, wire.TaskVerifying},
		{r.Status.Tasks.Pending, wire.TaskPending}, {r.Status.Tasks.Done, wire.TaskDone},
		{r.Status.Tasks.Failed, wire.TaskFailed}, {r.Status.Tasks.Cancelled, wire.TaskCancelled},
	}
	said, used := r.paint.Dim("──"), 2
	add := func(text, painted string) {
		if used+1+term.Width(text) <= columns {
			said, used = said+" "+painted, used+1+term.Width(text)
		}
	}
	for _, c := range counts {
		if c.n > 0 {
			text := fmt.Sprintf("%d %s", c.n, c.state)
			add(text, r.paint.Task(c.state, text))
		}
	}
	if used == 2 {
		text := term.Count(len(r.Status.Agents), "agent")
		add(text, text)
	}
	if more := len(r.Questions) - 1; more > 0 {
		text := term.Count(r.Status.Questions, "question")
		add(text, r.paint.Warn(text))
	}
	if rest := columns - used - 1; rest > 0 {
		said += " " + r.paint.Dim(strings.Repeat("─", rest))
	}
	return said
}

// question returns the rows of a question, with the time left and its numbered options. The
// options have rows of their own if spare rows suffice.
func (r *rowsData) question(q *wire.Question, columns, spare int, now time.Time) []string {
	left := ""
	if rest, ok := term.Between(object.Timestamp(now), q.Deadline); ok {
		left = "  " + term.Duration(max(0, rest).Round(time.Second)) + " left"
	}
	if term.Width(left) > columns/2 {
		left = ""
	}
	head := "?  " + wire.Visible(q.ID) + " " + term.OneLine(q.Agent) + ": "
	text := term.OneLine(q.Question)
	var options strings.Builder
	var below []string
	for i, o := range q.Options {
		option := fmt.Sprintf("%d [%s]", i+1, term.OptionWord(&o))
		options.WriteString("  " + option)
		below = append(below, term.Clip("   "+option, columns))
	}
	room := columns - term.Width(left)
	if fits := term.Width(head+text+options.String()) <= room; !fits && len(below) <= spare {
		options.Reset()
	} else {
		below = nil
	}
	whole := term.Clip(head+text, max(room/2, room-term.Width(options.String())))
	whole = term.Pad(term.Clip(whole+options.String(), room), room)
	return append([]string{r.paint.Warn(whole[:1]) + r.paint.Strong(whole[1:]) + r.paint.Dim(left)}, below...)
}

// hint returns how to answer, for the input row.
func (r *rowsData) hint() string {
	switch {
	case len(r.Questions) == 0:
		return ""
	case len(r.Questions) > 1:
		return "answer here: " + wire.Visible(r.Questions[0].ID) + " VALUE"
	case len(r.Questions[0].Options) > 0:
		return "answer here: a number or VALUE"
	}
	return "answer here"
}

// tasks returns the rows of open tasks. If not all fit, the last row counts the rest.
func (r *rowsData) tasks(n, columns int) []string {
	hidden := 0
	if open := r.open(); open > n && n > 1 {
		hidden, n = open-n+1, n-1
	}
	shown := r.Tasks[:min(n, len(r.Tasks))]
	label, who := 0, 0
	for i := range shown {
		label = max(label, term.Width(labelCell(&shown[i])))
		who = min(columns/4, max(who, term.Width(whoCell(&shown[i]))))
	}
	label = min(label, columns-stateWidth-who-progressSize(columns)-7)
	var rows []string
	for i := range shown {
		rows = append(rows, r.task(&shown[i], label, who, columns))
	}
	return r.andMore(rows, hidden, "task", columns)
}

func (r *rowsData) andMore(rows []string, hidden int, noun string, columns int) []string {
	if hidden == 0 {
		return rows
	}
	return append(rows, r.paint.Dim(term.Clip("   … "+term.Count(hidden, "more "+noun), columns)))
}

// task returns the row of a task, with columns of the given widths for its name and agent.
func (r *rowsData) task(t *wire.Task, label, who, columns int) string {
	mark, state := term.Pad(term.Mark(t.State), 3), term.Pad(wire.Visible(string(t.State)), stateWidth+2)
	if label < term.Width(term.ID(t.ID)) { // too narrow for columns
		return term.Clip(mark+state+labelCell(t), columns)
	}
	return mark + term.Pad(term.Clip(labelCell(t), label), label+2) + r.paint.Task(t.State, state) +
		r.paint.Good(progress(t, columns)) + term.Clip(whoCell(t), who)
}

func labelCell(t *wire.Task) string { return term.ID(t.ID) + " " + term.OneLine(t.Name) }

// whoCell returns the agent of a task, or the reason for its wait.
func whoCell(t *wire.Task) string {
	if t.AssignedTo != "" {
		return term.OneLine(t.AssignedTo)
	}
	return cmp.Or(waitWords(t), "waits for "+articled(cmp.Or(term.OneLine(t.RequiredRole), "agent")))
}

// waitWords returns the reason why a task cannot be given to an agent yet, or "".
func waitWords(t *wire.Task) string {
	if len(t.WaitsFor) > 0 {
		return "waits for " + term.NeedsCell(t.WaitsFor)
	}
	if after := term.NotBefore(t, time.Now(), "15:04"); after != "" {
		return "waits until " + after
	}
	return ""
}

// progressSize returns the width of the progress column.
func progressSize(columns int) int {
	if columns < roomForBars {
		return len("100%  ")
	}
	return len("[] 100%  ") + barSize
}

// progress returns the progress of a running task, padded to progressSize.
func progress(t *wire.Task, columns int) string {
	size, far := progressSize(columns), ""
	if t.State == wire.TaskRunning {
		far = fmt.Sprintf("%3.0f%%", t.Progress*100)
		if columns >= roomForBars {
			far = "[" + term.Bar(t.Progress, barSize) + "] " + far
		}
	}
	return term.Pad(far, size)
}

func articled(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// agents returns the rows of agents, in their order. If not all fit, those at work or in
// need of attention are shown.
func (r *rowsData) agents(n, columns int, now time.Time) []string {
	all, hidden := r.Status.Agents, 0
	if len(all) > n && n > 1 {
		hidden, n = len(all)-n+1, n-1
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(calmness(&all[a]), calmness(&all[b])) })
	order = order[:min(n, len(order))]
	slices.Sort(order)
	name := 0
	for _, i := range order {
		name = min(widest, columns/4, max(name, term.Width(term.OneLine(all[i].Name))))
	}
	var rows []string
	for _, i := range order {
		rows = append(rows, r.agent(&all[i], name, columns, now))
	}
	return r.andMore(rows, hidden, "agent", columns)
}

// calmness orders agents. Those in trouble come first.
func calmness(a *control.AgentView) int {
	switch {
	case a.State == control.StateBackoff, a.State == control.StateStalled, a.State == control.StateFailed:
		return 0
	case a.State != control.StateRunning && a.State != control.StateExited && a.State != control.StateStopped:
		return 1
	case len(a.Tasks) > 0:
		return 2
	case a.State == control.StateRunning:
		return 3
	}
	return 4
}

func (r *rowsData) agent(a *control.AgentView, name, columns int, now time.Time) string {
	does := ""
	if len(a.Tasks) > 0 {
		does = term.TaskCell(a.Tasks)
	}
	seen := *a
	seen.NextStartMS = max(1, a.NextStartMS-now.Sub(r.at).Milliseconds())
	if seen.State == control.StateBackoff { // whole seconds, because rows are redrawn once a second
		seen.NextStartMS = (seen.NextStartMS + 999) / 1000 * 1000
	}
	if why := term.AgentNote(seen); why != "" {
		does = strings.TrimPrefix(does+", "+why, ", ")
	}
	called := "   " + term.Pad(term.Clip(term.OneLine(a.Name), name), name) + "  "
	state := term.Pad(wire.Visible(string(a.State)), len("stopping")) + "  "
	if room := columns - term.Width(called+state); room > 0 {
		return r.paint.Agent(a.Name, called) + r.paint.State(a.State, state) + term.Clip(does, room)
	}
	return term.Clip(called+state, columns)
}

const (
	// lookAgain is the minimum time between two reads of the team's state.
	lookAgain = 200 * time.Millisecond
	// maxAtOnce is the maximum number of tasks, and of questions, that are read. No
	// terminal shows more.
	maxAtOnce = 40
)

// liveRows are the rows at the bottom of the terminal of up: the work of every agent, and
// open questions. They read the state of the team after events.
type liveRows struct {
	region *live.Region
	beside *beside
	team   Team
	paint  term.Paint
	pinned string
	news   chan struct{}
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// hasRows reports whether a console may keep rows at the bottom of the terminal.
func hasRows(a *cli.App, json bool) bool {
	return term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stdout) && !a.Flags.Quiet && !a.Flags.JSON &&
		!json && a.Getenv("TERM") != "dumb"
}

// openRows opens the rows at the bottom of the terminal, or returns nil without a terminal.
// Its goroutines end with close.
func openRows(a *cli.App, o Options) *liveRows {
	in, isFile := a.Stdin.(*os.File)
	out, isToo := a.Stdout.(*os.File)
	if !isFile || !isToo || !hasRows(a, o.JSON) {
		return nil
	}
	region, err := live.Open(in, out)
	if err != nil {
		o.Log.Warn("the live rows at the bottom of the terminal are off", "error", err)
		return nil
	}
	p := &liveRows{region: region, team: o.Team, paint: a.Paint(a.Stdout), pinned: o.Pinned, news: make(chan struct{}, 1)}
	if p.beside, _ = a.Stderr.(*beside); p.beside != nil {
		p.beside.region.Store(region)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.group.Go(func() { p.follow(ctx) })
	a.AtEnd(p.close)
	return p
}

// close erases the rows and restores the terminal. It has no effect on nil.
func (l *liveRows) close() {
	if l == nil {
		return
	}
	l.cancel()
	taken := l.region.Close()
	if l.beside != nil {
		l.beside.lost.Store(!taken)
		l.beside.region.Store(nil)
	}
	l.group.Wait()
}

// happened notes that the state may have changed. It never blocks.
func (l *liveRows) happened() {
	if l == nil {
		return
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// follow reads the state of the team after events, at most once each lookAgain.
func (l *liveRows) follow(ctx context.Context) {
	for {
		if scene, err := l.team.Dashboard(ctx, maxAtOnce, maxAtOnce); err == nil {
			l.show(rowsData{Dashboard: scene, at: time.Now(), paint: l.paint, pinned: l.pinned})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
		}
		select {
		case <-ctx.Done():
			return
		case <-l.news:
		}
	}
}

func (l *liveRows) show(v rowsData) {
	l.region.Show(live.Picture{
		Rows:  func(columns, most int) []string { return v.rows(columns, most, time.Now()) },
		Asked: len(v.Questions) > 0,
		Hint:  v.hint(),
	})
}

// beside is stderr on the terminal with the rows. It writes above them.
type beside struct {
	*os.File
	region atomic.Pointer[live.Region]
	lost   atomic.Bool // the terminal accepts no output, and a write would block forever
}

func (b *beside) Write(text []byte) (int, error) {
	if b.lost.Load() {
		return len(text), nil
	}
	if region := b.region.Load(); region != nil {
		return region.Write(text)
	}
	return b.File.Write(text)
}

// Prepare makes stderr write above the rows of a console, if it will have rows and stdout is
// the same terminal. It is called before the first write to stderr.
func Prepare(a *cli.App, json bool) {
	if !hasRows(a, json) {
		return
	}
	out, isFile := a.Stdout.(*os.File)
	err, isToo := a.Stderr.(*os.File)
	if !isFile || !isToo || !term.IsTerminal(err) {
		return
	}
	one, failed := out.Stat()
	other, failedToo := err.Stat()
	if failed == nil && failedToo == nil && os.SameFile(one, other) {
		a.RedirectStderr(&beside{File: err})
	}
}
