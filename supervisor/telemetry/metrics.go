package telemetry

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/session"
)

// patience is how long a reader waits for the metrics that depend on the record. The first
// reader may have to wait until the record is read.
const patience = 2 * time.Second

// Metrics writes the present values of all metrics.
func (t *Telemetry) Metrics(ctx context.Context, to io.Writer) error {
	known := t.usage.known() // before the status, which may miss an agent that comes now
	status, err := t.options.Team.Status(ctx)
	if err != nil {
		return err
	}
	t.usage.forget(known, &status)
	now := prometheus.NewRegistry() // a new registry, so that agents that are gone have no metrics
	if err := now.Register(&glance{status: status, usage: &t.usage, work: t.seen(ctx), at: time.Now()}); err != nil {
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

// seen returns the open work according to all facts recorded so far, or nil if it is not known
// within patience.
func (t *Telemetry) seen(ctx context.Context) *summary {
	t.follow()
	soon, enough := context.WithTimeout(ctx, patience)
	defer enough()
	mark := make(chan struct{})
	select {
	case t.queue <- item{mark: mark}:
	case <-soon.Done():
		return nil
	}
	select {
	case <-mark:
		return t.work.summary()
	case <-soon.Done():
		return nil
	}
}

// A glance collects the metrics that are computed when they are read.
type glance struct {
	status control.Status
	usage  *usage
	work   *summary
	at     time.Time
}

var (
	agentsDesc    = describe("agents", "Agents, by process state.", "state")
	restartsDesc  = describe("agent_restarts_total", "Automatic restarts of an agent.", "agent")
	mailboxDesc   = describe("agent_mailbox_messages", "Messages waiting for the stdin of an agent.", "agent")
	boxBytesDesc  = describe("agent_mailbox_bytes", "Size of the messages waiting for the stdin of an agent.", "agent")
	lostDesc      = describe("agent_mailbox_refused_total", "Messages not delivered to an agent because its mailbox was full or it was gone.", "agent")
	tasksDesc     = describe("tasks", "Known tasks, by state; pending does not include the blocked ones, which wait for other tasks.", "state")
	questionsDesc = describe("questions", "Questions waiting for a person.")
	queueAgeDesc  = describe("queue_age_seconds", "How long the longest-waiting task has waited for an agent; 0 if none waits.")
	sessionsDesc  = describe("sessions", "Open sessions.")
	upDesc        = describe("up_seconds", "Uptime of the orchestrator.")
)

// states are all states of an agent. A state without agents is reported as 0.
var states = []control.State{
	control.StateStopped, control.StateWaiting, control.StateStarting, control.StateRunning, control.StateStalled,
	control.StateBackoff, control.StateStopping, control.StateExited, control.StateFailed,
}

// Describe implements prometheus.Collector.
func (g *glance) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		agentsDesc, restartsDesc, mailboxDesc, boxBytesDesc, lostDesc, tasksDesc, questionsDesc, queueAgeDesc, sessionsDesc, upDesc,
		tokensDesc, costDesc, turnsDesc, limitedDesc,
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
	in := make(map[control.State]int)
	for i := range g.status.Agents {
		a := &g.status.Agents[i]
		in[a.State]++
		counter(restartsDesc, float64(a.Restarts), a.Name)
		gauge(mailboxDesc, float64(a.Mailbox.Messages), a.Name)
		gauge(boxBytesDesc, float64(a.Mailbox.Bytes), a.Name)
		counter(lostDesc, float64(a.Mailbox.Refused), a.Name)
		g.usage.collect(a, counter, gauge)
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

func tasksIn(c *control.TaskCounts) map[string]int {
	return map[string]int{
		"blocked":                   c.Blocked,
		string(wire.TaskPending):    c.Pending - c.Blocked,
		string(wire.TaskAssigned):   c.Assigned,
		string(wire.TaskPlanning):   c.Planning,
		string(wire.TaskPlanReview): c.PlanReview,
		string(wire.TaskRunning):    c.Running,
		string(wire.TaskNeedsHuman): c.NeedsHuman,
		string(wire.TaskInReview):   c.InReview,
		string(wire.TaskVerifying):  c.Verifying,
		string(wire.TaskDone):       c.Done,
		string(wire.TaskFailed):     c.Failed,
		string(wire.TaskCancelled):  c.Cancelled,
	}
}

// counters holds the metrics that are updated by events.
type counters struct {
	kinds    map[string]bool // kinds of messages with their own label
	messages *prometheus.CounterVec
	refused  *prometheus.CounterVec
	facts    *prometheus.CounterVec
	commit   prometheus.Histogram
	batch    prometheus.Histogram
	bytes    prometheus.Histogram
}

func (c *counters) register(r *prometheus.Registry, o Options) {
	c.kinds = knownKinds(o.Operations)
	c.messages = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "messages_total", Help: "Messages of agents and requests of all callers, by door and kind.",
	}, []string{"door", "kind"})
	c.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "refused_total", Help: "Refused messages, by door and error code.",
	}, []string{"door", "code"})
	c.facts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "facts_total", Help: "Recorded facts, by kind.",
	}, []string{"kind"})
	c.commit = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "record_commit_seconds", Help: "Time to make a batch of facts durable.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30},
	})
	c.batch = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "record_batch_facts", Help: "Number of facts in a batch.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096},
	})
	c.bytes = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "record_batch_bytes", Help: "Size of the facts in a batch.",
		Buckets: prometheus.ExponentialBuckets(256, 4, 9),
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels describe this program.",
		ConstLabels: prometheus.Labels{"version": o.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	r.MustRegister(c.messages, c.refused, c.facts, c.commit, c.batch, c.bytes, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// knownKinds returns the known kinds of messages. Agents cannot add to them.
func knownKinds(operations []string) map[string]bool {
	known := map[string]bool{"initialize": true, "ping": true, "tools/list": true, "tools/call": true}
	for class, names := range map[string][]string{
		"request:": operations,
		"event:":   {"progress", "log", "error", "question", "usage", "session", "turn", "limited", "receipt"},
		"session:": session.Types,
		"task:":    {"request", "status", "update", "cancel", "response"},
	} {
		for _, name := range names {
			known[class+name] = true
		}
	}
	return known
}

// Judged counts messages of a kind that came by a door, with their result.
func (t *Telemetry) Judged(door, kind string, code wire.Code, messages int) {
	c := &t.counters
	if !c.kinds[kind] {
		kind = otherKind
	}
	c.messages.WithLabelValues(door, kind).Add(float64(messages))
	if code != "" {
		c.refused.WithLabelValues(door, string(code)).Add(float64(messages))
	}
}

// Recorded counts a durable batch, and passes it on to the goroutine that follows the record.
func (t *Telemetry) Recorded(facts []wire.Record, began time.Time, took time.Duration) {
	bytes := 0
	for i := 0; i < len(facts); {
		kind, n, first := facts[i].Kind, 0, i
		for ; i < len(facts) && facts[i].Kind == kind; i++ {
			bytes += len(facts[i].Payload)
			n++
		}
		t.counters.facts.WithLabelValues(kind).Add(float64(n))
		t.usage.learn(facts[first:i])
	}
	t.counters.commit.Observe(took.Seconds())
	t.counters.batch.Observe(float64(len(facts)))
	t.counters.bytes.Observe(float64(bytes))
	if t.follows.Load() && len(facts) > 0 {
		t.pass(facts, batch{began: began, took: took, facts: len(facts), bytes: bytes})
	}
}
