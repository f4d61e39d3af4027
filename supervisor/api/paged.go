package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A list is complete. With a limit it is one page, and the header Link names the next one. Without a limit it is
// written page by page, so that its length needs no memory.

// pageTasks is the number of tasks in a page of a whole list.
const pageTasks = 1000

// nextPage is the header that names the next page, as RFC 8288 spells it.
var nextPage = heading{name: "Link", words: `The URL of the next page, with rel="next", if a limit was given and more results follow.`}

// tasks answers with the tasks that a query selects.
func (api *API) tasks(w http.ResponseWriter, r *http.Request, body any) error {
	query := *body.(*wire.QueryTasks)
	if query.Limit != 0 {
		list, err := get[wire.TaskList](api, r, "query-tasks", &query)
		if err != nil {
			return err
		}
		linkNext(w, r, list.Cursor)
		api.write(w, http.StatusOK, taskLines(list))
		return nil
	}
	query.Limit, query.Uncounted = pageTasks, true
	return api.writeAll(w, r, `{"tasks":[`, `]}`, func() ([]any, bool, error) {
		list, err := get[wire.TaskList](api, r, "query-tasks", &query)
		if err != nil {
			return nil, false, err
		}
		query.Cursor = list.Cursor
		lines := taskLines(list).Tasks
		items := make([]any, len(lines))
		for i := range lines {
			items[i] = &lines[i]
		}
		return items, list.More > 0, nil
	})
}

// mailbox answers with the messages to an actor.
func (api *API) mailbox(w http.ResponseWriter, r *http.Request, body any) error {
	poll := *body.(*wire.PollMessages)
	limited := poll.Limit != 0
	first, err := get[mail.List](api, r, "poll-messages", &poll)
	if err != nil {
		return err
	}
	if limited {
		if first.More {
			w.Header().Set(mailMore, "true")
			linkNext(w, r, strconv.FormatInt(first.Messages[len(first.Messages)-1].Seq, 10))
		}
		api.write(w, http.StatusOK, first.Messages)
		return nil
	}
	list := first
	return api.writeAll(w, r, "[", "]", func() ([]any, bool, error) {
		if list == nil {
			var err error
			if list, err = get[mail.List](api, r, "poll-messages", &poll); err != nil {
				return nil, false, err
			}
		}
		items := make([]any, len(list.Messages))
		for i := range list.Messages {
			items[i] = &list.Messages[i]
		}
		more := list.More
		if more {
			poll.Cursor = &list.Messages[len(list.Messages)-1].Seq
		}
		list = nil
		return items, more, nil
	})
}

// get asks for an operation for the caller of a request.
func get[Answer any](d *API, r *http.Request, operation string, body any) (*Answer, error) {
	answer, err := d.do(r.Context(), CallerOf(r.Context()), operation, body)
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*Answer)
	if !ok {
		return nil, fmt.Errorf("%s was answered with a %T", operation, answer)
	}
	return list, nil
}

// linkNext sets the header that names the page after cursor. "" means that no page follows.
func linkNext(w http.ResponseWriter, r *http.Request, cursor string) {
	if cursor == "" {
		return
	}
	query := r.URL.Query()
	query.Set("cursor", cursor)
	next := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
	w.Header().Set(nextPage.name, "<"+next.String()+`>; rel="next"`)
}

// writeAll writes all pages as one document. A refusal of the first page is returned, without writing. A later error
// cuts the connection, so that a part of the list is never taken for the whole.
func (api *API) writeAll(w http.ResponseWriter, r *http.Request, open, end string, page func() (items []any, more bool, err error)) error {
	items, more, err := page()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", inJSON)
	control := http.NewResponseController(w)
	text := []byte(open)
	for first := true; ; first = false {
		if err == nil {
			text, err = appendItems(text, items, first)
		}
		if err != nil {
			api.Log.Error("a list is cut off", "error", err)
			panic(http.ErrAbortHandler)
		}
		if !more {
			text = append(text, end+"\n"...)
		}
		if first && !more {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_ = hurry(control)
		if _, err := w.Write(text); err != nil || !more || r.Method == http.MethodHead {
			_ = sent(control)
			return nil // a caller that is gone does not need the rest
		}
		text = text[:0]
		items, more, err = page()
	}
}

// appendItems appends the members of a JSON array.
func appendItems(text []byte, items []any, first bool) ([]byte, error) {
	for i, item := range items {
		if i > 0 || !first {
			text = append(text, ',')
		}
		item, err := object.Encode(item)
		if err != nil {
			return nil, err
		}
		text = append(text, item...)
	}
	return text, nil
}
