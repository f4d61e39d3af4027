package watch

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

// kept is how many lines, and how many messages, are kept.
const kept = 5000

// do runs work that may take time and sends its result to the model. The returned function
// cancels it.
func (f *feed) do(work func(ctx context.Context) tea.Msg) (giveUp func()) {
	cancel := make(chan struct{})
	f.begun(func(ctx context.Context) {
		within, end := context.WithCancel(ctx)
		defer end()
		stop := make(chan struct{})
		defer close(stop)
		f.group.Go(func() {
			select {
			case <-cancel:
				end()
			case <-stop:
			}
		})
		if news := work(within); news != nil {
			f.tell(ctx, news)
		}
	})
	return sync.OnceFunc(func() { close(cancel) })
}

// logs follows the output of an agent, or of all agents for "", beginning with the last
// lines. The news are for the tail pane or else for the log.
func (f *feed) logs(agent string, last int, tail bool) (end func()) {
	query := url.Values{"follow": {"true"}, "n": {strconv.Itoa(last)}}
	if agent != "" {
		query.Set("agent", agent)
	}
	return followed(f, "logs", query, shortLine, func(b batch[control.LogLine]) tea.Msg {
		return logNews{agent: agent, tail: tail, lines: b.items, fresh: b.fresh, denied: b.denied}
	})
}

// mail follows the messages of all actors.
func (f *feed) mail() (end func()) {
	query := url.Values{"follow": {"true"}, "n": {"500"}}
	return followed(f, "messages", query, shortMail, func(b batch[mail.Message]) tea.Msg {
		return mailNews{mail: b.items, fresh: b.fresh, denied: b.denied}
	})
}

// A batch is a part of a list. A fresh one is the first.
type batch[T any] struct {
	items  []T
	fresh  bool
	denied string // the reason why this person may not read the list
}

// followed follows a list and reopens it after an interruption. It sends news a few times a
// second at most, and no more than the latest kept items. The function short shortens each
// item before it is kept.
func followed[T any](f *feed, list string, query url.Values, short func(*T), news func(batch[T]) tea.Msg) (end func()) {
	return f.do(func(ctx context.Context) tea.Msg {
		for ctx.Err() == nil {
			once(ctx, f, list, query, short, news)
			select {
			case <-time.After(latest / 2):
			case <-ctx.Done():
			}
		}
		return nil
	})
}

// once follows a list until it ends.
func once[T any](ctx context.Context, f *feed, list string, query url.Values, short func(*T), news func(batch[T]) tea.Msg) {
	within, end := context.WithCancel(ctx)
	defer end()
	lines := make(chan T, 256)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer end()
	reader.Go(func() {
		defer close(lines)
		for text, err := range f.of.Follow(within, list, query) {
			if err != nil {
				if failure, ok := errors.AsType[*cli.Failure](err); ok && failure.Exit == cli.ExitDenied {
					f.tell(within, news(batch[T]{fresh: true, denied: failure.Message}))
				}
				return
			}
			document, err := client.Decode[T](text)
			if err != nil {
				return
			}
			short(&document)
			select {
			case lines <- document:
			case <-within.Done():
				return
			}
		}
	})
	gather(within, lines, func(items []T, fresh bool) { f.tell(within, news(batch[T]{items: items, fresh: fresh})) })
}

// gather sends items in batches.
func gather[T any](ctx context.Context, lines <-chan T, tell func(batch []T, fresh bool)) {
	var batch []T
	fresh := true
	var soon <-chan time.Time
	for {
		select {
		case one, ok := <-lines:
			if !ok {
				if len(batch) > 0 {
					tell(batch, fresh)
				}
				return
			}
			if batch = append(batch, one); len(batch) > 2*kept {
				batch = append(batch[:0], batch[len(batch)-kept:]...)
			}
			if soon == nil {
				soon = time.After(time.Second / redraws)
			}
		case <-soon:
			tell(batch, fresh)
			batch, fresh, soon = nil, false, nil
		case <-ctx.Done():
			return
		}
	}
}

// shortLine shortens a line to its visible part. Thousands are kept, and each may have megabytes.
func shortLine(l *control.LogLine) {
	l.Text = inShort(l.Text, maxOfLine)
	l.Context = []byte(inShort(string(l.Context), maxOfLine))
}

// shortMail shortens the payload of a message to maxOfMail.
func shortMail(m *mail.Message) { m.Payload = []byte(inShort(string(m.Payload), maxOfMail)) }

// maxOfLine and maxOfMail are how many bytes of a line and of a payload are kept.
const maxOfLine, maxOfMail = 4 << 10, 16 << 10

// inShort returns at most most bytes of a text. The result does not retain the rest.
func inShort(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// A ring keeps the latest items, each with a number that only grows.
type ring[T any] struct {
	all   []T
	first int // the number of all[0]
}

func (r *ring[T]) add(more []T, fresh bool) {
	if fresh {
		r.first += len(r.all)
		r.all = nil
	}
	r.all = append(r.all, more...)
	if over := len(r.all) - kept; over > kept/4 { // copy rarely
		r.all = append(r.all[:0:0], r.all[over:]...)
		r.first += over
	}
}

func (r *ring[T]) end() int { return r.first + len(r.all) }

func (r *ring[T]) at(number int) *T { return &r.all[number-r.first] }
