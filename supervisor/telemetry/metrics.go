package telemetry

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"orchestrator/wire"
)

// patience is how long a reader waits for the figures that are made of the record.
// Who comes first may have to: it is read for the first time then.
const patience = 2 * time.Second

// Metrics writes all figures as they are.
func (t *Telemetry) Metrics(ctx context.Context, to io.Writer) error {
	status, err := t.options.Status(ctx)
	if err != nil {
		return err
	}
	now := prometheus.NewRegistry() // of this reading: who is gone is in none
	if err := now.Register(&glance{status: status, work: t.seen(ctx), at: time.Now()}); err != nil {
		return fmt.Errorf("describing the figures: %w", err)
	}
	families, err := prometheus.Gatherers{t.registry, now}.Gather()
	if err != nil {
		return fmt.Errorf("gathering the figures: %w", err)
	}
	encoder := expfmt.NewEncoder(to, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return fmt.Errorf("writing %s: %w", family.GetName(), err)
		}
	}
	return nil
}

// seen is what the record says of the open work; nil when it does not say so soon.
func (t *Telemetry) seen(ctx context.Context) *summary {
	t.follow()
	soon, enough := context.WithTimeout(ctx, patience)
	defer enough()
	select {
	case <-t.caught:
		return t.work.summary()
	case <-soon.Done():
		return nil
	}
}

// glance makes figures of what is looked up.
type glance struct {
	status wire.Status
	work   *summary
	at     time.Time
}

var (
	agentsDesc    = describe("agents", "Agents, by what they are doing as processes.", "state")
	restartsDesc  = describe("agent_restarts_total", "How often an agent has been started again by itself.", "agent")
	mailboxDesc   = describe("agent_mailbox_messages", "Messages that wait for the stdin of an agent.", "agent")
	boxBytesDesc  = describe("agent_mailbox_bytes", "How large those are.", "agent")
	lostDesc      = describe("agent_mailbox_refused_total", "Messages that an agent was never given: its mailbox was full, or it was gone.", "agent")
	tasksDesc     = describe("tasks", "Tasks that are remembered, by their state; the blocked ones wait for other tasks and are not among the pending.", "state")
	questionsDesc = describe("questions", "Questions that wait for a person.")
	queueAgeDesc  = describe("queue_age_seconds", "How long the task has waited for an agent that has waited the longest; 0 when none waits.")
	sessionsDesc  = describe("sessions", "Sessions that are open.")
	upDesc        = describe("up_seconds", "How long the orchestrator has been up.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// states are all that an agent may be in: one in which none is counts as 0.
var states = []wire.State{
	wire.StateStopped, wire.StateWaiting, wire.StateStarting, wire.StateRunning, wire.StateStalled,
	wire.StateBackoff, wire.StateStopping, wire.StateExited, wire.StateFailed,
}

// Describe implements prometheus.Collector.
func (g *glance) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		agentsDesc, restartsDesc, mailboxDesc, boxBytesDesc, lostDesc, tasksDesc, questionsDesc, queueAgeDesc, sessionsDesc, upDesc,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g *glance) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	in := make(map[wire.State]int)
	for i := range g.status.Agents {
		a := &g.status.Agents[i]
		in[a.State]++
		counter(restartsDesc, float64(a.Restarts), a.Name)
		gauge(mailboxDesc, float64(a.Mailbox.Messages), a.Name)
		gauge(boxBytesDesc, float64(a.Mailbox.Bytes), a.Name)
		counter(lostDesc, float64(a.Mailbox.Refused), a.Name)
	}
	for _, state := range states {
		gauge(agentsDesc, float64(in[state]), string(state))
	}
	for state, n := range tasksIn(&g.status.Tasks) {
		gauge(tasksDesc, float64(n), state)
	}
	gauge(questionsDesc, float64(g.status.Questions))
	gauge(upDesc, float64(g.status.UpMS)/1000)
	if g.work != nil {
		gauge(sessionsDesc, float64(g.work.sessions))
		age := 0.0
		if !g.work.waiting.IsZero() {
			age = max(0, g.at.Sub(g.work.waiting).Seconds())
		}
		gauge(queueAgeDesc, age)
	}
}

func tasksIn(c *wire.TaskCounts) map[string]int {
	return map[string]int{
		"blocked":                   c.Blocked,
		string(wire.TaskPending):    c.Pending - c.Blocked,
		string(wire.TaskAssigned):   c.Assigned,
		string(wire.TaskPlanning):   c.Planning,
		string(wire.TaskPlanReview): c.PlanReview,
		string(wire.TaskRunning):    c.Running,
		string(wire.TaskNeedsHuman): c.NeedsHuman,
		string(wire.TaskInReview):   c.InReview,
		string(wire.TaskDone):       c.Done,
		string(wire.TaskFailed):     c.Failed,
		string(wire.TaskCancelled):  c.Cancelled,
	}
}
