package output

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"orchestrator/wire/control"
)

// A LogQuery selects lines of agents.
type LogQuery struct {
	Agents []string // none: all
	Last   int      // number of last lines of each agent; AllLines: all
	Stream string   // "": all
	After  string   // later than this time, in the format of Stamp
	Until  string
	Follow bool

	Past string // limit for stored lines: not later than this
}

// AllLines as LogQuery.Last selects all lines.
const AllLines = -1

// An AgentLog holds the sources of one agent's lines.
type AgentLog struct {
	Agent string
	Dir   string
	Tail  []control.LogLine
}

// SendNew sends the selected lines of a follower as they arrive.
func (q *LogQuery) SendNew(ctx context.Context, f *Follower, send func(control.LogLine) error) error {
	if f == nil {
		return nil
	}
	var failed error
	var spare Backlog
	for failed == nil && f.Next(ctx, &spare, func(l Line) {
		line := l.Document()
		if failed == nil && l.Agent != "" && q.wants(&line) {
			failed = send(line)
		}
	}) {
	}
	return failed
}

func (q *LogQuery) wants(line *control.LogLine) bool {
	return (q.Stream == "" || q.Stream == line.Stream) &&
		(q.After == "" || line.At > q.After) && (q.Until == "" || line.At <= q.Until)
}

// wanted returns the lines of the tail that a query selects.
func (a *AgentLog) wanted(q *LogQuery) []control.LogLine {
	var lines []control.LogLine
	for i := range a.Tail {
		if l := &a.Tail[i]; q.wants(l) && (q.Past == "" || l.At <= q.Past) {
			lines = append(lines, *l)
		}
	}
	return lines
}

// Lines returns the last lines of the agent that a query selects.
func (a *AgentLog) Lines(q *LogQuery) iter.Seq2[control.LogLine, error] {
	tail := a.wanted(q)
	if q.Last >= 0 && q.After == "" && q.Until == "" && len(tail) >= q.Last {
		return sequence(tail[max(0, len(tail)-q.Last):])
	}
	own := slices.DeleteFunc(tail, func(l control.LogLine) bool { return l.Stream != control.StreamOwn })
	all := Merged([]iter.Seq2[control.LogLine, error]{a.read(".out", q), a.read(".err", q), sequence(own)})
	if q.Last == AllLines {
		return all
	}
	return last(q.Last, all)
}

