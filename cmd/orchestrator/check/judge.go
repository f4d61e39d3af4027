package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A Verdict is the result of a check.
type Verdict string

const (
	OK   Verdict = "ok"
	Fail Verdict = "fail" // the program does not work as an agent
	Warn Verdict = "warn" // the program works, but not as intended
	Note Verdict = "note" // information, or a check that was not possible
)

// A Finding is the result of one check.
type Finding struct {
	Check   string  `json:"check"` // machine-readable name
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Cure    string  `json:"cure,omitzero"`
}

// Findings is a list of findings.
type Findings []Finding

func (f *Findings) add(verdict Verdict, check, cure, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Verdict: verdict, Text: fmt.Sprintf(format, args...), Cure: cure})
}

func (f *Findings) ok(check, format string, args ...any) { f.add(OK, check, "", format, args...) }

// Count returns the number of findings with a verdict.
func (f Findings) Count(verdict Verdict) (n int) {
	for i := range f {
		if f[i].Verdict == verdict {
			n++
		}
	}
	return n
}

// Buffered reports whether the output of the program is delayed by its own buffer.
func (f Findings) Buffered() bool { return f.has("buffering") }

// has reports whether one of the checks has failed or has a warning.
func (f Findings) has(checks ...string) bool {
	return slices.ContainsFunc(f, func(one Finding) bool {
		return one.Verdict != OK && one.Verdict != Note && slices.Contains(checks, one.Check)
	})
}

// requirements are the demands of a check on a program.
type requirements struct {
	Demand bool   // the program must do tasks
	Role   string // role that its tasks require
	Wait   time.Duration
	Grace  time.Duration // time between the end of stdin and the signal

	InheritEnv bool   // it gets variables that look like credentials
	Workspace  string // the repository of its workspaces, or ""
}

// judgeFirst judges a life with a task and then a request to end.
func (r *run) judgeFirst(task string, terms requirements) Findings {
	var f Findings
	f.starts(r, task)
	f.prints(r, task)
	f.works(r, task, terms)
	f.says(r)
	f.stops(r, terms)
	f.leaves(r)
	return f
}

// buffering is the cure for buffered output.
const buffering = "Flush stdout after each line: PYTHONUNBUFFERED=1 or python3 -u, fflush(stdout), $| = 1, or run it under stdbuf -oL"

func (f *Findings) starts(r *run, task string) {
	x, gone := r.exit()
	first := ""
	if len(r.said) > 0 {
		first = ", prints its first line after " + term.Duration(r.firstWord().Sub(r.Started))
	}
	switch {
	case !gone || !r.ByItself():
		f.ok("starts", "starts%s", first)
	case x.Code != nil && *x.Code == 0:
		f.add(Note, "starts", "An agent that works on tasks reads stdin until end of file", "exits by itself, with 0 after %s", term.Duration(x.Up))
	case r.Done(task):
		f.ok("starts", "starts%s", first)
		*f = append(*f, judgeStep(stepAgain, died, r, true))
	default:
		f.add(Fail, "starts", "Run the same command by hand, with stdin left open", "ends by itself: %s%s", x.Text, r.lastWords())
	}
}

// firstWord returns the time of the first line on stdout.
func (r *run) firstWord() time.Time {
	first := r.said[0]
	for _, at := range r.said {
		if at.Before(first) {
			first = at
		}
	}
	if first.Before(r.Started) { // line times are rounded to milliseconds
		return r.Started
	}
	return first
}

func (r *run) lastWords() string {
	if len(r.last) == 0 {
		return ", without output"
	}
	return ". Last output: " + strings.Join(r.last, " / ")
}

// prints judges whether output arrives when it is printed.
func (f *Findings) prints(r *run, task string) {
	before, after := r.around()
	t := r.Tasks[task]
	answered := t != nil && t.State != "" && !t.ByExit
	late := answered && !t.early
	switch {
	case answered && t.early:
	case before+after == 0 && r.errors == 0 && !r.ByItself():
		f.add(Warn, "prints", "If it prints output: "+lower(buffering), "prints no output")
	case late, before == 0 && after > 1:
		f.add(Fail, "buffering", buffering+". And read stdin line by line, not to its end (mawk: -W interactive)",
			"stdout is block-buffered: its output (%s) arrived all at once, after the end of stdin", term.Count(after, "line"))
	}
}

// around counts the messages and lines on stdout before and after the request to end. The
// audit has times in milliseconds; equal times count as before.
func (r *run) around() (before, after int) {
	asked := r.Asked.Truncate(time.Millisecond)
	before, after = r.early, r.lines-r.early
	for _, at := range r.trail.at {
		if at.After(asked) {
			after++
		} else {
			before++
		}
	}
	return before, after
}

