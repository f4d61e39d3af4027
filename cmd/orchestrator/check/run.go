package check

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// A run records one life of a program. Its fields may be read by the function that Await
// calls, and by all when the life is over.
type run struct {
	Agent string

	Refused *refusedStart // why it could not be started, or nil
	PID     int
	Starts  int
	Started time.Time
	Asked   time.Time // when it was asked to end
	Exits   []processExit
	Stopped *wire.Event // how the ordered stop ended
	Ended   bool        // no process of the last life is left
	Left    []wire.LeftOver
	Deaf    string // why it receives no messages; "" if it does
	Tasks   map[string]*seenTask
	Working bool  // it has sent a message about one of its tasks
	Told    int   // number of such messages
	Unread  int64 // bytes of stdin it had not read when it was asked to end
	Asks    []string

	said   []time.Time // times of the first lines on stdout
	early  int         // log lines before it was asked to end
	lines  int         // log lines
	errors int         // lines on stderr
	last   []string    // last lines of stderr, or of stdout if that is empty
	cut    []string
	odd    oddities
	trail  trail

	mu      sync.Mutex
	changed chan struct{}
}

// refusedStart is why a program could not be started.
type refusedStart struct {
	Exit int
	Text string
}

// processExit is the end of one process.
type processExit struct {
	Text   string
	Code   *int // nil when a signal ended it
	Signal string
	Up     time.Duration
	At     time.Time

	unasked bool // not part of an ordered stop
}

// A seenTask is a task of the program.
type seenTask struct {
	State string // kind of the event that ended it; "" before
	Text  string
	At    time.Time
	// ByExit reports that it ended because the program exited.
	ByExit bool
	Stamp  string // timestamp of the message that ended it

	given bool // assigned to the program, not only submitted by it
	begun bool // the program was notified of it
	early bool // ended before the program was asked to end
}

const (
	wordsKept = 4   // last lines
	saidKept  = 256 // times
)

// newRun returns the run of an agent that has not started.
func newRun(agent string, depth int) *run {
	return &run{
		Agent: agent, Tasks: make(map[string]*seenTask), changed: make(chan struct{}),
		odd: oddities{reader: stdio.Reader{Agent: agent, Depth: depth}},
	}
}

// Follow records everything until the follower is closed.
func (r *run) Follow(f *output.Follower) {
	var spare output.Backlog
	for f.Next(context.Background(), &spare, r.hear) {
		r.mu.Lock()
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
	}
}

// Ends records that the program is now asked to end.
func (r *run) Ends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Asked, r.early = time.Now(), r.lines
	for _, t := range r.Tasks {
		t.early = t.State != ""
	}
}

// Await waits until so returns true. It calls so after each change, and returns false if
// ctx is done first.
func (r *run) Await(ctx context.Context, so func() bool) bool {
	for {
		r.mu.Lock()
		yes, changed := so(), r.changed
		r.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *run) hear(l output.Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case l.Event != nil:
		r.event(l.Event, l.At)
	case l.Agent != r.Agent:
	case l.Stream == control.StreamErr:
		r.errors++
		r.odd.onStderr(l.Text)
		r.remember(l.Text)
	default:
		r.lines++
		r.speaks(l.At)
		r.odd.onStdout(l.Text)
		if r.errors == 0 {
			r.remember(l.Text)
		}
	}
}

func (r *run) speaks(at time.Time) {
	if len(r.said) < saidKept {
		r.said = append(r.said, at)
	}
}

func (r *run) remember(text []byte) {
	r.last = append(r.last, clip(text))
	r.last = r.last[max(0, len(r.last)-wordsKept):]
}