func sequence(lines []control.LogLine) iter.Seq2[control.LogLine, error] {
	return func(yield func(control.LogLine, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// maxHeld is how many bytes of text last holds.
const maxHeld = 4 << 20

// A result is an item of a sequence of lines.
type result struct {
	line control.LogLine
	err  error
}

// last returns the last n lines, and all errors. It holds the lines while it reads. If they
// have more than maxHeld bytes, it only counts them and then reads them again.
func last(n int, lines iter.Seq2[control.LogLine, error]) iter.Seq2[control.LogLine, error] {
	return func(yield func(control.LogLine, error) bool) {
		var held, failed []result
		count, size := 0, 0
		for line, err := range lines {
			if count++; size > maxHeld {
				continue
			}
			held, size = append(held, result{line, err}), size+len(line.Text)
			if len(held) > n {
				if held[0].err != nil {
					failed = append(failed, held[0])
				}
				held, size = held[1:], size-len(held[0].line.Text)
			}
		}
		if size > maxHeld {
			again(count-n, lines)(yield)
			return
		}
		for _, r := range append(failed, held...) {
			if !yield(r.line, r.err) {
				return
			}
		}
	}
}

// again returns the lines after the first skip ones, and all errors.
func again(skip int, lines iter.Seq2[control.LogLine, error]) iter.Seq2[control.LogLine, error] {
	return func(yield func(control.LogLine, error) bool) {
		for line, err := range lines {
			if skip--; skip >= 0 && err == nil {
				continue
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// read returns the lines of one stream from its files.
func (a *AgentLog) read(suffix string, q *LogQuery) iter.Seq2[control.LogLine, error] {
	stream := control.StreamOut
	if suffix == ".err" {
		stream = control.StreamErr
	}
	return func(yield func(control.LogLine, error) bool) {
		if q.Stream != "" && q.Stream != stream {
			return
		}
		for _, name := range fileNames(a.Dir, suffix) {
			for line, err := range readLog(filepath.Join(a.Dir, name)) {
				line.Agent, line.Stream = a.Agent, stream
				line = withEntry(line, []byte(line.Text))
				if err == nil && (!q.wants(&line) || q.Past != "" && line.At > q.Past) {
					continue
				}
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

// readLog returns the lines of a log file with their times. A file that was removed has none.
func readLog(name string) iter.Seq2[control.LogLine, error] {
	return func(yield func(control.LogLine, error) bool) {
		file, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(control.LogLine{}, err)
			return
		}
		defer file.Close()
		reader := bufio.NewReader(file)
		for err == nil {
			var text []byte
			text, err = reader.ReadBytes('\n')
			text = bytes.TrimSuffix(text, []byte("\n"))
			if len(text) > len(stampLayout) && text[len(stampLayout)] == ' ' &&
				!yield(control.LogLine{At: string(text[:len(stampLayout)]), Text: string(text[len(stampLayout)+1:])}, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(control.LogLine{}, err)
		}
	}
}

// Merged merges sequences that are each sorted by time.
func Merged(many []iter.Seq2[control.LogLine, error]) iter.Seq2[control.LogLine, error] {
	return func(yield func(control.LogLine, error) bool) {
		var heads heads
		for i, lines := range many {
			next, stop := iter.Pull2(lines)
			defer stop()
			h := &head{number: i, next: next}
			if h.advance() {
				heads = append(heads, h)
			}
		}
		heap.Init(&heads)
		for len(heads) > 0 {
			h := heads[0]
			if !yield(h.line, h.err) {
				return
			}
			if h.advance() {
				heap.Fix(&heads, 0)
			} else {
				heap.Pop(&heads)
			}
		}
	}
}

// A head is the next line of a sequence.
type head struct {
	number int // number of the sequence, which orders equal times
	line   control.LogLine
	err    error
	next   func() (control.LogLine, error, bool)
}

func (h *head) advance() (more bool) {
	h.line, h.err, more = h.next()
	return more
}

// heads is a heap with the oldest line first.
type heads []*head

func (h heads) Len() int      { return len(h) }
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(*head)) }

func (h heads) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].line.At, h[j].line.At), cmp.Compare(h[i].number, h[j].number)) < 0
}

func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

const (
	// tailPage is the most bytes in each of the tail's two pages.
	tailPage = 64 << 10
	// tailLine is the most bytes that the tail stores of one line.
	tailLine = 4 << 10
)

var ellipsis = []byte("…")

// A tail stores the last lines of an agent. It fills two pages in turn, so that adding a line
// costs one copy and no line is moved.
type tail struct {
	limit    int
	now, old page
}

// keep adds the last lines of p.
func (t *tail) keep(p *page) {
	for i := max(0, len(p.lines)-t.limit); i < len(p.lines); i++ {
		text := p.line(i)
		if len(t.now.lines) >= t.limit || len(t.now.text)+len(text) > tailPage {
			t.now, t.old = t.old, t.now
			t.now.clear()
		}
		if len(text) > tailLine {
			t.now.add(p.lines[i], text[:tailLine], ellipsis)
		} else {
			t.now.add(p.lines[i], text)
		}
	}
}

// each calls see for the last n lines, oldest first.
func (t *tail) each(n int, see func(mark, []byte)) {
	n = min(n, t.limit)
	skip := max(0, len(t.old.lines)+len(t.now.lines)-n)
	for _, p := range []*page{&t.old, &t.now} {
		for i := range p.lines {
			if skip > 0 {
				skip--
				continue
			}
			see(p.lines[i], p.line(i))
		}
	}
}
