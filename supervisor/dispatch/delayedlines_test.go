package dispatch

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

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

// TestDelayedLinesLeaveNothing checks that nothing is kept for a run to which all lines were
// written, or which has ended.
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
