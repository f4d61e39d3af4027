package telemetry

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

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

const namespace = "orchestrator"

// otherKind is the label of messages of unknown kinds.
const otherKind = "other"

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
		"event:":   {"progress", "log", "error", "question"},
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
		kind, n := facts[i].Kind, 0
		for ; i < len(facts) && facts[i].Kind == kind; i++ {
			bytes += len(facts[i].Payload)
			n++
		}
		t.counters.facts.WithLabelValues(kind).Add(float64(n))
	}
	t.counters.commit.Observe(took.Seconds())
	t.counters.batch.Observe(float64(len(facts)))
	t.counters.bytes.Observe(float64(bytes))
	if t.follows.Load() && len(facts) > 0 {
		t.pass(facts, batch{began: began, took: took, facts: len(facts), bytes: bytes})
	}
}
