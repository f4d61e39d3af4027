// Package output stores and distributes what agents print.
//
// An [Agent] is the output of one agent over all its runs. A [Run] splits the output of a run
// into lines. Messages go to the channel of the agent. All other lines are log: they go to
// files, to the last lines in memory, and to followers. A [Feed] has the outputs of all agents
// and the recent events.
package output

import (
	"fmt"
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
)

// An Agent is the output of an agent over all its runs: in files, in the last lines in memory,
// and for followers. The goroutines that read the agent's output do the work, a chunk at a
// time.
type Agent struct {
	agent string
	Tell  func(wire.Event) // reports an event about the output

	lines, bytes, cut, unlogged atomic.Int64
	heardAt                     atomic.Int64 // time of the last output, since epoch
	epoch                       time.Time
	OnSound                     atomic.Pointer[func()] // called once at the next output
	Spoke                       atomic.Bool            // the current run has sent a message

	mu        sync.Mutex
	tail      tail
	Limits    Limits
	file      string // the current stdout file
	followers []*Follower
}

// NewAgent returns the output of an agent.
func NewAgent(agent string, output Limits, tell func(wire.Event)) *Agent {
	return &Agent{agent: agent, Tell: tell, epoch: time.Now(), Limits: output, tail: tail{limit: output.Tail}}
}

// A Run is the output of one run of an agent.
type Run struct {
	*Agent
	run      string
	Echoes   *EchoFilter // nil if the agent has no terminal
	Messages Messages    // nil if all output is log
	streams  [2]speechStream
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
	// Send passes on the messages that Take has gathered.
	Send(now time.Time)
	// End reports what has not been reported yet.
	End(now time.Time)
}

// Begin starts the output of a new run.
func (v *Agent) Begin(run string, maxLine int) *Run {
	v.mu.Lock()
	output := v.Limits
	v.mu.Unlock()
	dir := filepath.Join(output.Dir, v.agent)
	prefix := RunPrefix(NextRun(dir)) // reads the disk, so not under the lock
	v.Spoke.Store(false)
	s := &Run{Agent: v, run: run}
	for i, suffix := range []string{".out", ".err"} {
		s.streams[i] = speechStream{
			name:  []string{control.StreamOut, control.StreamErr}[i],
			lines: line.NewSplitter(maxLine),
			file:  File{Dir: dir, Prefix: prefix, Suffix: suffix, Limits: output},
		}
	}
	v.mu.Lock()
	v.file = s.streams[0].file.name()
	v.mu.Unlock()
	v.heardAt.Store(int64(time.Since(v.epoch)))
	return s
}

// Adopt applies changed limits. A new folder is used from the next run on.
func (v *Agent) Adopt(output Limits) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Limits = output
	v.tail.limit = output.Tail
}

// pages holds pages for the chunks being handled.
var pages = sync.Pool{New: func() any { return new(Page) }}

// Write handles a chunk of one stream.
func (s *Run) Write(stream child.Stream, chunk []byte) {
	now := time.Now()
	s.sound()
	s.bytes.Add(int64(len(chunk)))
	t := &s.streams[stream]
	p := pages.Get().(*Page)
	defer pages.Put(p)
	p.clear()
	front := front(now)
	t.lines.Feed(chunk)
	for line, ok := t.lines.Next(); ok; line, ok = t.lines.Next() {
		s.line(p, t, line, now, front)
	}
	if s.Messages != nil && stream == child.Stdout {
		s.Messages.Send(now)
	}
	s.pass(p, t, now)
}

// front returns the beginning of a line in a log file.
func front(now time.Time) []byte { return append([]byte(Stamp(now)), ' ') }

// End handles the unfinished last lines of the streams and closes the files. Write must not be
// called during it or after it.
func (s *Run) End() {
	now := time.Now()
	for i := range s.streams {
		t := &s.streams[i]
		var p Page
		if line, ok := t.lines.Rest(); ok {
			s.line(&p, t, line, now, front(now))
		}
		if s.Messages != nil && i == 0 {
			s.Messages.End(now)
		}
		s.pass(&p, t, now)
		t.file.Close()
	}
}

// line handles one line. A line of log is added to the page in the format of the log file, so
// that file, tail and followers share one copy. An oversized line is cut.
func (s *Run) line(p *Page, t *speechStream, line line.Line, now time.Time, front []byte) {
	if s.Echoes.drop(line.Text, now) {
		return
	}
	if s.Messages != nil && t == &s.streams[0] && s.Messages.Take(line, now) {
		s.Spoke.Store(true)
		return
	}
	p.text = append(p.text, front...)
	if line.Cut {
		s.lineCut(t, line, now)
		p.Add(Mark{At: now, Stream: t.name}, line.Text, fmt.Appendf(nil, "… [cut: the line was %s]", Size(line.Size)))
	} else {
		p.Add(Mark{At: now, Stream: t.name}, line.Text)
	}
	p.text = append(p.text, '\n')
}

// lineCut counts an oversized line, and reports it at most once a second.
func (s *Run) lineCut(t *speechStream, line line.Line, now time.Time) {
	s.cut.Add(1)
	if now.Sub(t.cutTold) < time.Second {
		return
	}
	t.cutTold = now
	s.Tell(wire.Event{
		Kind:    events.AgentLineCut,
		Run:     s.run,
		Text:    fmt.Sprintf("a line of %s on %s is over the limit: dropped up to its end, first %d bytes kept", Size(line.Size), t.name, len(line.Text)),
		Figures: wire.Figures{Count: line.Size},
	})
}

// pass passes a page on to the log file, the tail and the followers.
func (s *Run) pass(p *Page, t *speechStream, now time.Time) {
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
func (s *Run) log(p *Page, t *speechStream, now time.Time) {
	lost, part := t.file.Lost, t.file.Part
	err := t.file.Write(p.text, int64(len(p.lines)), now)
	if t.file.Part != part && t.name == control.StreamOut {
		s.mu.Lock()
		s.Agent.file = t.file.name()
		s.mu.Unlock()
	}
	s.unlogged.Add(max(0, t.file.Lost-lost))
	switch {
	case err != nil:
		s.Tell(wire.Event{
			Kind: events.AgentUnlogged,
			Run:  s.run,
			Text: fmt.Sprintf("cannot write its %s to a file: %v; lines are counted until it works again, nothing else stops", t.name, err),
		})
	case lost > 0 && t.file.Lost == 0:
		s.Tell(wire.Event{
			Kind:    events.AgentUnlogged,
			Run:     s.run,
			Text:    fmt.Sprintf("its %s is written again, %d lines are missing", t.name, lost),
			Figures: wire.Figures{Count: lost},
		})
	}
}

// sound records that there was output.
func (v *Agent) sound() {
	v.heardAt.Store(int64(time.Since(v.epoch)))
	if woken := v.OnSound.Load(); woken != nil && v.OnSound.CompareAndSwap(woken, nil) {
		(*woken)()
	}
}

// Silence returns the time since the last output.
func (v *Agent) Silence() time.Duration {
	return time.Since(v.epoch) - time.Duration(v.heardAt.Load())
}

// say adds a notice of the orchestrator to the agent's output. It never blocks.
func (v *Agent) say(n *Notice) {
	p := sentence(n, true)
	v.mu.Lock()
	v.tail.keep(p)
	followers := v.followers
	v.mu.Unlock()
	for _, f := range followers {
		f.PushNow(v.agent, p)
	}
}

// mention is say for followers only.
func (v *Agent) mention(n *Notice) {
	v.mu.Lock()
	followers := v.followers
	v.mu.Unlock()
	if len(followers) == 0 {
		return
	}
	p := sentence(n, false)
	for _, f := range followers {
		f.PushNow(v.agent, p)
	}
}

// sentence returns a page with a notice. Its text is formatted later unless spelled is true.
func sentence(n *Notice, spelled bool) *Page {
	p := new(Page)
	var text []byte
	if spelled {
		text = []byte(n.Event().Text)
	}
	p.Add(Mark{At: n.Record.At, Stream: control.StreamOwn, News: n}, text)
	return p
}

// Follow adds a follower.
func (v *Agent) Follow(f *Follower) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.followers = append(slices.Clone(v.followers), f)
	f.joined()
}

// Unfollow removes a follower.
func (v *Agent) Unfollow(f *Follower) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.Index(v.followers, f)
	if i >= 0 {
		v.followers = slices.Delete(slices.Clone(v.followers), i, i+1)
		f.parted()
	}
}

// Close removes all followers, because the agent has no further output.
func (v *Agent) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.followers {
		f.parted()
	}
	v.followers = nil
}

// Last returns the last n lines as they are in memory.
func (v *Agent) Last(n int) []control.LogLine {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lines []control.LogLine
	v.tail.each(n, func(m Mark, text []byte) { lines = append(lines, logLine(v.agent, m, text)) })
	return lines
}

func logLine(agent string, m Mark, text []byte) control.LogLine {
	return Line{At: m.At, Agent: agent, Stream: m.Stream, Text: text, Missed: m.missed}.Document()
}

// Size formats a number of bytes.
func Size(n int64) string {
	const mebi, kibi = 1 << 20, 1 << 10
	switch {
	case n >= mebi:
		return fmt.Sprintf("%.1f MiB", float64(n)/mebi)
	case n >= kibi:
		return fmt.Sprintf("%.1f KiB", float64(n)/kibi)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Limits bounds the log files and the lines in memory of an agent's output.
type Limits struct {
	Dir     string // the agent's folder is created in it
	MaxSize int64  // bytes of one file
	Keep    int    // files of each stream
	Tail    int    // lines in memory
}

// View returns the output in its form for documents.
func (v *Agent) View() control.OutputView {
	v.mu.Lock()
	defer v.mu.Unlock()
	return control.OutputView{
		Lines:    v.lines.Load(),
		Bytes:    v.bytes.Load(),
		Cut:      v.cut.Load(),
		Unlogged: v.unlogged.Load(),
		File:     v.file,
	}
}
