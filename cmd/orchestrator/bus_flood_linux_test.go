package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A flood is a bureau whose orchestrator is killed again and again while many actors write.
type flood struct {
	*bureau
	random *rand.Rand
	over   atomic.Bool // whether this life has ended

	mu       sync.Mutex
	answered map[string][]int64 // by sender: the confirmed seq of each message; 0: not yet confirmed
}

// floodAgents are the agents that send by stdout.
var floodAgents = []string{"pipe0", "pipe1"}

// floodLife is the most messages that each sender sends in a life.
const floodLife = 400

func (f *flood) keyed(from string, n int) string {
	return mailLine(from, "HO:sink", direct, fmt.Sprintf(`{"from":%q,"n":%d}`, from, n), fmt.Sprintf(`"idempotency_key":"%s-%d"`, from, n))
}

// note records a confirmation. The seq of a message never changes.
func (f *flood) note(l letter) {
	var n int
	var from string
	_, err := fmt.Sscanf(string(l.Payload), `{"from":%q,"n":%d}`, &from, &n)
	require.NoError(f.t, err, l.text)
	require.Equal(f.t, l.From, from)
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.answered[from]) <= n {
		f.answered[from] = append(f.answered[from], 0)
	}
	before := f.answered[from][n]
	require.True(f.t, before == 0 || before == l.Seq, "message %d of %s was %d, and is %d", n, from, before, l.Seq)
	f.answered[from][n] = l.Seq
}

// next returns the first message of a sender that is not confirmed.
func (f *flood) next(from string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, seq := range f.answered[from] {
		if seq == 0 {
			return n
		}
	}
	return len(f.answered[from])
}

// writes sends messages over HTTP until the orchestrator is gone. Unconfirmed messages are sent
// again in the next life, with the same key.
func (f *flood) writes(c *clerk, letters chan<- letter) {
	for n := f.next(c.actor); !f.over.Load(); n++ {
		r, err := c.try("POST /api/bus/send", f.keyed(c.actor, n))
		if err != nil || r.status >= http.StatusInternalServerError {
			return
		}
		if r.status != http.StatusOK {
			f.t.Errorf("message %d of %s: %d %s", n, c.actor, r.status, r.text)
			return
		}
		letters <- letter{text: r.text}
	}
}

// pipes sends many messages at once by stdout, unconfirmed ones first.
func (f *flood) pipes(a *actor, from string) {
	var lines strings.Builder
	first := f.next(from)
	for n := first; n < first+floodLife; n++ {
		if n%2 == 0 {
			fmt.Fprintln(&lines, f.keyed(from, n))
		} else {
			fmt.Fprintln(&lines, asking(fmt.Sprint(from, "-", n), "send-message", f.keyed(from, n)))
		}
	}
	_, _ = io.WriteString(a.conn, lines.String())
}

// piped records what an agent was answered in the last life.
func (f *flood) piped(a *actor) {
	f.t.Helper()
	waitForThat(f.t, "end of "+a.name, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.ended
	})
	for _, line := range a.heardSoFar() {
		switch {
		case !json.Valid([]byte(line)): // the last one may have been cut off
		case strings.HasPrefix(line, `{"seq":`):
			f.note(readSent(f.t, line))
		default:
			m := heardAs(f.t, line)
			require.Nil(f.t, m.Error, line)
			if strings.HasPrefix(string(m.Payload), `{"seq":`) {
				f.note(readSent(f.t, string(m.Payload)))
			}
		}
	}
}

// A recipient is the actor that receives all messages.
type recipient struct {
	*clerk
	granted, asked atomic.Int64 // the highest seq acked, and tried to ack
}

// reads polls and acks until the orchestrator is gone.
func (s *recipient) reads(over *atomic.Bool) {
	for !over.Load() {
		r, err := s.try(s.poll("&limit=20"), "")
		if err != nil || r.status != http.StatusOK {
			return
		}
		last := strings.LastIndex(r.text, `{"seq":`)
		if last < 0 {
			continue
		}
		var seq int64
		if _, err := fmt.Sscanf(r.text[last:], `{"seq":%d`, &seq); err != nil {
			return
		}
		s.asked.Store(seq)
		r, err = s.try("POST /api/bus/ack", fmt.Sprintf(`{"seq":%d}`, seq))
		if err != nil || r.status != http.StatusOK {
			return
		}
		s.granted.Store(seq)
	}
}

