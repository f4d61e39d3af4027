package supervisor

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orchestrator/wire"
)

// LogQuery chooses lines of agents.
type LogQuery struct {
	Agents []string // none: all
	Last   int      // lines of each agent
	Stream string   // "": all
	After  string   // later than this time, spelled as theirs
	Until  string
	Follow bool
}

// logged is where the lines of one agent are found.
type logged struct {
	agent string
	dir   string
	tail  []wire.LogLine
}

// Logs sends the last lines of agents, oldest first, and then, if asked, those
// that come. Lines come from the tail in memory where it has enough, else from
// the files, which also hold what was said to an earlier orchestrator.
func (s *Supervisor) Logs(ctx context.Context, q LogQuery, send func(wire.LogLine) error) error {
	var follower *Follower
	if q.Follow {
		f, end, err := s.Follow(ctx, q.Agents, 0, false)
		if err != nil {
			return err
		}
		defer end()
		follower = f
	}
	type found struct {
		places []logged
		err    error
	}
	got, err := ask(ctx, s, func() found {
		chosen, err := s.choose(q.Agents)
		var places []logged
		for _, a := range chosen {
			places = append(places, logged{agent: a.Name, dir: filepath.Join(a.Output.Dir, a.Name), tail: a.voice.last(a.Output.Tail)})
		}
		return found{places, err}
	})
	if err == nil {
		err = got.err
	}
	if err != nil {
		return err
	}
	var lines []wire.LogLine
	for _, place := range got.places {
		lines = append(lines, place.lines(&q)...)
	}
	slices.SortStableFunc(lines, func(a, b wire.LogLine) int { return strings.Compare(a.At, b.At) })
	for _, line := range lines {
		if err := send(line); err != nil {
			return err
		}
	}
	return q.follow(ctx, follower, send)
}

// follow sends lines as they come.
func (q *LogQuery) follow(ctx context.Context, f *Follower, send func(wire.LogLine) error) error {
	if f == nil {
		return nil
	}
	var failed error
	var spare Backlog
	for failed == nil && f.Next(ctx, &spare, func(l Line) {
		line := wire.LogLine{At: stamp(l.At), Agent: l.Agent, Stream: l.Stream, Text: string(l.Text), Missed: l.Missed}
		if failed == nil && l.Agent != "" && q.wants(&line) {
			failed = send(line)
		}
	}) {
	}
	return failed
}

func (q *LogQuery) wants(line *wire.LogLine) bool {
	return (q.Stream == "" || q.Stream == line.Stream) &&
		(q.After == "" || line.At > q.After) && (q.Until == "" || line.At <= q.Until)
}

// lines are the last lines of one agent that are wanted.
func (p *logged) lines(q *LogQuery) []wire.LogLine {
	var lines []wire.LogLine
	enough := q.After == "" && q.Until == "" && len(p.tail) >= q.Last
	if enough {
		lines = p.tail
	} else {
		lines = p.read(q)
		for _, line := range p.tail {
			if line.Stream == wire.StreamOwn {
				lines = append(lines, line)
			}
		}
		slices.SortStableFunc(lines, func(a, b wire.LogLine) int { return strings.Compare(a.At, b.At) })
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l wire.LogLine) bool { return !q.wants(&l) })
	return lines[max(0, len(lines)-q.Last):]
}

// read takes lines from the files, the newest files first, until there are
// enough.
func (p *logged) read(q *LogQuery) []wire.LogLine {
	var all []wire.LogLine
	for suffix, stream := range map[string]string{".out": wire.StreamOut, ".err": wire.StreamErr} {
		if q.Stream != "" && q.Stream != stream {
			continue
		}
		var lines []wire.LogLine
		names := logNames(p.dir, suffix)
		for _, name := range slices.Backward(names) {
			text, err := os.ReadFile(filepath.Join(p.dir, name))
			if err != nil {
				continue // pruned meanwhile
			}
			lines = append(parseLog(text, p.agent, stream, q), lines...)
			if len(lines) >= q.Last {
				break
			}
		}
		all = append(all, lines[max(0, len(lines)-q.Last):]...)
	}
	return all
}

// parseLog reads the lines of a log file.
func parseLog(text []byte, agent, stream string, q *LogQuery) []wire.LogLine {
	var lines []wire.LogLine
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) <= len(stampLayout) || line[len(stampLayout)] != ' ' {
			continue
		}
		l := wire.LogLine{At: string(line[:len(stampLayout)]), Agent: agent, Stream: stream, Text: string(line[len(stampLayout)+1:])}
		if q.wants(&l) {
			lines = append(lines, l)
		}
	}
	return lines
}
