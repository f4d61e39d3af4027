package session

import (
	"context"
	"fmt"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// sessionSeen is a session with messages of its log. The messages are unchanged JSON, which
// keeps keys unknown to this version.
type sessionSeen struct {
	wire.SessionView
	Messages []wire.Raw `json:"messages"`

	before int    // number of omitted earlier messages
	raw    []byte // the last page; current except for its messages
	pages  int
}

// getSession returns a session with its last most messages, or with all for 0. It reads all
// pages, because the API only pages forward.
func getSession(ctx context.Context, a *cli.App, d *client.Client, want *wire.GetSession, most int) (*sessionSeen, error) {
	var kept []wire.Raw
	before := 0
	want.Limit = wire.MaxSessionPage
	for n := 1; ; n++ {
		text, err := a.Ask(ctx, d, "get-session", want)
		if err != nil {
			return nil, err
		}
		page, err := client.Decode[sessionSeen](text)
		if err != nil {
			return nil, err
		}
		kept = append(kept, page.Messages...)
		if over := len(kept) - most; most > 0 && over > 0 {
			kept, before = append([]wire.Raw(nil), kept[over:]...), before+over
		}
		if !page.More || page.Next <= want.After {
			page.Messages, page.before, page.raw, page.pages = kept, before, text, n
			return &page, nil
		}
		want.After = page.Next
	}
}

// document returns the JSON of the session with the messages of all pages.
func (s *sessionSeen) document() ([]byte, error) {
	if s.pages == 1 && s.before == 0 {
		return s.raw, nil
	}
	members, err := client.Decode[map[string]wire.Raw](s.raw)
	if err != nil {
		return nil, err
	}
	if members["messages"], err = object.Encode(append([]wire.Raw{}, s.Messages...)); err != nil {
		return nil, fmt.Errorf("joining the messages: %w", err)
	}
	return object.Encode(members)
}
