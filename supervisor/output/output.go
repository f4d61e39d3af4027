// Package output stores and distributes the output of agents.
//
// An [Agent] is the output of one agent over all its runs. A [Run] splits the output of a run
// into lines. Messages go to the channel of the agent. All other lines are log: they go to
// files, to the last lines in memory, and to followers. A [Feed] has the outputs of all agents
// and the recent events.
package output

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
)

// An Agent is the output of an agent over all its runs: in files, in the last lines in memory,
// and for followers. The goroutines that read the agent's output do the work, a chunk at a
// time.
type Agent struct {
	agent string
	tell  func(wire.Event) // reports an event about the output

	lines, bytes, cut, unlogged atomic.Int64
	heardAt                     atomic.Int64 // time of the last output, since epoch
	epoch                       time.Time
	onSound                     atomic.Pointer[func()] // called once at the next output
	spoke                       atomic.Bool            // the current run has sent a message

	mu        sync.Mutex
	tail      tail
	limits    Limits
	file      string // the current stdout file
	followers []*Follower
}

// NewAgent returns the output of an agent.
func NewAgent(agent string, output Limits, tell func(wire.Event)) *Agent {
	return &Agent{agent: agent, tell: tell, epoch: time.Now(), limits: output, tail: tail{limit: output.Tail}}
}

// A Run is the output of one run of an agent.
type Run struct {
	*Agent
	run      string
	Echoes   *EchoFilter // nil if the agent has no terminal
	Messages Messages    // nil if all output is log
	streams  [2]speechStream
	longest  string // the limit of a line, in words
}

// A speechStream is one stream of a Run. It must not be used concurrently.
type speechStream struct {
	name  string
	lines *line.Splitter
	file  File

	cutTold time.Time // when an oversized line was last reported
}

// Messages extracts the messages from the output of a run.
type Messages interface {
	// Take handles a line if it is a message. It returns false for a line of log.
	Take(line line.Line, now time.Time) bool
	// Spoke reports whether Take has met a message, including a message with text for the log.
	Spoke() bool
	// Send passes on the messages that Take has gathered.
	Send(now time.Time)
	// End sends the remaining messages, and reports the remaining complaints.
	End(now time.Time)
}

// Tell reports an event about the output.
func (a *Agent) Tell(e wire.Event) { a.tell(e) }

// WhenHeard calls do once, at the next output.
func (a *Agent) WhenHeard(do func()) { a.onSound.Store(&do) }

// HasSpoken reports whether the current run has sent a message.
func (a *Agent) HasSpoken() bool { return a.spoke.Load() }

// Begin starts the output of a new run.
func (a *Agent) Begin(run string, maxLine int) *Run {
	a.mu.Lock()
	output := a.limits
	a.mu.Unlock()
	dir := filepath.Join(output.Dir, a.agent)
	prefix := RunPrefix(NextRun(dir)) // reads the disk, so not under the lock
	a.spoke.Store(false)
	s := &Run{Agent: a, run: run, longest: "protocol.max_line = " + line.FormatSize(int64(maxLine))}
	for i, suffix := range []string{".out", ".err"} {
		s.streams[i] = speechStream{
			name:  []string{control.StreamOut, control.StreamErr}[i],
			lines: line.NewSplitter(maxLine),
			file:  File{Dir: dir, Prefix: prefix, Suffix: suffix, Limits: output},
		}
	}
	a.mu.Lock()
	a.file = s.streams[0].file.name()
	a.mu.Unlock()
	a.heardAt.Store(int64(time.Since(a.epoch)))
	return s
}

// Adopt applies changed limits. A new folder is used from the next run on.
func (a *Agent) Adopt(output Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limits = output
	a.tail.limit = output.Tail
}

// pages holds pages for the chunks being handled.
var pages = sync.Pool{New: func() any { return new(page) }}

// partSize is the most of a chunk that is handled with one time, and whose messages are sent together.
const partSize = 64 << 10

// Write handles a chunk of one stream, in parts. The log of all parts goes to the file at once, because a file system
// takes one long write for half the time of four short ones.
func (r *Run) Write(stream child.Stream, chunk []byte) {
	r.sound()
	r.bytes.Add(int64(len(chunk)))
	t := &r.streams[stream]
	p := pages.Get().(*page)
	defer pages.Put(p)
	p.clear()
	for len(chunk) > 0 {
		part := chunk[:min(len(chunk), partSize)]
		chunk = chunk[len(part):]
		now := time.Now()
		taken := r.part(p, t, part, now)
		if r.Messages != nil && stream == child.Stdout {
			r.Messages.Send(now)
		}
		if taken || len(chunk) == 0 || r.isFull(p, t) {
			r.pass(p, t, now)
			p.clear()
		}
	}
}

