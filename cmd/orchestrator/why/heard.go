package why

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

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
	for _, t := range triedOf(found, events.AgentRefused) {
		if t.At >= v.StartedAt {
			c.Refused = append(c.Refused, t)
		}
	}
}

// silent reports whether a running agent has never printed anything.
func (c *agentCauses) silent() bool { return c.Heard != nil && c.Heard.Bytes == 0 }

func (h *heard) words(v *control.AgentView, now time.Time) string {
	switch {
	case h.Bytes == 0 && v.Starts > 1:
		return fmt.Sprintf("nothing, in %d runs", v.Starts)
	case h.Bytes == 0:
		return "nothing since its start" + agoWords(v.StartedAt, now)
	case h.Last != "":
		return fmt.Sprintf("%s%s; %s in all", term.Clock(h.Last, now, time.TimeOnly), agoWords(h.Last, now), term.Bytes(h.Bytes))
	}
	if v.Starts > 1 {
		return fmt.Sprintf("no text in this run; %s in all, messages too", term.Bytes(h.Bytes))
	}
	return fmt.Sprintf("%s of messages, and no other text", term.Bytes(h.Bytes))
}

// agoWords returns how long ago a timestamp was, in parentheses.
func agoWords(stamp string, now time.Time) string {
	passed, ok := term.Between(stamp, object.Timestamp(now))
	if !ok {
		return ""
	}
	return " (" + term.Duration(max(0, passed)) + " ago)"
}

// patientWith is how long an agent may be silent before possible causes are shown. Many
// agents print nothing before they get work.
const patientWith = 10 * time.Second

// whySilent returns possible causes of silence. Output in the buffer of the program is not
// visible from outside.
func (c *agentCauses) whySilent() []string {
	if !c.silent() || time.Duration(c.view.UpMS)*time.Millisecond < patientWith {
		return nil
	}
	return []string{
		"Nothing was heard of it, which is well if it has nothing to say yet. Unless the file says pty = true its stdout is a pipe, and",
		"what it prints may wait in a buffer of its own: flush each line (Python: PYTHONUNBUFFERED=1; others: stdbuf -oL CMD), or pty = true.",
		"See it alone: orchestrator check -- " + term.OneLine(strings.Join(cli.Quoted(c.view.Command), " ")),
	}
}

// stdinWords returns how much of its stdin the agent has not read, or "".
func stdinWords(m *control.MailboxView) string {
	if m.Messages == 0 && m.Unread == 0 {
		return ""
	}
	return fmt.Sprintf("%s unread in its stdin, %s waiting", term.Bytes(m.Unread), term.Count(m.Messages, "message"))
}

// nextOfWaiting returns the next steps for an agent that waits for others. Failed and
// stopped agents do not start by themselves.
func (c *agentCauses) nextOfWaiting(name string) []string {
	alone := "Without them: orchestrator agent start --no-deps " + name
	for _, o := range c.WaitsFor {
		if o.State == control.StateFailed || o.State == control.StateStopped {
			other := term.OneLine(o.Agent)
			return []string{
				fmt.Sprintf("It waits in vain: %s is %s and does not start by itself. Why: orchestrator why %s", other, o.State, other), alone,
			}
		}
	}
	return []string{"It starts when those it waits for are ready. " + alone}
}