// works judges the result of the task.
func (f *Findings) works(r *run, task string, terms requirements) {
	t := r.Tasks[task]
	if t == nil {
		t = new(seenTask)
	}
	missing := Note
	if terms.Demand || r.Working {
		missing = Fail
	}
	const how = "Send request:complete-task or request:fail-task, with payload.taskId: orchestrator help agents"
	switch {
	case f.Buffered(), r.ByItself() && missing == Note && t.State != events.TaskDone: // another finding tells this
	case t.ByExit && t.State == events.TaskDone && terms.Demand:
		f.add(Warn, "task", how, "its task ended with it: exit 0 counts as done, even if it ignored the task")
	case t.ByExit && t.State == events.TaskDone:
		f.add(Note, "task", "", "its task ended with it: exit 0 counts as done")
	case t.ByExit:
		f.add(missing, "task", how, "its task ended with it: %s", term.OneLine(t.Text))
	case t.State == events.TaskDone:
		f.ok("task", "completes its task")
	case t.State == events.TaskFailed:
		_, why, _ := strings.Cut(t.Text, " failed: ")
		cure := "Let it accept any task, even one without a payload"
		if terms.Workspace == "" {
			cure += ". If it needs a folder with a repository: check --workspace DIR"
		}
		f.add(Fail, "task", cure, "fails its task: %s", term.OneLine(why))
	case t.State == events.TaskHelpWanted:
		f.ok("task", "asks a person for help with its task")
	case r.Working:
		f.add(Fail, "task", how+". Or wait longer: --wait", "starts its task but reports no result within %s", term.Duration(terms.Wait))
	default:
		f.add(missing, "task", how, "does not respond to its task (notify:task-assigned, as a %s) within %s", terms.Role, term.Duration(terms.Wait))
	}
	f.stamped(t)
}

// stamped judges the timestamp of a recorded message.
func (f *Findings) stamped(t *seenTask) {
	said, ok := object.ParseTime(t.Stamp)
	if !ok {
		return
	}
	if off := t.At.Sub(said).Abs(); off > time.Minute {
		f.add(Warn, "timestamps", "Send the time in UTC, for example "+object.Timestamp(t.At)+": date -u +%FT%TZ, new Date().toISOString()",
			"its timestamps are off by %s: it sent %s", term.Duration(off.Round(time.Second)), wire.Visible(t.Stamp))
	}
}

// says judges the messages and all other lines.
func (f *Findings) says(r *run) {
	had := len(*f)
	f.refused(r.Refusals())
	f.cut(r.cut)
	f.lines(r.odd.list)
	if len(r.Asks) > 0 {
		f.add(Note, "asks", "", "asks people: %s", r.Asks[0])
	}
	for _, one := range (*f)[had:] {
		if one.Verdict != Note {
			return
		}
	}
	if r.trail.granted > 0 {
		f.ok("messages", "its messages are understood (%s)", term.Count(r.trail.granted, "request"))
	}
}

func (f *Findings) cut(lines []string) {
	if len(lines) > 0 {
		f.add(Fail, "long-lines", "Write large content to a file and send its path, or raise protocol.max_line", "%s", term.OneLine(lines[0]))
	}
}

// stops judges how the program ends when it is asked to.
func (f *Findings) stops(r *run, terms requirements) {
	x, gone := r.exit()
	if r.ByItself() || r.Stopped == nil {
		return
	}
	const loop = "Exit when stdin ends: leave the read loop at end of file, and do not wait for other threads"
	took := time.Duration(r.Stopped.Figures.TookMS) * time.Millisecond
	grace := term.Duration(terms.Grace)
	killed := x.Signal == "SIGKILL"
	// A process that had to be killed after the program has a separate finding.
	ignored := took >= terms.Grace && !strings.Contains(r.Stopped.Text, "had to be killed")
	switch {
	case !gone, killed && took >= terms.Grace:
		f.add(Fail, "stop", loop+"; or exit on SIGTERM", "ignores the end of stdin and SIGTERM, and had to be killed")
	case ignored && (r.Deaf != "" || r.Unread > 0):
		f.add(Warn, "stop", `Read stdin, and exit when it ends. To get a signal instead: stdin = "null". If it is only slow to start: check --wait 1m`,
			"never reads stdin, so it misses the end of it: SIGTERM ended it after %s", grace)
	case ignored:
		f.add(Fail, "stop", loop, "ignores the end of stdin: still running %s later, then ended by SIGTERM", grace)
	case x.Code == nil:
		f.add(Fail, "exit-code", "Find out why it fails at the end of stdin", "dies when asked to stop: %s%s", x.Text, r.lastWords())
	case *x.Code != 0 && r.waits():
		f.add(Note, "exit-code", "", "exits with %d when asked to stop, while it waits for tasks that have no agent here", *x.Code)
	case *x.Code != 0:
		f.add(Fail, "exit-code", "Exit with 0 when stdin ends: any other code means failure", "exits with %d when asked to stop%s", *x.Code, r.lastWords())
	default:
		f.ok("stop", "exits with 0 when stdin ends, after %s", term.Duration(took))
	}
}