func (r *run) event(e *wire.Event, at time.Time) {
	if e.Task != "" {
		r.taskEvent(e, at)
	}
	switch e.Kind {
	case events.AgentStarted:
		r.Starts, r.PID, r.Ended = r.Starts+1, e.Figures.PID, false
		if r.Starts == 1 {
			r.Started = at
		}
	case events.AgentExited:
		r.exits(e, at)
	case events.AgentEnded:
		if r.Ended = true; r.running() { // an ordered stop has no other exit event
			r.exits(e, at)
		}
	case events.AgentGaveUp:
		if r.Starts == 0 && e.Figures.ExitCode != nil {
			r.Refused = &refusedStart{Exit: *e.Figures.ExitCode, Text: e.Text}
		}
	case events.AgentStopped:
		r.Stopped = e
		r.leave(e.Figures.LeftOver)
	case events.AgentLeftOver:
		r.leave(e.Figures.LeftOver)
	case events.AgentLineCut:
		r.cut = append(r.cut, e.Text)
	case events.AgentStalled:
		r.Deaf = e.Text
	case events.QuestionAsked:
		r.Asks = append(r.Asks, clip([]byte(e.Text)))
	}
}

func (r *run) exits(e *wire.Event, at time.Time) {
	for _, t := range r.Tasks { // the end of a task may precede the exit
		ended := t.State == events.TaskDone || t.State == events.TaskFailed
		t.ByExit = t.ByExit || ended && t.Stamp == "" && !t.At.Before(at)
	}
	r.Exits = append(r.Exits, processExit{
		Text: e.Text, Code: e.Figures.ExitCode, Signal: e.Figures.Signal, At: at,
		Up: time.Duration(e.Figures.UpMS) * time.Millisecond, unasked: e.Kind == events.AgentExited,
	})
}

// leave records processes that were left behind, each once.
func (r *run) leave(list []wire.LeftOver) {
	for _, one := range list {
		if !slices.ContainsFunc(r.Left, func(l wire.LeftOver) bool { return l.PID == one.PID }) {
			r.Left = append(r.Left, one)
		}
	}
}

// taskEvent records an event of a task.
func (r *run) taskEvent(e *wire.Event, at time.Time) {
	t := r.Tasks[e.Task]
	if t == nil {
		t = new(seenTask)
		r.Tasks[e.Task] = t
	}
	switch e.Kind {
	case events.TaskAssigned:
		t.given = t.given || e.Agent == r.Agent
	case events.TaskStarted:
		t.begun = true
	case events.TaskProgress, events.TaskTrouble:
		r.Working = true
		r.Told++
	case events.TaskHelpWanted:
		r.Working = true
		t.State, t.Text, t.At = e.Kind, e.Text, at
	case events.TaskDone, events.TaskFailed, events.TaskCancelled:
		t.State, t.Text, t.At = e.Kind, e.Text, at
		t.Stamp = stampOf(e.Payload)
		t.ByExit = t.Stamp == "" && !r.running()
		r.Working = r.Working || e.Kind != events.TaskCancelled && !t.ByExit
	}
}

// running reports whether the program runs, according to the events so far.
func (r *run) running() bool { return len(r.Exits) < r.Starts }

// Gone reports whether the program has started and ended, or could not be started.
func (r *run) Gone() bool { return r.Refused != nil || r.Starts > 0 && !r.running() }

// Over reports whether a task has ended, or waits for a person.
func (r *run) Over(task string) bool {
	t := r.Tasks[task]
	return t != nil && t.State != ""
}

// Unclear reports whether a task has ended in another way than by a message on stdout, such
// as by the end of the program.
func (r *run) Unclear(task string) bool {
	t := r.Tasks[task]
	return t != nil && t.State != "" && t.Stamp == ""
}

// Begun reports whether the program was notified of a task.
func (r *run) Begun(task string) bool {
	t := r.Tasks[task]
	return t != nil && t.begun
}

// waits reports whether the program has submitted a task that is still open.
func (r *run) waits() bool {
	for _, t := range r.Tasks {
		if !t.given && t.State == "" {
			return true
		}
	}
	return false
}

// Done reports whether the program has completed a task by a message.
func (r *run) Done(task string) bool {
	t := r.Tasks[task]
	return t != nil && t.State == events.TaskDone && !t.ByExit
}

