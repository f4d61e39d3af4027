package dispatch

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// receipted is a report of receipts.
type receipted struct {
	said    []int64
	written bool
}

// receiptsTo returns a function that sends receipts to heard.
func receiptsTo(heard chan<- receipted) func(receipts []wire.Delivered, written bool) {
	return func(receipts []wire.Delivered, written bool) {
		one := receipted{written: written}
		for _, r := range receipts {
			one.said = append(one.said, r.Said)
		}
		heard <- one
	}
}

// TestLinesArePassedTogether checks that lines for one run are one write, unchanged and in
// order, with one receipt. Letters between them keep their place.
//
// Rows: C-16.
func TestLinesArePassedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{})
		heard := make(chan receipted, 100)
		box, theirs := boxOf(t, stdin.Limits{Messages: 1000, Bytes: 1 << 20}, receiptsTo(heard))
		d.recipients.open("a", "run", box)
		to := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: "run"}
		line := func(n int) handlers.Letter {
			return handlers.Letter{To: to, Line: wire.Raw(fmt.Sprintf(`{"n": %d}`, n)), Said: int64(n)}
		}
		long := line(6)
		long.Line = wire.Raw(`"` + strings.Repeat("x", 2*stdin.BatchBytes) + `"`)
		letters := []handlers.Letter{line(1), line(2), line(3), {To: to, Notice: wire.NoticeShutdown, Payload: &wire.ShutdownNotice{}}, line(4), line(5), long, line(7)}
		d.deliver(letters, new([]byte))
		synctest.Wait()
		reader := bufio.NewReader(theirs)
		var all []string
		for range letters {
			text, err := reader.ReadString('\n')
			require.NoError(t, err)
			all = append(all, text)
			synctest.Wait()
		}
		require.Equal(t, []string{"{\"n\": 1}\n", "{\"n\": 2}\n", "{\"n\": 3}\n"}, all[:3])
		require.Contains(t, all[3], wire.NoticeShutdown)
		require.Equal(t, []string{"{\"n\": 4}\n", "{\"n\": 5}\n", string(long.Line) + "\n", "{\"n\": 7}\n"}, all[4:])
		require.Equal(t, receipted{said: []int64{1, 2, 3}, written: true}, <-heard)
		require.Equal(t, receipted{said: []int64{4, 5}, written: true}, <-heard)
		require.Equal(t, receipted{said: []int64{6}, written: true}, <-heard)
		require.Equal(t, receipted{said: []int64{7}, written: true}, <-heard)
		box.Drop()
		d.Close()
	})
}

// TestNothingOvertakesWhatWasMissed checks that a session message does not overtake one that the
// run has missed. Until the loss is handled, later messages are refused too, even if there is
// room again.
//
// Rows: C-91, C-92.
func TestNothingOvertakesWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "a"}}})
		a := d.enter("a", stdin.Limits{Messages: 4, Bytes: 1 << 20})
		to := a.actor()
		send := func(n, after int64) {
			d.deliver([]handlers.Letter{{To: to, Line: fmt.Appendf(nil, `{"type":"%d"}`, n), Said: n, After: after}}, new([]byte))
		}
		for n := range int64(10) {
			send(n+1, n)
		}
		a.listen()
		taken := len(a.lines())
		require.Less(t, taken, 10)
		send(11, 10)
		require.Len(t, a.lines(), taken, "it was sent before it was known that others were missed")
		for n := taken; n < 11; n++ {
			send(int64(n+1), 0)
			synctest.Wait()
		}
		for n, line := range a.lines() {
			require.Equal(t, fmt.Sprintf(`{"type":"%d"}`, n+1), line)
		}
		require.Len(t, a.lines(), 11)
		a.box.Drop()
		d.Close()
	})
}

// TestHopeIsToldOnce checks that an agent that reads again gets everything at once. Its recovery
// is reported once, however much it had missed.
//
// Rows: B-08, C-91, T-04.
func TestHopeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "a"}}})
		a := d.enter("a", stdin.Limits{Messages: 4, Bytes: 1 << 20})
		to := a.actor()
		for n := range 20 {
			d.deliver([]handlers.Letter{{To: to, Line: wire.Raw(`{}`), Said: int64(n)}}, new([]byte))
		}
		waiting, _, _ := a.box.Waiting()
		require.LessOrEqual(t, waiting, 4)
		count := func() (recovered, undelivered int) {
			for _, r := range d.taken() {
				switch r.Kind {
				case events.AgentRecovered:
					recovered++
				case events.AgentUndelivered:
					undelivered++
				}
			}
			return recovered, undelivered
		}
		recovered, undelivered := count()
		require.Zero(t, recovered)
		require.Equal(t, 1, undelivered)
		a.listen()
		recovered, _ = count()
		require.Equal(t, 1, recovered)
		require.Len(t, a.lines(), 4)
		a.box.Drop()
		d.Detach("a", "a-run")
		d.Close()
		d.deliver([]handlers.Letter{{To: to, Line: wire.Raw(`{}`), Said: 1}}, new([]byte))
	})
}

