package checkup

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Terms are the requirements of a check.
type Terms struct {
	Demand bool   // the program must do tasks
	Role   string // role that its tasks require
	Wait   time.Duration
	Grace  time.Duration // time between the end of stdin and the signal
}

// First judges a life in which the program got a task and was then asked to end.
func First(r *Run, task string, terms Terms) Findings {
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

func (f *Findings) starts(r *Run, task string) {
	x, gone := r.exit()
	first := ""
	if len(r.said) > 0 {
		first = ", says its first words after " + term.Duration(r.firstWord().Sub(r.Started))
	}
	switch {
	case !gone || !r.ByItself():
		f.ok("starts", "starts%s", first)
	case x.Code != nil && *x.Code == 0:
		f.add(Note, "starts", "An agent that is there for tasks reads stdin until it ends", "ends by itself, with exit 0 after %s", term.Duration(x.Up))
	case r.Done(task):
		f.ok("starts", "starts%s", first)
		*f = append(*f, After(Again, Died, r, true))
	default:
		f.add(Fail, "starts", "Run it by hand: the same command, with its stdin left open", "ends by itself: %s%s", x.Text, r.lastWords())
	}
}

// firstWord returns the time of the first line on stdout.
func (r *Run) firstWord() time.Time {
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

func (r *Run) lastWords() string {
	if len(r.last) == 0 {
		return ", without a word"
	}
	return ". Last words: " + strings.Join(r.last, " / ")
}

// prints judges whether output arrives when it is printed.
func (f *Findings) prints(r *Run, task string) {
	before, after := r.around()
	t := r.Tasks[task]
	answered := t != nil && t.State != "" && !t.ByExit
	late := answered && !t.early
	switch {
	case answered && t.early:
	case before+after == 0 && r.errors == 0 && !r.ByItself():
		f.add(Warn, "prints", "If it does print something: "+lower(buffering), "prints nothing at all")
	case late, before == 0 && after > 1:
		f.add(Fail, "buffering", buffering+". And read stdin line by line, not to its end (mawk: -W interactive)",
			"stdout is block-buffered: what it said (%s) came in one piece after the end of its stdin", term.Count(after, "line"))
	}
}

// around counts the messages and lines on stdout before and after the request to end. The
// audit has times in milliseconds; equal times count as before.
func (r *Run) around() (before, after int) {
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
func (f *Findings) works(r *Run, task string, terms Terms) {
	t := r.Tasks[task]
	if t == nil {
		t = new(Task)
	}
	missing := Note
	if terms.Demand || r.Working {
		missing = Fail
	}
	const how = "Say request:complete-task with its payload.taskId, or request:fail-task: orchestrator help agents"
	switch {
	case f.Buffered(), r.ByItself() && missing == Note && t.State != events.TaskDone: // another finding tells this
	case t.ByExit && t.State == events.TaskDone && terms.Demand:
		f.add(Warn, "task", how, "its task ended with it: exit 0 counts as done, whatever it did about it")
	case t.ByExit && t.State == events.TaskDone:
		f.add(Note, "task", "", "its task ended with it: exit 0 counts as done")
	case t.ByExit:
		f.add(missing, "task", how, "its task ended with it: %s", term.OneLine(t.Text))
	case t.State == events.TaskDone:
		f.ok("task", "does a task that it is given")
	case t.State == events.TaskFailed:
		_, why, _ := strings.Cut(t.Text, " failed: ")
		f.ok("task", "answers a task that it is given: it fails it (%s)", term.OneLine(why))
	case t.State == events.TaskHelpWanted:
		f.ok("task", "answers a task that it is given: it wants a person")
	case r.Working:
		f.add(Fail, "task", how+". Or give it longer: --wait", "begins a task, and does not say within %s how it ended", term.Duration(terms.Wait))
	default:
		f.add(missing, "task", how, "does nothing about a task that it is given (notify:task-assigned, as a %s) within %s", terms.Role, term.Duration(terms.Wait))
	}
	f.stamped(t)
}

// stamped judges the timestamp of a recorded message.
func (f *Findings) stamped(t *Task) {
	said, ok := object.ParseTime(t.Stamp)
	if !ok {
		return
	}
	if off := t.At.Sub(said).Abs(); off > time.Minute {
		f.add(Warn, "timestamps", "Say the time in UTC, such as "+object.Timestamp(t.At)+": date -u +%FT%TZ, new Date().toISOString()",
			"its timestamps are wrong by %s: it said %s", term.Duration(off.Round(time.Second)), wire.Visible(t.Stamp))
	}
}

// says judges the messages and the other lines.
func (f *Findings) says(r *Run) {
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
		f.add(Fail, "long-lines", "Write large things to a file and say where it is; or raise protocol.max_line", "%s", term.OneLine(lines[0]))
	}
}

// stops judges how the program ends when it is asked to.
func (f *Findings) stops(r *Run, terms Terms) {
	x, gone := r.exit()
	if r.ByItself() || r.Stopped == nil {
		return
	}
	const loop = "End when stdin ends: leave the loop that reads it at end of file, and wait for no other thread"
	took := time.Duration(r.Stopped.Figures.TookMS) * time.Millisecond
	grace := term.Duration(terms.Grace)
	killed := x.Signal == "SIGKILL"
	// A process that had to be killed after the program has a finding of its own.
	ignored := took >= terms.Grace && !strings.Contains(r.Stopped.Text, "had to be killed")
	switch {
	case !gone, killed && took >= terms.Grace:
		f.add(Fail, "stop", loop+"; or end at SIGTERM", "ignores the end of its stdin and SIGTERM: it had to be killed")
	case ignored && (r.Deaf != "" || r.Unread > 0):
		f.add(Warn, "stop", `Read stdin and end with it; or give it none, and it is ended by a signal at once: stdin = "null". If it only takes long to start: check --wait 1m`,
			"never reads its stdin, so it does not hear its end: SIGTERM ended it after %s", grace)
	case ignored:
		f.add(Fail, "stop", loop, "ignores the end of its stdin: still running %s after it, and ended by SIGTERM", grace)
	case x.Code == nil:
		f.add(Fail, "exit-code", "Look what breaks in it at the end of stdin", "dies when it is asked to end: %s%s", x.Text, r.lastWords())
	case *x.Code != 0 && r.waits():
		f.add(Note, "exit-code", "", "ends with exit %d when it is asked to, while it waits for tasks that no agent does here", *x.Code)
	case *x.Code != 0:
		f.add(Fail, "exit-code", "Exit with 0 when stdin ends: another code means that something went wrong", "ends with exit %d when it is asked to%s", *x.Code, r.lastWords())
	default:
		f.ok("stop", "ends with its stdin, exit 0 after %s", term.Duration(took))
	}
}

// leaves judges whether the program leaves processes behind.
func (f *Findings) leaves(r *Run) {
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
	f.add(verdict, "left-overs", "End what it starts, and wait for it, before it exits; they were ended here, with whatever they did",
		"leaves %s behind: %s", term.Count(len(names), "process"), strings.Join(names[:min(len(names), 4)], "; "))
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }
