package leadership

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"orchestrator/supervisor/eventlog"
)

// A Report describes a hub to the other hubs. Reports are hints for people.
type Report struct {
	Hub
	AtWork bool  `json:"at_work,omitzero"`
	Last   int64 `json:"last"` // the last record of its copy
}

// A Courier carries reports between hubs. Engines of hubs that reach each other are couriers.
type Courier interface {
	// Report sends a report to all hubs.
	Report(text []byte) error
	// Reports calls heard with each report, also of this hub, until the engine is closed.
	Reports(heard func(text []byte)) error
}

// A Roster has the latest report of each hub. Its methods may be called concurrently.
type Roster struct {
	courier Courier // nil: hubs do not reach each other

	mu      sync.Mutex
	reports map[string]heardReport // by hub, without stale ones
}

type heardReport struct {
	Report
	at time.Time
}

// staleAfter is how long a report counts.
const staleAfter = 5 * time.Second

// NewRoster returns a Roster that hears the reports of the hubs of an engine.
func NewRoster(e eventlog.Engine) (*Roster, error) {
	r := &Roster{reports: make(map[string]heardReport)}
	r.courier, _ = e.(Courier)
	if r.courier == nil {
		return r, nil
	}
	return r, r.courier.Reports(r.hear)
}

// hear notes a report. One that cannot be read is of another version.
func (r *Roster) hear(text []byte) {
	var report Report
	if json.Unmarshal(text, &report) != nil || report.Name == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	r.reports[report.Name] = heardReport{report, time.Now()}
}

// drop removes stale reports. r.mu must be held.
func (r *Roster) drop() {
	maps.DeleteFunc(r.reports, func(_ string, h heardReport) bool { return time.Since(h.at) > staleAfter })
}

// Tell sends a report. If that fails, the next one is as good.
func (r *Roster) Tell(report Report) {
	if text, err := json.Marshal(report); err == nil && r.courier != nil {
		_ = r.courier.Report(text)
	}
}

// Latest returns the latest reports by hub, without stale ones.
func (r *Roster) Latest() map[string]Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	latest := make(map[string]Report, len(r.reports))
	for name, h := range r.reports {
		latest[name] = h.Report
	}
	return latest
}
