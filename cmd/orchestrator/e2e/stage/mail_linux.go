package stage

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Mail is a message as the bus returns it.
type Mail struct {
	Seq       int64           `json:"seq"`
	From      string          `json:"from_actor"`
	To        string          `json:"to_actor"`
	Topic     string          `json:"topic"`
	Payload   json.RawMessage `json:"payload"`
	ReplyTo   *int64          `json:"reply_to"`
	CreatedAt string          `json:"created_at"`
	Duplicate bool            `json:"duplicate"`
	Warnings  []string        `json:"warnings"`

	Text string `json:"-"` // the unparsed text
}

// seven lists the members of a message in alphabetical order.
var (
	seven       = []string{"created_at", "from_actor", "payload", "reply_to", "seq", "to_actor", "topic"}
	TimePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// ReadMail decodes a message. It must have exactly its seven members and those in beside,
// which only the sender gets.
func ReadMail(t *testing.T, text string, beside ...string) Mail {
	t.Helper()
	l := Mail{Text: text}
	require.NoError(t, json.Unmarshal([]byte(text), &l), text)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &members))
	var keys []string
	for key := range members {
		if !slices.Contains(beside, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	require.Equal(t, seven, keys, text)
	require.Regexp(t, TimePattern, l.CreatedAt)
	require.Positive(t, l.Seq)
	return l
}

// MailLine returns the body that sends a message.
func MailLine(from, to, topic, payload string, more ...string) string {
	members := append([]string{fmt.Sprintf(`"from_actor":%q,"to_actor":%q,"topic":%q,"payload":%s`, from, to, topic, payload)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

const Direct = "message.direct"

// Receives waits until an agent has got n messages, and returns them.
func (a *Agent) Receives(n int) []Mail {
	a.T.Helper()
	WaitFor(a.T, fmt.Sprintf("%d messages for %s", n, a.Name), func() bool { return len(a.Notices("message")) >= n })
	var found []Mail
	for _, m := range a.Notices("message") {
		found = append(found, ReadMail(a.T, string(m.Payload)))
	}
	return found
}
