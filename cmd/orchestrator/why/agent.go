package why

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// agentCauses explains the state of an agent. It is also the JSON answer.
type agentCauses struct {
	FormatVersion string              `json:"format_version"`
	Agent         string              `json:"agent"`
	State         control.State       `json:"state"`
	Since         string              `json:"since,omitzero"`
	Reason        string              `json:"reason"`
	Host          string              `json:"host,omitzero"` // its host; "": the machine of the hub
	WaitsFor      []whyOther          `json:"waits_for"`     // agents
	Starts        int                 `json:"starts"`
	Restarts      int                 `json:"restarts"`
	NextStartMS   int64               `json:"next_start_ms,omitzero"`
	LastExit      string              `json:"last_exit"`
	Tried         []tried             `json:"tried"`
	LastWords     []string            `json:"last_words"`
	Heard         *heard              `json:"heard,omitzero"` // of a running agent
	Refused       []tried             `json:"refused"`        // rejected messages of this run
	LeftOver      []tried             `json:"left_over"`      // processes of this run that were ended
	Tasks         []control.TaskLabel `json:"tasks"`          // its tasks
	Questions     []string            `json:"questions"`      // ids of its open questions
	LimitedUntil  string              `json:"limited_until,omitzero"`
	Next          []string            `json:"next"`

	view  *control.AgentView
	asked []wire.Question // of Questions
}

// A whyOther is an agent that this one waits for.
type whyOther struct {
	Agent string        `json:"agent"`
	State control.State `json:"state"`
	Words string        `json:"words"`
}

func whyAgent(ctx context.Context, a *cli.App, d *client.Client, status *control.Status, v *control.AgentView) error {
	c := &agentCauses{
		FormatVersion: wire.FormatVersion, Agent: v.Name, State: v.State, Reason: v.Reason, Host: v.Host, Starts: v.Starts, Restarts: v.Restarts,
		NextStartMS: v.NextStartMS, LastExit: v.LastExit, Tasks: v.Tasks, view: v,
	}
	if v.Activity != nil {
		c.LimitedUntil = v.Activity.LimitedUntil
	}
	if v.State == control.StateWaiting {
		c.waits(status)
	}
	if err := lifeOf(ctx, d, c); err != nil {
		return err
	}
	var err error
	if c.asked, err = questions(ctx, a, d, func(q *wire.Question) bool { return q.Agent == v.Name }); err != nil {
		return err
	}
	for i := range c.asked {
		c.Questions = append(c.Questions, c.asked[i].ID)
	}
	c.Next = c.next()
	if a.FromRecord() {
		c.Next = whenDown(c.Next)
	}
	if a.Flags.JSON {
		return a.Document(c)
	}
	return a.Print("%s", c.text(a.Paint(a.Stdout), time.Now()))
}

// waits adds the states of the agents that this one waits for.
func (c *agentCauses) waits(status *control.Status) {
	for _, name := range c.view.DependsOn {
		for i := range status.Agents {
			if o := &status.Agents[i]; o.Name == name || o.Block == name {
				c.WaitsFor = append(c.WaitsFor, whyOther{Agent: o.Name, State: o.State, Words: standing(o)})
			}
		}
	}
}

// lifeOf adds since when the agent has its state. For an agent that does not run it also
// adds how its runs ended and its last lines.
func lifeOf(ctx context.Context, d *client.Client, c *agentCauses) error {
	query := url.Values{"agent": {c.Agent}, "type": {"agent.*"}}
	found, err := readable(ctx, d, query, func(e *wire.Event) bool {
		return moves[e.Kind] || e.Kind == events.AgentRefused || e.Kind == events.AgentLeftOver
	})
	if err != nil {
		return err
	}
	began := "" // the latest run
	for i := range found {
		if moves[found[i].Kind] {
			c.Since = found[i].At
		}
		if found[i].Kind == events.AgentStarting {
			began = found[i].At
		}
	}
	lines, err := client.Collect(ctx, d, "logs", url.Values{"agent": {c.Agent}, "n": {someWords}}, func(l *control.LogLine) bool { return l.Stream != control.StreamOwn })
	if err != nil {
		return err
	}
	c.hears(lines, found)
	if c.State.Live() && c.State != control.StateStalled {
		return nil // earlier runs do not matter
	}
	c.Tried = triedOf(found, events.AgentExited, events.AgentRestarting, events.AgentGaveUp, events.AgentStalled, events.AgentStopping)
	lines = slices.DeleteFunc(lines, func(l control.LogLine) bool { return l.At < began }) // maybe of another command
	for _, line := range lines[max(0, len(lines)-fewWords):] {
		c.LastWords = append(c.LastWords, line.Text)
	}
	return nil
}

