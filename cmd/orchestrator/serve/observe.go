package serve

import (
	"context"
	"os"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/telemetry"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// observe creates the telemetry and returns the hooks of the supervisor for it.
func (t *Instance) observe() dispatch.Hooks {
	t.watch = telemetry.New(telemetry.Options{
		Version:    cli.Version,
		Operations: operationNames(),
		Status:     t.glance,
		Hindsight:  t.hindsight,
		Records:    t.record.Records,
		Env:        os.Getenv,
		Warn:       t.log.Warn,
	})
	w := dispatch.Hooks{Judged: t.judged, Recorded: t.watch.Recorded}
	if t.watch.Tracing() {
		w.Asked = func(a dispatch.Asked) { t.watch.Asked(telemetry.Asked(a)) }
		w.Answered = func(a dispatch.Answered) { t.watch.Answered(telemetry.Answered(a)) }
	}
	return w
}

// judged counts messages and passes them on to the telemetry.
func (t *Instance) judged(door, kind string, code wire.Code, messages int) {
	if door == doorOfAgents {
		t.heard.Add(int64(messages))
		if code != "" {
			t.refusals.Add(int64(messages))
		}
	}
	t.watch.Judged(door, kind, code, messages)
}

// doorOfAgents is the name of the API on the stdio of agents.
const doorOfAgents = "stdio"

func (t *Instance) glance(ctx context.Context) (control.Status, error) { return t.Super.Glance(ctx) }

func (t *Instance) hindsight(ctx context.Context, since int64) (behind int64, sessions []string, err error) {
	h, err := t.Super.Requests.Hindsight(ctx, since)
	return h.Behind, h.Sessions, err
}

// operationNames returns the operations that package handlers decides.
func operationNames() []string {
	var names []string
	for _, o := range wire.Operations {
		names = append(names, o.Name)
	}
	return names
}