// Many actors send, in every way, and one receives, while the orchestrator is killed repeatedly.
// Confirmed messages exist once, in the order of their sender; others are sent again. The
// receiver's cursor is as confirmed.
//
// Rows: E-16, E-24, E-26, E-27, E-28, E-33, E-36, E-40, E-60, E-86, T-34.
func TestBusKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	hcl := ""
	for _, name := range floodAgents {
		hcl += writing(name, "PO:"+name)
	}
	b, actors := newBureau(t, hcl, floodAgents...)
	f := &flood{bureau: b, random: rand.New(rand.NewPCG(seed, 0)), answered: make(map[string][]int64)}
	writers := []*clerk{b.clerk("HO:a"), b.clerk("HO:b"), b.clerk("W:c")}
	reader := &recipient{clerk: b.clerk("HO:sink")}
	for range rounds(t, 5) {
		f.life(actors, writers, reader)
		actors = b.open(floodAgents...)
		cursor := b.known("HO:sink").Cursor
		require.GreaterOrEqual(t, cursor, reader.granted.Load(), "an ack that was answered is lost")
		require.LessOrEqual(t, cursor, max(reader.asked.Load(), reader.granted.Load()), "nobody has acked that")
		f.check(reader.clerk)
	}
	f.finish(actors, writers)
	f.check(reader.clerk)
	require.NotZero(t, reader.granted.Load())
	requireNoHoles(t, b.stage)
	b.stop()
}

// life runs all senders and the reader, and kills the orchestrator in the middle.
func (f *flood) life(actors []*actor, writers []*clerk, reader *recipient) {
	f.t.Helper()
	f.over.Store(false)
	letters := make(chan letter, 10*floodLife)
	var group sync.WaitGroup
	for _, w := range writers {
		group.Go(func() { f.writes(w, letters) })
	}
	for i, a := range actors {
		group.Go(func() { f.pipes(a, "PO:"+floodAgents[i]) })
	}
	group.Go(func() { reader.reads(&f.over) })
	goal := 1 + f.random.IntN(2*floodLife)
	waitForThat(f.t, "some talk", func() bool {
		return len(letters)+len(actors[0].heardSoFar())+len(actors[1].heardSoFar()) >= goal
	})
	<-time.After(time.Duration(f.random.IntN(5000)) * time.Microsecond)
	f.kill()
	f.over.Store(true)
	group.Wait()
	close(letters)
	for l := range letters {
		f.note(readSent(f.t, l.text))
	}
	for _, a := range actors {
		f.piped(a)
	}
}

// check compares the stored mail with the confirmations.
func (f *flood) check(reader *clerk) {
	f.t.Helper()
	there := make(map[string][]letter)
	for _, l := range reader.everything(10_000) {
		there[l.From] = append(there[l.From], l)
	}
	for from, found := range there {
		for n, l := range found {
			require.Equal(f.t, fmt.Sprintf(`{"from":%q,"n":%d}`, from, n), string(l.Payload), "each once, and in the order in which they were sent")
		}
	}
	for from, seqs := range f.answered {
		for n, seq := range seqs {
			if seq != 0 {
				require.Less(f.t, n, len(there[from]), "message %d of %s was answered and is gone", n, from)
				require.Equal(f.t, seq, there[from][n].Seq)
			}
		}
	}
}

// finish sends the unconfirmed messages, and requires a confirmation of all.
func (f *flood) finish(actors []*actor, writers []*clerk) {
	f.t.Helper()
	for _, w := range writers {
		for n := range f.next(w.actor) + 2 {
			l := w.sends(f.keyed(w.actor, n))
			f.note(l)
		}
	}
	for i, a := range actors {
		f.pipes(a, "PO:"+floodAgents[i])
	}
	for _, a := range actors {
		waitForThat(f.t, "all answers", func() bool { return len(a.heardSoFar()) >= floodLife+1 })
		a.exit(0)
		f.piped(a)
	}
}