// exit returns the last exit, if there is one.
func (r *run) exit() (processExit, bool) {
	if len(r.Exits) == 0 {
		return processExit{}, false
	}
	return r.Exits[len(r.Exits)-1], true
}

// ByItself reports whether the program ended before it was asked to.
func (r *run) ByItself() bool {
	x, gone := r.exit()
	return gone && x.unasked
}

// oddities collects log lines that may have been meant as messages.
type oddities struct {
	reader stdio.Reader
	list   []oddity
}

// An oddity is one kind of odd lines.
type oddity struct {
	check string
	count int
	first string // first such line
	why   string // why the first one is not a message
}

func (o *oddities) note(check, why string, text []byte) {
	for i := range o.list {
		if o.list[i].check == check {
			o.list[i].count++
			return
		}
	}
	o.list = append(o.list, oddity{check: check, count: 1, first: clip(text), why: why})
}

// The kinds of oddities.
const (
	oddType   = "types"      // an object with an unknown type
	oddJSON   = "json"       // almost an object
	oddKeys   = "keys"       // an object with a duplicate key
	oddTorn   = "torn-lines" // a message begins inside another one
	oddBehind = "own-line"   // a message begins after other text
	oddSpread = "one-line"   // a message over several lines
	oddUTF8   = "utf-8"
	oddStderr = "stderr" // a message on stderr
	oddMark   = "marks"  // invisible characters before the object
	oddNested = "depth"
)

var (
	// begun matches the beginning of a message anywhere in a line.
	begun = pattern(`\{\s*["']type["']\s*:\s*["'](request|event):`)
	// spread matches a line of a pretty-printed message.
	spread = pattern(`^\s*"type"\s*:\s*"(request|event):[^"]*",?\s*$`)
	// invisible matches invisible characters before an object.
	invisible = pattern("^(\ufeff|\x1b\\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1a])+\\s*\\{")
)

// pattern compiles a regular expression when it is first used, because most commands use none.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// onStdout checks a log line on stdout.
func (o *oddities) onStdout(line []byte) {
	text := bytes.TrimSpace(line)
	var members map[string]wire.Raw
	isObject := len(text) > 1 && text[0] == '{'
	switch places := begun().FindAllIndex(text, 2); {
	case !utf8.Valid(line):
		o.note(oddUTF8, "", line)
	case invisible().Match(line):
		o.note(oddMark, "", line)
	case spread().Match(line):
		o.note(oddSpread, "", line)
	case isObject && object.DecodeOwn(text, &members) == nil:
		o.onObject(text, members)
	case len(places) > 1, len(places) == 1 && places[0][0] > 0 && isObject:
		o.note(oddTorn, "", line)
	case len(places) == 1 && places[0][0] > 0:
		o.note(oddBehind, "", line)
	case isObject && (len(places) > 0 || bytes.Contains(text, []byte("type"))):
		o.note(oddJSON, "", line)
	}
}

// onObject checks a log line that is a JSON object.
func (o *oddities) onObject(text []byte, members map[string]wire.Raw) {
	log, ok := o.reader.Parse(text).(wire.Log)
	if !ok {
		return // a message: the audit has its result
	}
	switch {
	case strings.Contains(log.Why, "stands twice"):
		o.note(oddKeys, log.Why, text)
	case strings.Contains(log.Why, "nests"):
		o.note(oddNested, log.Why, text)
	case log.Why != "": // an echo of received input
	case members["type"] != nil:
		o.note(oddType, "", text)
	}
}

// onStderr checks a line of stderr, where messages have no effect.
func (o *oddities) onStderr(line []byte) {
	switch o.reader.Parse(line).(type) {
	case *wire.Request, *wire.AgentEvent, *wire.Session:
		o.note(oddStderr, "", line)
	}
}

const most = 100 // columns of a shown line

// clip returns the beginning of a line, escaped.
func clip(text []byte) string {
	return term.Clip(wire.Visible(string(text[:min(len(text), 4*most)])), most)
}
