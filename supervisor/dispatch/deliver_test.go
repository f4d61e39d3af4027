package dispatch

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
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
