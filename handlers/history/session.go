package history

import (
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A SessionPage selects a page of the log of a session.
type SessionPage struct {
	Session string // the recipient of its records
	After   int64  // messages behind this number
	Until   int64  // messages up to this number
	Limit   int
	Chain   string // only messages of this chain; "": all
	Task    string // likewise
	To      string // likewise
}

// sessionPageBytes is the maximum size of a page. A larger message is a page by itself.
const sessionPageBytes = 4 << 20

// completeSession reads a page of the log of a session.
func (l Log) completeSession(answer *wire.SessionView, pages []Page) (any, error) {
	whole := *answer
	for _, p := range pages {
		var err error
		if whole.Messages, whole.Next, whole.More, err = l.readSession(p.Session); err != nil {
			return nil, err
		}
	}
	return &whole, nil
}

// maxScanned is the maximum number of log entries that one page reads, even if few match.
const maxScanned = 20_000

// readSession reads a page of the log of a session.
func (l Log) readSession(page *SessionPage) (entries []wire.SessionEntry, next int64, more bool, err error) {
	entries, next = []wire.SessionEntry{}, page.After
	size, scanned := 0, 0
	search := wire.Search{To: []string{page.Session}, After: page.After, Until: page.Until}
	for r, err := range l.Find(search) {
		if err != nil {
			return nil, 0, false, err
		}
		f, err := l.Decode(&r)
		if err != nil {
			return nil, 0, false, err
		}
		if scanned++; scanned > maxScanned {
			return entries, next, true, nil
		}
		if e, wanted := page.entry(f, &r); wanted {
			if size += len(e.Document); len(entries) == page.Limit || size > sessionPageBytes && len(entries) > 0 {
				return entries, next, true, nil
			}
			entries = append(entries, e)
		}
		next = r.Seq
	}
	return entries, next, false, nil
}

// entry returns a record as an entry of the session's log, and whether it matches.
func (p *SessionPage) entry(f any, r *wire.Record) (wire.SessionEntry, bool) {
	e := wire.SessionEntry{Seq: r.Seq, LoggedAt: object.Timestamp(r.At)}
	entry, ok := f.(Entry)
	if !ok {
		return e, false
	}
	to := entry.Entry(&e)
	return e, (p.Task == "" || p.Task == r.Correlation) && (p.Chain == "" || p.Chain == e.Chain) && (p.To == "" || p.To == to)
}