// moves are the kinds of events that change the state of an agent.
var moves = map[string]bool{
	events.AgentWaiting: true, events.AgentStarting: true, events.AgentStarted: true, events.AgentExited: true, events.AgentRestarting: true,
	events.AgentGaveUp: true, events.AgentStopping: true, events.AgentStopped: true, events.AgentStalled: true, events.AgentRecovered: true,
}

// fewWords is how many last lines of an agent are shown. someWords are requested, because
// they include lines of the orchestrator.
const fewWords, someWords = 5, "100"

// text returns the explanation for people.
func (c *agentCauses) text(p term.Paint, now time.Time) string {
	state := p.State(c.State, wire.Visible(string(c.State)))
	if c.State == control.StateBackoff {
		state = "in " + state
	}
	head := fmt.Sprintf("%s is %s%s\n", p.Strong(term.OneLine(c.Agent)), state, since(c.Since, now))
	card := term.Card{}
	card.Row("reason", term.AgentNote(*c.view))
	if c.Host != "" {
		card.Row("host", term.OneLine(c.Host)+", which runs its processes. Its log is on the hub")
	}
	for _, o := range c.WaitsFor {
		card.Row("waits for", term.OneLine(o.Agent)+", "+o.Words)
	}
	card.Row("starts", fmt.Sprintf("%d, with %s", c.Starts, term.Count(c.Restarts, "automatic restart")))
	card.Row("last exit", c.LastExit)
	addTried(&card, "before", c.Tried, now)
	if c.Heard != nil {
		card.Row("output", c.Heard.words(c.view, now))
		card.Row("stdin", stdinWords(&c.view.Mailbox))
	}
	addTried(&card, "refused", c.Refused, now)
	addTried(&card, "left over", c.LeftOver, now)
	var said []string
	for _, line := range c.LastWords {
		said = append(said, term.Clip(wire.Visible(line), 200))
	}
	card.Rows("last words", said)
	var held []string
	for _, t := range c.Tasks[:min(maxTold, len(c.Tasks))] {
		held = append(held, term.TaskLabel(t.ID, t.Name)+", "+task.FarWords(&wire.Task{State: t.State, Progress: t.Progress}))
	}
	card.Rows("has", held)
	card.Rows("next", c.Next)
	return head + term.Table(card.Lines)
}

// next returns the next steps of the orchestrator, and the options of a person.
func (c *agentCauses) next() []string {
	name := term.OneLine(c.Agent)
	start, logs := "orchestrator agent start "+name, "Its output: orchestrator logs "+name+"     Its events: orchestrator events --agent "+name
	var next []string
	switch c.State {
	case control.StateBackoff:
		next = []string{"It starts again in " + term.MS(c.NextStartMS) + ". At once: " + start, logs}
	case control.StateFailed:
		next = []string{"It is not restarted. When the cause is fixed: " + start}
		if c.Starts > 0 {
			next = append(next, logs)
		}
	case control.StateExited:
		next = []string{"It exited normally and is not restarted. Start it: " + start}
	case control.StateStopped:
		next = []string{"It stays stopped until you start it: " + start}
	case control.StateWaiting:
		next = c.nextOfWaiting(name)
	case control.StateStalled:
		next = []string{logs, "Restart it: orchestrator agent restart " + name}
	case control.StateRunning:
		switch held := term.HeldUp(c.view.Activity, time.Now()); {
		case c.view.Mailbox.TaskUnread && len(c.Tasks) > 0:
			next = append(next, unreadTask(c.view), "Check whether it reads stdin: orchestrator check -- "+commandLine(c.view))
		case held == "":
			next = append(next, name+" is "+standing(c.view)+".")
		}
		next = append(next, c.whySilent()...)
		if slices.ContainsFunc(c.Refused, func(t tried) bool { return !strings.HasPrefix(t.Text, "refused request:complete-task") }) {
			next = append(next, "The format of its messages: orchestrator schema")
		}
	default:
		next = []string{"It is starting or stopping: orchestrator status"}
	}
	return append(append(next, limitLines(c.view, time.Now())...), questionLines(c.asked, itself)...)
}

// heard is the output of a running agent.
type heard struct {
	Lines int64  `json:"lines"` // in all its runs, without messages
	Bytes int64  `json:"bytes"` // in all its runs
	Last  string `json:"last_at,omitzero"`
}

