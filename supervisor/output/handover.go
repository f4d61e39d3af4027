package output

import "orchestrator/wire/line"

// At an upgrade another program goes on with the output of an agent. The output goes on in new files, as for a new run,
// because the sizes of the files are not handed over.

// A Handover is the output of an agent, for the Agent and Run of the next program of this process.
type Handover struct {
	Lines    int64           `json:"lines"`
	Bytes    int64           `json:"bytes"`
	Cut      int64           `json:"cut"`
	Unlogged int64           `json:"unlogged"`
	Spoke    bool            `json:"spoke"`
	Partial  [2]line.Partial `json:"partial"` // unfinished lines of stdout and stderr
}

// Handover returns the output so far. The run may be nil; otherwise its streams must be held.
func (a *Agent) Handover(r *Run) Handover {
	h := Handover{Lines: a.lines.Load(), Bytes: a.bytes.Load(), Cut: a.cut.Load(), Unlogged: a.unlogged.Load(), Spoke: a.spoke.Load()}
	if r != nil {
		for i := range r.streams {
			h.Partial[i] = r.streams[i].lines.Partial()
		}
	}
	return h
}

// TakeOver begins with the output so far of an earlier program. The run may be nil.
func (a *Agent) TakeOver(h *Handover, r *Run) {
	a.lines.Store(h.Lines)
	a.bytes.Store(h.Bytes)
	a.cut.Store(h.Cut)
	a.unlogged.Store(h.Unlogged)
	a.spoke.Store(h.Spoke)
	if r != nil {
		for i := range r.streams {
			r.streams[i].lines.Continue(h.Partial[i])
		}
	}
}
