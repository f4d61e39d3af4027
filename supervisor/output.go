package supervisor

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// agentOutput is what an agent says, over all its runs: to files, to the tail in
// memory, to the followers. What it costs is paid by the agent's own
// goroutines, a chunk at a time.
type agentOutput struct {
	agent string
	tell  func(wire.Event) // something about the output that people should know

	lines, bytes, cut, unlogged atomic.Int64
	heardAt                     atomic.Int64 // of the last output, since epoch
	epoch                       time.Time
	onSound                     atomic.Pointer[func()] // called once at the next output
	spoke                       atomic.Bool            // the current run has sent a message

	mu        sync.Mutex
	tail      tail
	output    Output
	file      string // the current stdout file
	followers []*Follower
}

func newVoice(agent string, output Output, tell func(wire.Event)) *agentOutput {
	return &agentOutput{agent: agent, tell: tell, epoch: time.Now(), output: output, tail: tail{limit: output.Tail}}
}

// runOutput is one run of an output.
type runOutput struct {
	*agentOutput
	run      string
	echoes   *echoFilter // nil where the agent has no terminal
	messages Messages    // nil where all it says is log
	streams  [2]speechStream
}

// speechStream is used by one goroutine.
type speechStream struct {
	name  string
	lines *wire.Lines
	file  logFile

	cutTold time.Time // when people last heard of an oversized line
}

// Messages takes the messages out of the output of a run.
type Messages interface {
	// Take takes a line, if it is a message; else it is log.
	Take(line wire.Line, now time.Time) bool
	// Send passes on what was taken.
	Send(now time.Time)
	// End reports what was not reported yet.
	End(now time.Time)
}

// begin starts the speech of a new run.
func (v *agentOutput) begin(run string, maxLine int) *runOutput {
	v.mu.Lock()
	output := v.output
	v.mu.Unlock()
	dir := filepath.Join(output.Dir, v.agent)
	prefix := runPrefix(nextRun(dir)) // a look at the disk, so not under the lock
	v.spoke.Store(false)
	s := &runOutput{agentOutput: v, run: run}
	for i, suffix := range []string{".out", ".err"} {
		s.streams[i] = speechStream{
			name:  []string{wire.StreamOut, wire.StreamErr}[i],
			lines: wire.NewLines(maxLine),
			file:  logFile{dir: dir, prefix: prefix, suffix: suffix, limits: output},
		}
	}
	v.mu.Lock()
	v.file = s.streams[0].file.name()
	v.mu.Unlock()
	v.heardAt.Store(int64(time.Since(v.epoch)))
	return s
}

// adopt takes on changed limits; a folder counts from the next run on.
func (v *agentOutput) adopt(output Output) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.output = output
	v.tail.limit = output.Tail
}

// pages are lent to the chunk that is being heard.
var pages = sync.Pool{New: func() any { return new(page) }}

// hear takes a chunk of one stream.
func (s *runOutput) hear(stream child.Stream, chunk []byte) {
	now := time.Now()
	s.sound()
	s.bytes.Add(int64(len(chunk)))
	t := &s.streams[stream]
	p := pages.Get().(*page)
	defer pages.Put(p)
	p.clear()
	front := front(now)
	t.lines.Feed(chunk)
	for line, ok := t.lines.Next(); ok; line, ok = t.lines.Next() {
		s.line(p, t, line, now, front)
	}
	if s.messages != nil && stream == child.Stdout {
		s.messages.Send(now)
	}
	s.pass(p, t, now)
}

// front is what a line begins with in a log file.
func front(now time.Time) []byte { return append([]byte(stamp(now)), ' ') }

// end hears the lines that the streams ended with and closes the files. No
// hear runs or follows.
func (s *runOutput) end() {
	now := time.Now()
	for i := range s.streams {
		t := &s.streams[i]
		var p page
		if line, ok := t.lines.Rest(); ok {
			s.line(&p, t, line, now, front(now))
		}
		if s.messages != nil && i == 0 {
			s.messages.End(now)
		}
		s.pass(&p, t, now)
		t.file.close()
	}
}

// line takes one line. One that is no message goes on the page, as it will
// stand in the log file: one copy serves the file, the tail and those who
// follow. An oversized one is there as its head.
func (s *runOutput) line(p *page, t *speechStream, line wire.Line, now time.Time, front []byte) {
	if s.echoes.drop(line.Text, now) {
		return
	}
	if s.messages != nil && t == &s.streams[0] && s.messages.Take(line, now) {
		s.spoke.Store(true)
		return
	}
	p.text = append(p.text, front...)
	if line.Cut {
		s.lineCut(t, line, now)
		p.add(mark{at: now, stream: t.name}, line.Text, fmt.Appendf(nil, "… [cut: the line was %s]", size(line.Size)))
	} else {
		p.add(mark{at: now, stream: t.name}, line.Text)
	}
	p.text = append(p.text, '\n')
}