// hears adds the output of the current run and its rejected messages. The counters are sums
// of all runs.
func (c *agentCauses) hears(lines []control.LogLine, found []wire.Event) {
	v := c.view
	if !v.State.Live() || v.StartedAt == "" {
		return
	}
	c.Heard = &heard{Lines: v.Output.Lines, Bytes: v.Output.Bytes}
	for i := range lines {
		if at := lines[i].At; at >= v.StartedAt {
			c.Heard.Last = at
		}
	}
	before := func(t tried) bool { return t.At < v.StartedAt }
	c.Refused = slices.DeleteFunc(triedOf(found, events.AgentRefused), before)
	c.LeftOver = slices.DeleteFunc(triedOf(found, events.AgentLeftOver), before)
}

// silent reports whether a running agent has never printed anything.
func (c *agentCauses) silent() bool { return c.Heard != nil && c.Heard.Bytes == 0 }

func (h *heard) words(v *control.AgentView, now time.Time) string {
	switch {
	case h.Bytes == 0 && v.Starts > 1:
		return fmt.Sprintf("no output in %d runs", v.Starts)
	case h.Bytes == 0:
		return "no output since its start" + agoWords(v.StartedAt, now)
	case h.Last != "":
		return fmt.Sprintf("%s%s; %s in total", term.Clock(h.Last, now, time.TimeOnly), agoWords(h.Last, now), term.Bytes(h.Bytes))
	}
	if v.Starts > 1 {
		return fmt.Sprintf("no text in this run; %s in total, with messages", term.Bytes(h.Bytes))
	}
	return fmt.Sprintf("%s of messages, no other text", term.Bytes(h.Bytes))
}

// agoWords returns how long ago a timestamp was, in parentheses.
func agoWords(stamp string, now time.Time) string {
	passed, ok := term.Between(stamp, object.Timestamp(now))
	if !ok {
		return ""
	}
	return " (" + term.Duration(max(0, passed)) + " ago)"
}

// patientWith is how long an agent may be silent before possible causes are shown. Many agents are
// silent before they get work.
const patientWith = 10 * time.Second

// whySilent returns possible causes of silence. Output in the buffer of the program is not
// visible from outside.
func (c *agentCauses) whySilent() []string {
	if !c.silent() || time.Duration(c.view.UpMS)*time.Millisecond < patientWith {
		return nil
	}
	return []string{
		"It has printed no output, which is fine if it has nothing to report yet. Its stdout is a pipe unless the file has pty = true,",
		"so output may wait in its buffer: flush each line (Python: PYTHONUNBUFFERED=1; other programs: stdbuf -oL CMD), or set pty = true.",
		"Test it alone: orchestrator check -- " + commandLine(c.view),
	}
}

func commandLine(v *control.AgentView) string {
	return term.OneLine(strings.Join(cli.Quoted(v.Command), " "))
}

// unreadTask returns that an agent has not read its latest task.
func unreadTask(v *control.AgentView) string {
	latest := v.Tasks[len(v.Tasks)-1]
	return fmt.Sprintf("%s has not read its task %s: %s.", term.OneLine(v.Name), term.TaskLabel(latest.ID, latest.Name), stdinWords(&v.Mailbox))
}

// stdinWords returns how much of its stdin the agent has not read, or "".
func stdinWords(m *control.MailboxView) string {
	if m.Messages == 0 && m.Unread == 0 {
		return ""
	}
	words := term.Bytes(m.Unread) + " unread in its stdin"
	if m.Messages > 0 {
		words += ", " + term.Count(m.Messages, "message") + " waiting"
	}
	return words
}

// nextOfWaiting returns the next steps for an agent that waits for other agents, or for a host.
// Failed and stopped agents do not start by themselves.
func (c *agentCauses) nextOfWaiting(name string) []string {
	if strings.HasPrefix(c.view.Reason, "for a host") {
		return []string{"It starts when such a host joins. List the hosts: orchestrator hosts"}
	}
	alone := "Start it without them: orchestrator agent start --no-deps " + name
	for _, o := range c.WaitsFor {
		if o.State == control.StateFailed || o.State == control.StateStopped {
			other := term.OneLine(o.Agent)
			return []string{
				fmt.Sprintf("It cannot start: %s is %s and does not start by itself. Why: orchestrator why %s", other, o.State, other), alone,
			}
		}
	}
	return []string{"It starts when the agents that it depends on are ready. " + alone}
}
