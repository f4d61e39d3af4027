package hub

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

func (r *requester) events(ctx context.Context, query url.Values, send func(any) error) error {
	q := output.EventQuery{
		After:  query.Get("after"),
		Kind:   query.Get("type"),
		Task:   query.Get("task"),
		Agents: query["agent"],
		Follow: query.Get("follow") == "true",
	}
	since, err := number(query, "since", 0)
	if err != nil {
		return err
	}
	q.Since = since
	return r.Events(ctx, q, func(e wire.Event) error { return send(e) })
}

func (r *requester) logs(ctx context.Context, query url.Values, send func(any) error) error {
	n, err := number(query, "n", output.AllLines)
	if err != nil {
		return err
	}
	q := output.LogQuery{
		Agents: query["agent"],
		Last:   int(min(n, 1<<30)),
		Stream: query.Get("stream"),
		After:  query.Get("after"),
		Until:  query.Get("until"),
		Follow: query.Get("follow") == "true",
	}
	return r.Logs(ctx, q, func(l control.LogLine) error { return send(l) })
}

// messages lists the messages of all actors.
func (r *requester) messages(ctx context.Context, query url.Values, send func(any) error) error {
	q := dispatch.MailQuery{
		Topic: query.Get("topic"), Actor: query.Get("actor"),
		Follow: query.Get("follow") == "true", People: query.Get("housekeeping") == "false",
	}
	var err error
	if q.Since, err = number(query, "since", 0); err != nil {
		return err
	}
	last, err := number(query, "n", 0)
	if err != nil {
		return err
	}
	q.Last = int(min(last, maxMessages))
	return r.Requests.Messages(ctx, q, func(m mail.Message) error { return send(m) })
}

// maxMessages is the limit of n. The last messages are found from the end and are all kept
// in memory until the first one is found.
const maxMessages = 100_000

// number returns a number of a query, or otherwise if it is missing.
func number(query url.Values, name string, otherwise int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("%s is %q, and should be a number from 0", name, text)}
	}
	return n, nil
}
