package watch

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

// A feed leaves no goroutine behind, even if it never got an answer.
func TestFeedEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	asked := make(chan string, 10)
	f := newFeed(fake{
		ask: func(ctx context.Context, operation string, _ any) ([]byte, error) {
			asked <- operation
			<-ctx.Done()
			return nil, ctx.Err()
		},
		follow: func(ctx context.Context, list string, _ url.Values) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				asked <- list
				<-ctx.Done()
				yield(nil, ctx.Err())
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	f.begin(ctx)
	f.logs("", 10, false)
	end := f.mail()
	f.do(func(ctx context.Context) tea.Msg { <-ctx.Done(); return noteNews{} })
	heard := map[string]bool{}
	for range 3 {
		heard[<-asked] = true
	}
	require.Equal(t, map[string]bool{"status": true, "logs": true, "messages": true}, heard)
	end()
	end()
	cancel()
	f.group.Wait()
}

// An inquiry is repeated soon after an event about it, and less often if its answers are slow.
func TestInquiryIsDue(t *testing.T) {
	at := time.Unix(1000, 0)
	q := inquiry{every: time.Second, asked: at}
	require.Equal(t, at.Add(time.Second), q.due())
	q.stale = true
	require.Equal(t, at.Add(soonest), q.due())
	q.took = time.Second
	require.Equal(t, at.Add(10*time.Second), q.due())
	q.took = time.Minute
	require.Equal(t, at.Add(longest), q.due())
	require.Equal(t, aboutTasks, subjectOf("task.done"))
	require.Equal(t, aboutQuestions, subjectOf("question.asked")&aboutQuestions)
	require.Zero(t, subjectOf("message.sent"))
	require.Equal(t, aboutAll, subjectOf("orchestrator.stopping"))
}

// When the event stream ends, inquiries are sent soon, even if answers were slow.
func TestLostIsNoticed(t *testing.T) {
	c := &conversation{feed: newFeed(fake{}), over: make(chan struct{}, 1), listening: true}
	c.inquiries = []*inquiry{{every: time.Second, asked: time.Now(), took: time.Hour}}
	c.over <- struct{}{}
	require.NoError(t, c.rest(t.Context()))
	require.False(t, c.listening)
	require.Equal(t, c.inquiries[0].asked.Add(soonest), c.inquiries[0].due())
}

// A session that the orchestrator refuses to show is skipped. Another error ends the inquiry.
func TestRefusedSession(t *testing.T) {
	refusal := error(&cli.Failure{Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: "no session is called a"})
	f := newFeed(fake{ask: func(_ context.Context, operation string, request any) ([]byte, error) {
		if operation == "list-sessions" {
			return []byte(`{"sessions":[{"session_id":"a"},{"session_id":"b"}]}`), nil
		}
		if request.(wire.GetSession).SessionID == "a" {
			return nil, refusal
		}
		return []byte(`{"tasks":[{"task_id":"t1"}]}`), nil
	}})
	f.news = make(chan tea.Msg, 1)
	c := &conversation{feed: f}
	require.NoError(t, c.askReviews(t.Context()))
	news := (<-f.news).(reviewsNews)
	require.Len(t, news.tasks, 1)
	require.Equal(t, "b", news.tasks[0].session)

	refusal = &cli.Failure{Exit: cli.ExitNotRunning, Code: cli.CodeNotRunning, Message: "it does not answer"}
	require.ErrorIs(t, c.askReviews(t.Context()), refusal)
}

// Of a flood of lines, the latest are delivered in batches.
func TestGather(t *testing.T) {
	lines := make(chan int)
	go func() { // ends after the lines
		defer close(lines)
		for i := range 4 * kept {
			lines <- i
		}
	}()
	last, batches := -1, 0
	gather(t.Context(), lines, func(batch []int, fresh bool) {
		require.Equal(t, batches == 0, fresh)
		require.LessOrEqual(t, len(batch), 2*kept)
		require.Greater(t, batch[0], last)
		last, batches = batch[len(batch)-1], batches+1
	})
	require.Equal(t, 4*kept-1, last)
}

// Long lines and messages are cut, because thousands of them are kept for the screen.
func TestFollowedIsShort(t *testing.T) {
	long := strings.Repeat("写", 1<<20)
	f := newFeed(fake{follow: func(_ context.Context, list string, _ url.Values) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			document := any(control.LogLine{Text: long, Context: wire.Raw(`"` + long + `"`)})
			if list == "messages" {
				document = mail.Message{Payload: wire.Raw(`"` + long + `"`)}
			}
			text, err := json.Marshal(document)
			if yield(text, err) {
				yield(nil, io.EOF)
			}
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	f.begun = func(work func(ctx context.Context)) { f.group.Go(func() { work(ctx) }) }
	f.logs("", 10, false)
	line := (<-f.news).(logNews).lines[0]
	require.Regexp(t, "^写+…$", line.Text)
	require.Less(t, len(line.Text)+len(line.Context), 3*maxOfLine)
	cancel()
	f.group.Wait()

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	f.mail()
	require.Less(t, len((<-f.news).(mailNews).mail[0].Payload), 2*maxOfMail)
	cancel()
	f.group.Wait()
}

// A person who may not read a list sees the reason, and not an empty list.
func TestDeniedList(t *testing.T) {
	f := newFeed(fake{follow: func(context.Context, string, url.Values) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			yield(nil, &cli.Failure{Exit: cli.ExitDenied, Message: "only an operator may read this"})
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer f.group.Wait()
	defer cancel()
	f.begun = func(work func(ctx context.Context)) { f.group.Go(func() { work(ctx) }) }
	m := still(false)
	status, _ := team(3, 0)
	m.hear(status)
	for tab, follow := range map[int]func(){tabLog: func() { f.logs("", 10, false) }, tabBus: func() { f.mail() }} {
		m.show(tab)
		require.Contains(t, screenOf(m), " No ")
		follow()
		m.hear(<-f.news)
		require.Contains(t, screenOf(m), "only an operator may read this")
	}
	m.hear(mailNews{fresh: true})
	m.show(tabBus)
	require.Contains(t, screenOf(m), "No messages.", "it may be read now")
}
