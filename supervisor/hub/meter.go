package hub

import (
	"context"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/telemetry"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A meter is the part of a hub that counts messages and exports telemetry.
type meter struct {
	version string
	log     hclog.Logger
	own     *requester
	record  *record
	watch   *telemetry.Telemetry

	heard, refusals atomic.Int64 // number of agents' messages, and of rejected ones
}

// Start creates the telemetry. It begins to export with Begin.
func (m *meter) Start(context.Context) error {
	m.watch = telemetry.New(telemetry.Options{
		Version:    m.version,
		Operations: operationNames(),
		Team:       m,
		Env:        os.Getenv,
		Warn:       m.log.Warn,
	})
	return nil
}

// Stop ends the export. It may read the event log.
func (m *meter) Stop() { m.watch.Close() }

// hooks returns the hooks of the supervisor for the telemetry.
func (m *meter) hooks() dispatch.Hooks {
	w := dispatch.Hooks{Meter: m}
	if m.watch.Tracing() {
		w.Tracer = m
	}
	return w
}

// Asked implements dispatch.Tracer.
func (m *meter) Asked(a dispatch.Asked) { m.watch.Asked(telemetry.Asked(a)) }

// Answered implements dispatch.Tracer.
func (m *meter) Answered(a dispatch.Answered) { m.watch.Answered(telemetry.Answered(a)) }

// Recorded implements dispatch.Meter.
func (m *meter) Recorded(facts []wire.Record, began time.Time, took time.Duration) {
	m.watch.Recorded(facts, began, took)
}

// Judged counts messages and passes them on to the telemetry.
func (m *meter) Judged(door, kind string, code wire.Code, messages int) {
	if door == doorOfAgents {
		m.heard.Add(int64(messages))
		if code != "" {
			m.refusals.Add(int64(messages))
		}
	}
	m.watch.Judged(door, kind, code, messages)
}

// doorOfAgents is the name of the API on the stdio of agents.
const doorOfAgents = "stdio"

// Status implements telemetry.Team.
func (m *meter) Status(ctx context.Context) (control.Status, error) {
	return m.own.QuickStatus(ctx)
}

// ResumePoint implements telemetry.Team.
func (m *meter) ResumePoint(ctx context.Context, since int64) (behind int64, sessions []string, err error) {
	h, err := m.own.Requests.ResumePoint(ctx, since)
	return h.Behind, h.Sessions, err
}

// Records implements telemetry.Team.
func (m *meter) Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error] {
	return m.record.ledger.Records(ctx, after)
}

// operationNames returns the operations that package handlers decides.
func operationNames() []string {
	var names []string
	for _, o := range wire.Operations {
		names = append(names, o.Name)
	}
	return names
}