// isFull reports whether a page is to be passed on before the next part. Followers count their backlog in pages, so
// with them a page has one part. A page that is large for a file is not made larger, so that files keep their limit.
func (r *Run) isFull(p *page, t *speechStream) bool {
	if int64(len(p.text)) > t.file.Limits.MaxSize/8 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.followers, func(f *Follower) bool { return !f.EventsOnly })
}

// part handles the lines of a part of a chunk, and reports whether there was a message among them.
func (r *Run) part(p *page, t *speechStream, part []byte, now time.Time) (taken bool) {
	p.front = p.front[:0]
	t.lines.Feed(part)
	for line, ok := t.lines.Next(); ok; line, ok = t.lines.Next() {
		taken = r.line(p, t, line, now) || taken
	}
	return taken
}

// End handles the unfinished last lines of the streams and closes the files. Write must not be
// called during it or after it.
func (r *Run) End() {
	now := time.Now()
	for i := range r.streams {
		t := &r.streams[i]
		var p page
		if line, ok := t.lines.Rest(); ok {
			r.line(&p, t, line, now)
		}
		if r.Messages != nil && i == 0 {
			r.Messages.End(now)
		}
		r.pass(&p, t, now)
		t.file.Close()
	}
}

// line handles one line. A line of log is added to the page in the format of the log file, so
// that file, tail and followers share one copy. An oversized line is cut. line returns true for a message.
func (r *Run) line(p *page, t *speechStream, line line.Line, now time.Time) (taken bool) {
	if r.Echoes.drop(line.Text, now) {
		return false
	}
	if r.Messages != nil && t == &r.streams[0] {
		taken = r.Messages.Take(line, now)
		if taken || r.Messages.Spoke() {
			r.spoke.Store(true)
		}
		if taken {
			return true
		}
	}
	if len(p.front) == 0 {
		p.front = append(object.AppendTimestamp(p.front, now), ' ')
	}
	p.text = append(p.text, p.front...)
	if line.Cut {
		r.lineCut(t, line, now)
		p.add(mark{at: now, stream: t.name}, line.Text, fmt.Appendf(nil, "… [cut: the line was %s]", line.FormatSize()))
	} else {
		p.add(mark{at: now, stream: t.name}, line.Text)
	}
	p.text = append(p.text, '\n')
	return false
}

// lineCut counts an oversized line, and reports it at most once a second.
func (r *Run) lineCut(t *speechStream, line line.Line, now time.Time) {
	r.cut.Add(1)
	if now.Sub(t.cutTold) < time.Second {
		return
	}
	t.cutTold = now
	r.Tell(wire.Event{
		Kind: events.AgentLineCut,
		Run:  r.run,
		Text: fmt.Sprintf("a line of %d bytes on %s is longer than %s: dropped up to its end, first %d bytes kept",
			line.Size, t.name, r.longest, len(line.Text)),
		Figures: wire.Figures{Count: line.Size},
	})
}

// pass passes a page on to the log file, the tail and the followers.
func (r *Run) pass(p *page, t *speechStream, now time.Time) {
	if len(p.lines) == 0 {
		return
	}
	r.lines.Add(int64(len(p.lines)))
	r.log(p, t, now)
	r.mu.Lock()
	r.tail.keep(p)
	followers := r.followers
	r.mu.Unlock()
	for _, f := range followers {
		f.push(r.agent, p)
	}
}

// log writes a page to the stream's file.
func (r *Run) log(p *page, t *speechStream, now time.Time) {
	lost, part := t.file.lost, t.file.part
	err := t.file.Write(p.text, int64(len(p.lines)), now)
	if t.file.part != part && t.name == control.StreamOut {
		r.mu.Lock()
		r.Agent.file = t.file.name()
		r.mu.Unlock()
	}
	r.unlogged.Add(max(0, t.file.lost-lost))
	switch {
	case err != nil:
		r.Tell(wire.Event{
			Kind: events.AgentUnlogged,
			Run:  r.run,
			Text: fmt.Sprintf("cannot write its %s to a file: %v; lines are counted until it works again, and nothing else stops", t.name, err),
		})
	case lost > 0 && t.file.lost == 0:
		r.Tell(wire.Event{
			Kind:    events.AgentUnlogged,
			Run:     r.run,
			Text:    fmt.Sprintf("its %s is written again, %d lines are missing", t.name, lost),
			Figures: wire.Figures{Count: lost},
		})
	}
}