// TestReceiptsOfLines checks that each line that needs a receipt gets one. For a run that has
// ended it is lost.
//
// Rows: D-17, D-36.
func TestReceiptsOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{})
		var mu sync.Mutex
		var all []wire.Delivered
		box, theirs := boxOf(t, stdin.Limits{Messages: 1000, Bytes: 1 << 20}, func(receipts []wire.Delivered, written bool) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range receipts {
				r.Lost = !written
				all = append(all, r)
			}
		})
		d.recipients.open("a", "run", box)
		to := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: "run"}
		line := func(n int, task string, said int64) handlers.Letter {
			return handlers.Letter{To: to, Line: wire.Raw(fmt.Sprintf(`{"n": %d}`, n)), Task: task, Said: said}
		}
		d.deliver([]handlers.Letter{line(1, "t", 0), line(2, "t", 7), line(3, "", 8), line(4, "", 0), {To: to, Kept: 9, Task: "u", Said: 9}}, new([]byte))
		text := make([]byte, 4*len(`{"n": 1}`+"\n"))
		for read := 0; read < len(text); {
			n, err := theirs.Read(text[read:])
			require.NoError(t, err)
			read += n
		}
		synctest.Wait()
		require.Equal(t, "{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n{\"n\": 4}\n", string(text), "there is no record in which the last could be read")
		mu.Lock()
		require.Equal(t, []wire.Delivered{
			{Agent: "a", Run: "run", Task: "t"}, {Agent: "a", Run: "run", Task: "t", Said: 7}, {Agent: "a", Run: "run", Said: 8},
		}, all)
		mu.Unlock()
		said := handlers.Letter{To: to, Said: 1, Line: wire.Raw(`{"status":"x","artifacts":[{"content":"","ref":"` + delegation.ArtifactRef(strings.Repeat("0", 64)) + `"}]}`)}
		require.False(t, isElsewhere(&said), "what is said in a session is passed on as it came")
		said.Task = "t"
		require.True(t, isElsewhere(&said))
		box.Drop()
		d.Close()
	})
}

// TestDelayedLinesLeaveNothing checks that no entry is kept for a run that has ended, or got all
// its lines.
//
// Rows: D-17, D-36.
func TestDelayedLinesLeaveNothing(t *testing.T) {
	for name, end := range map[string]func(a *speaker){
		"written": func(a *speaker) { a.listen() },
		"ended":   func(a *speaker) { a.box.Drop() },
		"closed":  func(a *speaker) { _ = a.theirs.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				record := newLedger()
				d := begin(t, Options{Record: record})
				a := d.enter("a", stdin.Limits{Messages: 4, Bytes: 1 << 20})
				d.Settle()
				refers := wire.Raw(`{"status":"x","artifacts":[{"content":"","ref":"` + delegation.ArtifactRef(strings.Repeat("0", 64)) + `"}]}`)
				for range 4 {
					d.deliver([]handlers.Letter{{To: a.actor(), Line: refers, Task: "t"}}, new([]byte))
				}
				loads := func() int {
					synctest.Wait()
					d.mail.mu.Lock()
					defer d.mail.mu.Unlock()
					return len(d.mail.loads)
				}
				require.Equal(t, 1, loads(), "there is no room")
				end(a)
				<-time.After(time.Minute)
				require.Zero(t, loads())
				a.box.Drop()
				d.Close()
			})
		})
	}
}

// shelf stores artifacts in memory.
type shelf map[string]string

func (s shelf) Detach(r *delegation.Response) *wire.Error {
	err := r.Detach(100, func(content string) (string, error) {
		sum := sha256.Sum256([]byte(content))
		ref := delegation.ArtifactRef(hex.EncodeToString(sum[:]))
		s[ref] = content
		return ref, nil
	})
	if err != nil {
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	}
	return nil
}

func (shelf) Release([]string, bool) {}

func (shelf) Collect(Folder, []hub.Artifact) *wire.Error { return nil }

func (s shelf) Attach(document wire.Raw) wire.Raw {
	whole, _ := delegation.Attach(document, func(ref string) (string, error) { return s[ref], nil })
	return whole
}

// TestCompletedResponsesStayInTheirTrace checks that a response completed from the log and from
// files keeps its trace.
//
// Rows: D-13, D-35.
func TestCompletedResponsesStayInTheirTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		s := begin(t, Options{Record: record, Artifacts: make(shelf)})
		s.Note(&wire.AgentSet{Agents: []wire.Member{
			{ID: "boss", Role: wire.RolePlanner}, {ID: "w", Role: wire.RoleWorker, Capacity: 1, Capabilities: []string{"parse"}},
		}})
		boss, w := s.enter("boss", stdin.Limits{Messages: 100, Bytes: 1 << 20}), s.enter("w", stdin.Limits{Messages: 100, Bytes: 1 << 20})
		boss.listen()
		w.listen()
		boss.says(`{"id":"a","type":"parse","payload":{}}`)
		require.Len(t, w.lines(), 1)
		large := strings.Repeat("x", 1000)
		w.says(`{"id":"a","status":"completed","result":{"success":true},"artifacts":[{"name":"n","type":"text/plain","content":"` + large + `"}]}`)
		require.Len(t, boss.lines(), 1)
		require.Contains(t, boss.lines()[0], large)
		responded := record.facts(t, events.TaskResponded)
		require.Len(t, responded, 1)
		require.NotContains(t, string(responded[0].Payload), large)
		part := &wire.TaskAnswer{Document: wire.Raw(`{"id":"a","status":"completed"}`), Trace: &delegation.Trace{TraceID: "trace-1"}}
		l := handlers.Letter{Payload: part, Pages: []history.Page{{Task: "a", Response: responded[0].Seq}}}
		require.Nil(t, s.complete(&l))
		whole := l.Payload.(*wire.TaskAnswer)
		require.Contains(t, string(whole.Document), large)
		require.Equal(t, part.Trace, whole.Trace)
		boss.box.Drop()
		w.box.Drop()
		s.Close()
	})
}
