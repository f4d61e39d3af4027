package serve

import (
	"context"
	"os"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/handlers"
	"orchestrator/supervisor"
	"orchestrator/supervisor/telemetry"
	"orchestrator/wire"
)

// observe makes what tells of the team to programs, and returns what the supervisor
// tells it.
func (t *Instance) observe() supervisor.Hooks {
	t.watch = telemetry.New(telemetry.Options{
		Version:    cli.Version,
		Operations: operationNames(),
		Status:     t.glance,
		Hindsight:  t.hindsight,
		Records:    t.record.Records,
		Env:        os.Getenv,
		Warn:       t.log.Warn,
	})
	w := supervisor.Hooks{Judged: t.judged, Recorded: t.watch.Recorded}
	if t.watch.Tracing() {
		w.Asked = func(a supervisor.Asked) { t.watch.Asked(telemetry.Asked(a)) }
		w.Answered = func(a supervisor.Answered) { t.watch.Answered(telemetry.Answered(a)) }
	}
	return w
}

// judged counts what agents say, and tells of it.
func (t *Instance) judged(door, kind string, code wire.Code, messages int) {
	if door == doorOfAgents {
		t.heard.Add(int64(messages))
		if code != "" {
			t.refusals.Add(int64(messages))
		}
	}
	t.watch.Judged(door, kind, code, messages)
}

// doorOfAgents is the API by which agents speak: their stdout.
const doorOfAgents = "stdio"

func (t *Instance) glance(ctx context.Context) (wire.Status, error) { return t.Super.Glance(ctx) }

func (t *Instance) hindsight(ctx context.Context, since int64) (behind int64, sessions []string, err error) {
	h, err := t.Super.Hindsight(ctx, since)
	return h.Behind, h.Sessions, err
}

// operationNames are all operations that are decided by handlers.
func operationNames() []string {
	var names []string
	for _, o := range handlers.Operations() {
		names = append(names, o.Name)
	}
	return names
}