// sound records that there was output.
func (a *Agent) sound() {
	a.heardAt.Store(int64(time.Since(a.epoch)))
	if woken := a.onSound.Load(); woken != nil && a.onSound.CompareAndSwap(woken, nil) {
		(*woken)()
	}
}

// Silence returns the time since the last output.
func (a *Agent) Silence() time.Duration {
	return time.Since(a.epoch) - time.Duration(a.heardAt.Load())
}

// say adds a notice of the orchestrator to the agent's output. It never blocks.
func (a *Agent) say(n *Notice) {
	p := sentence(n, true)
	a.mu.Lock()
	a.tail.keep(p)
	followers := a.followers
	a.mu.Unlock()
	for _, f := range followers {
		f.pushNow(a.agent, p)
	}
}

// mention is say for followers only.
func (a *Agent) mention(n *Notice) {
	a.mu.Lock()
	followers := a.followers
	a.mu.Unlock()
	if len(followers) == 0 {
		return
	}
	p := sentence(n, false)
	for _, f := range followers {
		f.pushNow(a.agent, p)
	}
}

// sentence returns a page with a notice. Its text is formatted later unless spelled is true.
func sentence(n *Notice, spelled bool) *page {
	p := new(page)
	var text []byte
	if spelled {
		text = []byte(n.Event().Text)
	}
	p.add(mark{at: n.Record.At, stream: control.StreamOwn, news: n}, text)
	return p
}

// Follow adds a follower.
func (a *Agent) Follow(f *Follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followers = append(slices.Clone(a.followers), f)
	f.joined()
}

// Unfollow removes a follower.
func (a *Agent) Unfollow(f *Follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.followers, f)
	if i >= 0 {
		a.followers = slices.Delete(slices.Clone(a.followers), i, i+1)
		f.parted()
	}
}

// Close removes all followers, because the agent has no further output.
func (a *Agent) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.followers {
		f.parted()
	}
	a.followers = nil
}

// Last returns the last n lines as they are in memory.
func (a *Agent) Last(n int) []control.LogLine {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lines []control.LogLine
	a.tail.each(n, func(m mark, text []byte) { lines = append(lines, logLine(a.agent, m, text)) })
	return lines
}

func logLine(agent string, m mark, text []byte) control.LogLine {
	return Line{At: m.at, Agent: agent, Stream: m.stream, Text: text, Missed: m.missed}.Document()
}

// Limits bounds the log files and the lines in memory of an agent's output.
type Limits struct {
	Dir     string // the agent's folder is created in it
	MaxSize int64  // bytes of one file
	Keep    int    // files of each stream
	Tail    int    // lines in memory
}

// View returns the output in its form for documents.
func (a *Agent) View() control.OutputView {
	a.mu.Lock()
	defer a.mu.Unlock()
	return control.OutputView{
		Lines:    a.lines.Load(),
		Bytes:    a.bytes.Load(),
		Cut:      a.cut.Load(),
		Unlogged: a.unlogged.Load(),
		File:     a.file,
	}
}

// echoTime is how long after a write a terminal may echo a line.
const echoTime = time.Second

// An EchoFilter recognizes lines that an agent's terminal echoes. The terminal is raw at first,
// but a program may turn its echo on. Messages to the agent would then appear as its output.
type EchoFilter struct {
	seed maphash.Seed

	mu      sync.Mutex
	written map[uint64]time.Time
}

// NewEchoFilter returns a filter for a run in a terminal.
func NewEchoFilter() *EchoFilter {
	return &EchoFilter{seed: maphash.MakeSeed(), written: make(map[uint64]time.Time)}
}

// Wrote records a line that is about to be written.
func (e *EchoFilter) Wrote(line []byte) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for sum, at := range e.written {
		if now.Sub(at) > echoTime {
			delete(e.written, sum)
		}
	}
	e.written[maphash.Bytes(e.seed, bytes.TrimRight(line, "\r\n"))] = now
}

// drop reports whether a line is an echo. Each written line is echoed at most once. Empty lines
// are never dropped.
func (e *EchoFilter) drop(line []byte, now time.Time) bool {
	if e == nil || len(line) == 0 {
		return false
	}
	sum := maphash.Bytes(e.seed, line)
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ours := e.written[sum]
	if !ours {
		return false
	}
	delete(e.written, sum)
	return now.Sub(at) <= echoTime
}