// lineCut counts an oversized line, and tells of it once a second.
func (s *runOutput) lineCut(t *speechStream, line wire.Line, now time.Time) {
	s.cut.Add(1)
	if now.Sub(t.cutTold) < time.Second {
		return
	}
	t.cutTold = now
	s.tell(wire.Event{
		Kind:    wire.EventLineCut,
		Run:     s.run,
		Text:    fmt.Sprintf("a line of %s on %s is over the limit: dropped up to its end, first %d bytes kept", size(line.Size), t.name, len(line.Text)),
		Figures: wire.Figures{Count: line.Size},
	})
}

// pass hands a page to all who want it.
func (s *runOutput) pass(p *page, t *speechStream, now time.Time) {
	if len(p.lines) == 0 {
		return
	}
	s.lines.Add(int64(len(p.lines)))
	s.log(p, t, now)
	s.mu.Lock()
	s.tail.keep(p)
	followers := s.followers
	s.mu.Unlock()
	for _, f := range followers {
		f.push(s.agent, p)
	}
}

// log writes a page to the stream's file.
func (s *runOutput) log(p *page, t *speechStream, now time.Time) {
	lost, part := t.file.lost, t.file.part
	err := t.file.write(p.text, int64(len(p.lines)), now)
	if t.file.part != part && t.name == wire.StreamOut {
		s.mu.Lock()
		s.agentOutput.file = t.file.name()
		s.mu.Unlock()
	}
	s.unlogged.Add(max(0, t.file.lost-lost))
	switch {
	case err != nil:
		s.tell(wire.Event{
			Kind: wire.EventUnlogged,
			Run:  s.run,
			Text: fmt.Sprintf("cannot write its %s to a file: %v; lines are counted until it works again, nothing else stops", t.name, err),
		})
	case lost > 0 && t.file.lost == 0:
		s.tell(wire.Event{
			Kind:    wire.EventUnlogged,
			Run:     s.run,
			Text:    fmt.Sprintf("its %s is written again, %d lines are missing", t.name, lost),
			Figures: wire.Figures{Count: lost},
		})
	}
}

// sound notes that there was output.
func (v *agentOutput) sound() {
	v.heardAt.Store(int64(time.Since(v.epoch)))
	if woken := v.onSound.Load(); woken != nil && v.onSound.CompareAndSwap(woken, nil) {
		(*woken)()
	}
}

// silence is how long there has been no output.
func (v *agentOutput) silence() time.Duration {
	return time.Since(v.epoch) - time.Duration(v.heardAt.Load())
}

// say puts words of the orchestrator among the agent's. It never waits.
func (v *agentOutput) say(n *notice) {
	p := sentence(n, true)
	v.mu.Lock()
	v.tail.keep(p)
	followers := v.followers
	v.mu.Unlock()
	for _, f := range followers {
		f.pushNow(v.agent, p)
	}
}

// mention is say for what is only to be heard.
func (v *agentOutput) mention(n *notice) {
	v.mu.Lock()
	followers := v.followers
	v.mu.Unlock()
	if len(followers) == 0 {
		return
	}
	p := sentence(n, false)
	for _, f := range followers {
		f.pushNow(v.agent, p)
	}
}

// sentence is a page with what the orchestrator says; without its text when
// that is made only for those who read it.
func sentence(n *notice, spelled bool) *page {
	p := new(page)
	var text []byte
	if spelled {
		text = []byte(n.Event().Text)
	}
	p.add(mark{at: n.record.At, stream: wire.StreamOwn, news: n}, text)
	return p
}

// follow adds a follower.
func (v *agentOutput) follow(f *Follower) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.followers = append(slices.Clone(v.followers), f)
	f.joined()
}

func (v *agentOutput) unfollow(f *Follower) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.Index(v.followers, f)
	if i >= 0 {
		v.followers = slices.Delete(slices.Clone(v.followers), i, i+1)
		f.parted()
	}
}

// close lets go of all who follow: the agent will say nothing more.
func (v *agentOutput) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.followers {
		f.parted()
	}
	v.followers = nil
}

// last returns the last n lines as they are in memory.
func (v *agentOutput) last(n int) []wire.LogLine {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lines []wire.LogLine
	v.tail.each(n, func(m mark, text []byte) { lines = append(lines, logLine(v.agent, m, text)) })
	return lines
}

func logLine(agent string, m mark, text []byte) wire.LogLine {
	return Line{At: m.at, Agent: agent, Stream: m.stream, Text: text, Missed: m.missed}.Document()
}

// size spells a number of bytes.
func size(n int64) string {
	const mebi, kibi = 1 << 20, 1 << 10
	switch {
	case n >= mebi:
		return fmt.Sprintf("%.1f MiB", float64(n)/mebi)
	case n >= kibi:
		return fmt.Sprintf("%.1f KiB", float64(n)/kibi)
	}
	return fmt.Sprintf("%d bytes", n)
}
