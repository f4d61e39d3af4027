package review

import "slices"

// Finding is something that was found, followed over the results.
type Finding struct {
	ID       string `json:"id"`
	Severity string `json:"severity,omitzero"`
	Category string `json:"category,omitzero"`
	File     string `json:"file,omitzero"`
	Text     string `json:"text,omitzero"`
	Found    int    `json:"found,omitzero"` // the iteration that first told of it
	Fixed    int    `json:"fixed,omitzero"` // the iteration in which it was fixed; 0: it is open
}

// IsOpen reports whether there is still something to do about it.
func (f *Finding) IsOpen() bool { return f.Fixed < 1 }

func (f *Finding) size() int {
	return len(f.ID) + len(f.Severity) + len(f.Category) + len(f.File) + len(f.Text)
}

// Bounds of a ledger.
const (
	mostFindings = 2000
	mostBytes    = 1 << 20 // of texts, where something is closed
)

// Open is what is still to be fixed, in the order in which it was found.
func (l *Loop) Open() (open []Finding) {
	for _, f := range l.Findings {
		if f.IsOpen() {
			open = append(open, f)
		}
	}
	return open
}

// note makes the ledger agree with a result: a known finding is what the result
// says of it but for when it was found, and where the result has the same one
// twice, the last counts.
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

// shorten drops what is closed, in the order in which it was found, until there
// is not too much left. Where that is not enough, it drops the last of what is
// open, of which the next result tells again.
func (l *Loop) shorten() {
	count, bytes := len(l.Findings), 0
	for i := range l.Findings {
		bytes += l.Findings[i].size()
	}
	l.Findings = slices.DeleteFunc(l.Findings, func(f Finding) bool {
		if f.IsOpen() || count <= mostFindings && bytes <= mostBytes {
			return false
		}
		count--
		bytes -= f.size()
		return true
	})
	if count > mostFindings {
		l.Findings = slices.Delete(l.Findings, mostFindings, count)
	}
}
