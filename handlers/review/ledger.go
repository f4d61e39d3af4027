package review

import "slices"

// Finding is a finding of a review, tracked over all results.
type Finding struct {
	ID       string `json:"id"`
	Severity string `json:"severity,omitzero"`
	Category string `json:"category,omitzero"`
	File     string `json:"file,omitzero"`
	Text     string `json:"text,omitzero"`
	Found    int    `json:"found,omitzero"` // the iteration that first reported it
	Fixed    int    `json:"fixed,omitzero"` // the iteration that fixed it; 0: open
}

// IsOpen reports whether the finding is not fixed.
func (f *Finding) IsOpen() bool { return f.Fixed < 1 }

func (f *Finding) size() int {
	return len(f.ID) + len(f.Severity) + len(f.Category) + len(f.File) + len(f.Text)
}

// Bounds of a ledger.
const (
	maxFindings = 2000
	maxBytes    = 1 << 20 // of texts, if a finding is closed
)

// Open returns the open findings, in the order in which they were found.
func (l *Loop) Open() (open []Finding) {
	for _, f := range l.Findings {
		if f.IsOpen() {
			open = append(open, f)
		}
	}
	return open
}

// note updates the ledger with a result. A known finding is replaced, but keeps the iteration
// in which it was found. If a result has a finding twice, the last one counts.
func (l *Loop) note(found []Finding) {
	l.Findings = slices.Clone(l.Findings) // a copy of the Loop stays as it is
	places := make(map[string]int, len(l.Findings)+len(found))
	for i := range l.Findings {
		f := &l.Findings[i]
		places[f.ID] = i
		if f.IsOpen() {
			f.Fixed = l.Iteration // unless it is mentioned
		}
	}
	for _, f := range found {
		f.Fixed = max(f.Fixed, 0)
		if i, known := places[f.ID]; known {
			f.Found = l.Findings[i].Found
			l.Findings[i] = f
			continue
		}
		f.Found = l.Iteration
		places[f.ID] = len(l.Findings)
		l.Findings = append(l.Findings, f)
	}
	l.shorten()
}

// shorten drops closed findings, oldest first, until the ledger is within its bounds. If that
// is not enough, it drops the latest open ones, which the next result reports again.
func (l *Loop) shorten() {
	count, bytes := len(l.Findings), 0
	for i := range l.Findings {
		bytes += l.Findings[i].size()
	}
	l.Findings = slices.DeleteFunc(l.Findings, func(f Finding) bool {
		if f.IsOpen() || count <= maxFindings && bytes <= maxBytes {
			return false
		}
		count--
		bytes -= f.size()
		return true
	})
	if count > maxFindings {
		l.Findings = slices.Delete(l.Findings, maxFindings, count)
	}
}
