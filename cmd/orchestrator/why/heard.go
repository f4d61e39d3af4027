package why

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// heard is what is known of what an agent says that runs.
type heard struct {
	Lines int64  `json:"lines"` // in all its runs, without messages
	Bytes int64  `json:"bytes"` // in all its runs
	Last  string `json:"last_at,omitzero"`
}

// hears finds what was heard of a run, and what of it was refused. Of earlier runs
// the figures are in one sum, so that of nothing alone more can be said.
func (c *agentCauses) hears(lines []wire.LogLine, events []wire.Event) {
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
	for _, t := range triedOf(events, wire.EventRefused) {
		if t.At >= v.StartedAt {
			c.Refused = append(c.Refused, t)
		}
	}
}

// silent reports whether not one byte of an agent was heard.
func (c *agentCauses) silent() bool { return c.Heard != nil && c.Heard.Bytes == 0 }

func (h *heard) words(v *wire.AgentView, now time.Time) string {
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

// agoWords is how long ago something was, in parentheses.
func agoWords(stamp string, now time.Time) string {
	passed, ok := term.Between(stamp, wire.Timestamp(now))
	if !ok {
		return ""
	}
	return " (" + term.Duration(max(0, passed)) + " ago)"
}

// patientWith is how long an agent may be silent before it is said what that may
// come from. Many have nothing to say before there is work.
const patientWith = 10 * time.Second

// whySilent returns what silence may come from. What is in a program's own buffer
// cannot be known from outside.
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

// stdinWords are what of the agent's stdin it has not read, if anything.
func stdinWords(m *wire.MailboxView) string {
	if m.Messages == 0 && m.Unread == 0 {
		return ""
	}
	return fmt.Sprintf("%s unread in its stdin, %s waiting", term.Bytes(m.Unread), term.Count(m.Messages, "message"))
}

// nextOfWaiting is for an agent that waits for others. One that has failed, or was
// stopped, does not come by itself.
func (c *agentCauses) nextOfWaiting(name string) []string {
	alone := "Without them: orchestrator agent start --no-deps " + name
	for _, o := range c.WaitsFor {
		if o.State == wire.StateFailed || o.State == wire.StateStopped {
			other := term.OneLine(o.Agent)
			return []string{
				fmt.Sprintf("It waits in vain: %s is %s and does not start by itself. Why: orchestrator why %s", other, o.State, other), alone,
			}
		}
	}
	return []string{"It starts when those it waits for are ready. " + alone}
}