// leaves judges whether the program leaves processes behind.
func (f *Findings) leaves(r *run) {
	if len(r.Exits) == 0 {
		return
	}
	var names []string
	for _, one := range r.Left {
		name := fmt.Sprintf("%d %s", one.PID, wire.Visible(one.Program))
		if one.HeldOpen {
			name += ", which held its output open"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		f.ok("left-overs", "leaves no process behind")
		return
	}
	verdict := Fail
	if x, _ := r.exit(); x.Code == nil { // killed, so it could not end them
		verdict = Note
	}
	f.add(verdict, "left-overs", "Stop its child processes, and wait for them, before it exits. Here they were stopped in the middle of their work",
		"leaves %s behind: %s", term.Count(len(names), "process"), strings.Join(names[:min(len(names), 4)], "; "))
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// A step is a test of whether a working program continues after an event.
type step struct {
	Check string
	What  string // the event: "an unknown notification"
	Cure  string
}

var (
	stepAgain = step{
		Check: "again", What: "the first",
		Cure: "Keep reading after a task: an agent gets many tasks, and exit 0 means that it has finished them all",
	}
	stepUnknown = step{
		Check: "unknown", What: "an unknown notification",
		Cure: "Skip unknown types, and check the type before you read other members",
	}
	stepLong = step{
		Check: "long-input", What: "a line of 1 MiB",
		Cure: "Read whole lines of any length: bufio.Reader instead of Scanner, readline instead of a fixed buffer",
	}
	stepCancelled = step{
		Check: "cancelled", What: "a cancelled task (notify:task-cancelled, then response:error to requests about it)",
		Cure: "Treat response:error like any other response, and continue with the next task",
	}
	stepPieces = step{
		Check: "pieces", What: "a line that arrives in pieces",
		Cure: "Read until the end of the line, however many reads that takes",
	}
	stepMany = step{
		Check: "many", What: "ten tasks in a row",
		Cure: "Keep reading after a task: the next one arrives when the previous one has ended",
	}
	stepKilled = step{
		Check: "killed", What: "a kill -9 during a task",
		Cure: "Leave nothing behind that blocks the next start: no lock files, no half-written state",
	}
)

// An outcome is the result of a step.
type outcome int

const (
	wentOn outcome = iota // it did the next task, or only read its input if it does no tasks
	died
	fell   // it runs, but does not do the next task
	unread // it does not read its input
)

// judgeStep judges the outcome of a step.
func judgeStep(s step, o outcome, r *run, works bool) Finding {
	var f Findings
	switch {
	case o == died && s.Check == stepAgain.Check:
		f.add(Fail, s.Check, "Every request gets response:success or response:error on stdin: skip responses that you do not need. "+s.Cure,
			"dies after its first task%s", r.death())
	case o != wentOn && s.Check == stepAgain.Check:
		f.add(Fail, s.Check, s.Cure, "does one task, then no more")
	case o == died:
		f.add(Fail, s.Check, s.Cure, "dies after %s%s", s.What, r.death())
	case o == fell:
		f.add(Fail, s.Check, s.Cure, "does no more tasks after %s", s.What)
	case o == unread:
		f.add(Note, s.Check, "", "did not read %s", s.What)
	case s.Check == stepAgain.Check:
		f.ok(s.Check, "does a second task")
	case works && s.Check == stepMany.Check:
		f.ok(s.Check, "does %s", s.What)
	case works:
		f.ok(s.Check, "does its next task after %s", s.What)
	default:
		f.ok(s.Check, "keeps running after %s", s.What)
	}
	return f[0]
}

// death describes an unexpected end of the program.
func (r *run) death() string {
	x, gone := r.exit()
	if !gone {
		return ""
	}
	return ": " + x.Text + r.lastWords()
}

// Crashed reports whether the program ended before it was asked to, or with a nonzero exit
// code.
func (r *run) Crashed() bool {
	x, gone := r.exit()
	return gone && (r.ByItself() || x.Code != nil && *x.Code != 0)
}

// judgeRepeat judges the differences between two lives that should have been alike.
func judgeRepeat(first, second Findings) Finding {
	var f Findings
	var differ []string
	for _, one := range second {
		if one.Verdict != OK && !first.same(one) {
			differ = append(differ, one.Text)
		}
	}
	for _, one := range first {
		if one.Verdict != OK && !second.same(one) {
			differ = append(differ, "no longer: "+one.Text)
		}
	}
	if len(differ) == 0 {
		f.ok("repeats", "behaves the same in a second run")
	} else {
		f.add(Warn, "repeats", "Look for state that it keeps between runs, and for random behavior",
			"behaves differently in a second run: %s", term.OneLine(strings.Join(differ, "; ")))
	}
	return f[0]
}

// same reports whether the findings have one with the same check and verdict.
func (f Findings) same(one Finding) bool {
	for _, other := range f {
		if other.Check == one.Check && other.Verdict == one.Verdict {
			return true
		}
	}
	return false
}

// News returns the faults that only a later life has shown.
func (f Findings) News(later Findings) (news Findings) {
	for _, one := range later {
		if one.Verdict != OK && one.Verdict != Note && !f.same(one) {
			news = append(news, one)
		}
	}
	return news
}

// judgeLater judges a life with steps: its messages, its end and its processes.
func (r *run) judgeLater(terms requirements) Findings {
	var f Findings
	f.says(r)
	f.stops(r, terms)
	f.leaves(r)
	return f
}
