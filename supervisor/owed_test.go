package supervisor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// patchy is a log that cannot be read for a while, and counts the attempts.
type patchy struct {
	*ledger
	mu    sync.Mutex
	ill   bool
	tried int
}

func (p *patchy) Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error] {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried++
	if !p.ill {
		return p.ledger.Records(ctx, after)
	}
	return func(yield func(wire.Record, error) bool) { yield(wire.Record{}, errors.New("no such sector")) }
}

func (p *patchy) illness(ill bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ill = ill
}

// tries returns the number of reads since its last call.
func (p *patchy) tries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	tried := p.tried
	p.tried = 0
	return tried
}

// TestResponsesThatCannotBeRead checks that an unreadable response is retried a few times, and
// that later ones wait for it. Its source does not count as deaf: it gets the next messages, and
// its next run the response.
//
// Rows: D-17, B-74.
func TestResponsesThatCannotBeRead(t *testing.T) {
	for after, heals := range map[time.Duration]bool{1500 * time.Millisecond: true, 10 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			agents, parts, boss, w := handsOn(t, 3)
			agents[0].Restart, agents[0].Role, agents[0].Capacity, agents[0].Offers = always, wire.RoleWorker, 9, []string{"ask"}
			var said strings.Builder
			record := &patchy{ledger: newLedger()}
			p := perform(t, Options{Record: record, Protocol: freely, Log: hclog.New(&hclog.LoggerOptions{Output: &said})}, agents, parts)
			synctest.Wait()
			boss.says(handOn("a", "parse"), handOn("b", "parse"))
			synctest.Wait()
			boss.exit <- 0
			synctest.Wait()
			first, second := response("a", "completed", ""), response("b", "completed", "")
			w.says(first)
			synctest.Wait()
			record.illness(true)
			<-time.After(1200 * time.Millisecond)
			w.says(second, handOn("c", "ask"))
			require.Empty(t, boss.lines(), "what comes next waits")
			require.Contains(t, said.String(), "a line in the record cannot be read; trying again")
			record.tries()
			<-time.After(after)
			require.LessOrEqual(t, record.tries(), 5)
			record.illness(false)
			<-time.After(time.Minute)
			require.Zero(t, record.tries()-map[bool]int{true: 1}[heals])
			lines := boss.lines()
			require.Contains(t, lines[len(lines)-1], `"id":"c"`, "it is given work")
			require.NotContains(t, kinds(record.facts(t), "task."), events.TaskUnanswered)
			require.NotContains(t, kinds(record.facts(t), "agent."), events.AgentRecovered)
			require.Zero(t, p.owed(boss))
			if heals {
				require.Equal(t, []string{first, second}, lines[:2])
			} else {
				require.Equal(t, second, lines[0])
				require.Contains(t, said.String(), "is skipped")
				boss.exit <- 0
				<-time.After(2 * time.Second)
				require.Contains(t, boss.lines(), first)
			}
			require.NoError(t, p.stop())
		})
	}
}

// owedMuch returns a play with a boss that restarts, does not read, and is owed many responses, far
// more than its mailbox has room for.
func owedMuch(t *testing.T, many int) (p *play, record *patchy, boss, w *talker, again func()) {
	agents, parts, boss, w := handsOn(t, many+1)
	agents[0].Restart, agents[0].Mailbox = always, stdin.Limits{Messages: 8, Bytes: 1 << 20}
	record = &patchy{ledger: newLedger()}
	p = perform(t, Options{Record: record, Protocol: freely}, agents, parts)
	synctest.Wait()
	for n := range many + 1 {
		boss.says(handOn(fmt.Sprint(n), "parse"))
	}
	synctest.Wait()
	again = boss.readsNothing()
	boss.exit <- 0
	synctest.Wait()
	for n := range many {
		w.says(response(fmt.Sprint(n), "completed", ""))
	}
	synctest.Wait()
	record.tries()
	<-time.After(2 * time.Second)
	require.Less(t, record.tries(), 8, "it is read what there is room for")
	return p, record, boss, w, again
}

// TestManyOwedResponses checks that owed responses are written in order, as fast as the agent
// reads. Each is read from the log once.
//
// Rows: D-17, D-36, B-21.
func TestManyOwedResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 300
		p, record, boss, _, again := owedMuch(t, many)
		again()
		lines := boss.lines()
		require.Len(t, lines, many)
		for n, line := range lines {
			require.Equal(t, response(fmt.Sprint(n), "completed", ""), line)
		}
		require.LessOrEqual(t, record.tries(), many)
		require.NotContains(t, kinds(record.facts(t), "task."), events.TaskUnanswered)
		require.Zero(t, p.owed(boss))
		require.NoError(t, p.stop())
	})
}

// TestNewResponsesBehindOwedOnes checks that new responses wait in memory behind owed ones, up
// to a bound. Those beyond are dropped, and read from the log when there is room.
//
// Rows: D-17, B-21.
func TestNewResponsesBehindOwedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, news = 50, 20
		p, record, boss, w, again := owedMuch(t, many)
		for range news {
			w.says(response(fmt.Sprint(many), "in_progress", ""))
		}
		w.says(response(fmt.Sprint(many), "completed", ""))
		require.LessOrEqual(t, p.owed(boss), many+8)
		require.EqualValues(t, news+1-8, p.view("boss").Mailbox.Refused)
		again()
		lines := boss.lines()
		require.Equal(t, response(fmt.Sprint(many), "in_progress", ""), lines[many])
		require.Equal(t, response(fmt.Sprint(many), "completed", ""), lines[len(lines)-1])
		require.Len(t, lines, many+8+1)
		require.Zero(t, p.owed(boss))
		require.Len(t, kinds(record.facts(t), events.TaskAnswered), many+1)
		require.NoError(t, p.stop())
	})
}

// TestOwedResponsesOfRunsThatDoNotRead checks a run that ends, or closes its stdin, before it has
// read its owed responses. It leaves no trace, and the next run gets all of them.
//
// Rows: D-17, D-36.
func TestOwedResponsesOfRunsThatDoNotRead(t *testing.T) {
	for name, leave := range map[string]func(boss *talker){
		"ends": func(boss *talker) { boss.exit <- 0 },
		"closes": func(boss *talker) {
			synctest.Wait()
			_ = boss.run.theirs.Close()
			synctest.Wait()
			boss.exit <- 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 50
				p, record, boss, _, again := owedMuch(t, many)
				record.tries()
				leave(boss)
				synctest.Wait()
				require.Zero(t, record.tries(), "nothing is read for who has gone")
				again()
				<-time.After(2 * time.Second)
				require.Len(t, boss.lines(), many)
				require.NoError(t, p.stop())
			})
		})
	}
}
