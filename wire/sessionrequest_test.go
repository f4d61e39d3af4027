package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/session"
)

// creating returns a payload of create-session with its required members and more.
func creating(more string) string { return `{"session_id":"kitchen","members":[]` + more + `}` }

// Rows: C-87, C-88, C-99, C-100.
func TestWhatIsAskedOfSessionsIsRead(t *testing.T) {
	with := func(change func(s *session.Spec)) *CreateSession {
		s := &session.Spec{
			ID: "kitchen", Members: []session.Member{}, Validation: "standard", MaxIterations: 3, OnMax: "human_review", ProgressAfter: 120000, ProgressEvery: 30000,
		}
		change(s)
		return (*CreateSession)(s)
	}
	for _, test := range []struct {
		operation, payload string
		want               any
	}{
		{"create-session", creating(``), with(func(*session.Spec) {})},
		{"create-session", creating(`,"later":1,"validation":null,"max_iterations":null,"on_max":null,"require_review":null,"progress_after_ms":null`), with(func(*session.Spec) {})},
		{"create-session", creating(`,"progress_after_ms":0,"progress_every_ms":0`), with(func(s *session.Spec) { s.ProgressAfter, s.ProgressEvery = 0, 0 })},
		{"create-session", creating(`,"task_timeout_ms":1e3,"max_iterations":1`), with(func(s *session.Spec) { s.TaskTimeout, s.MaxIterations = 1000, 1 })},
		{"create-session", creating(`,"on_max":"force_approve","validation":"strict","require_review":true`), with(func(s *session.Spec) {
			s.OnMax, s.Validation, s.RequireReview = "force_approve", "strict", true
		})},
		{
			"create-session", `{"session_id":"kitchen","members":[{"agent_id":"a b","agent_type":"architect","x":1},{"agent_id":"c","agent_type":"reviewer"}]}`,
			with(func(s *session.Spec) {
				s.Members = []session.Member{{AgentID: "a b", AgentType: "architect"}, {AgentID: "c", AgentType: "reviewer"}}
			}),
		},
		{"get-session", `{}`, &GetSession{}},
		{"get-session", `{"session_id":null,"limit":0,"after":0,"x":[]}`, &GetSession{}},
		{"get-session", `{"limit":10000}`, &GetSession{Limit: 10000}},
		{"list-sessions", `{"x":1}`, &Nothing{}},
		{"list-reviews", `{"x":1}`, &ListReviews{}},
	} {
		body, wrong := readAs(t, test.operation, test.payload)
		require.Empty(t, wrong, "%s %s", test.operation, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.operation, test.payload)
	}
}

// Rows: C-13, C-87, C-88.
func TestWhatIsAskedOfSessionsIsRefused(t *testing.T) {
	const form = "must be 1 to 64 letters, digits, dots, dashes and underscores, the first of them a letter or digit"
	for _, test := range []struct{ operation, payload, want string }{
		{"create-session", `{"members":[]}`, "/payload/session_id: session_id is missing"},
		{"create-session", `{"session_id":"","members":[]}`, "/payload/session_id: session_id must not be empty"},
		{"create-session", `{"session_id":"a/b","members":[]}`, `/payload/session_id: session_id ` + form + `, not "a/b"`},
		{"create-session", `{"session_id":"kitchen"}`, "/payload/members: members is missing: it must be a list"},
		{"create-session", `{"session_id":"kitchen","members":{}}`, "/payload/members: members must be a list"},
		{"create-session", `{"session_id":"kitchen","members":["a"]}`, "/payload/members/0: members[0]: it must be an object"},
		{"create-session", `{"session_id":"kitchen","members":[{"agent_type":"architect"}]}`, "/payload/members/0/agent_id: members[0].agent_id is missing"},
		{"create-session", `{"session_id":"kitchen","members":[{"agent_id":"a"}]}`, "/payload/members/0/agent_type: members[0].agent_type is missing"},
		{"create-session", `{"session_id":"kitchen","members":[{"agent_id":"a","agent_type":"worker"}]}`, `/payload/members/0/agent_type: members[0].agent_type must be one of architect, developer or reviewer, not "worker"`},
		{"create-session", `{"session_id":"kitchen","members":[{"agent_id":"a\u0000","agent_type":"architect"}]}`, "/payload/members/0/agent_id: members[0].agent_id must not have control characters in it"},
		{"create-session", `{"session_id":"kitchen","members":[{"agent_id":"a","agent_type":"architect"},{"agent_id":"a","agent_type":"architect"}]}`, "/payload/members/1/agent_id: members[1].agent_id stands twice"},
		{"create-session", creating(`,"validation":"loose"`), `/payload/validation: validation must be one of standard or strict, not "loose"`},
		{"create-session", creating(`,"max_iterations":0`), "/payload/max_iterations: max_iterations must be a whole number from 1 to 9007199254740991"},
		{"create-session", creating(`,"max_iterations":2.5`), "/payload/max_iterations: max_iterations must be a whole number from 1 to 9007199254740991"},
		{"create-session", creating(`,"on_max":""`), `/payload/on_max: on_max must be one of abort, force_approve or human_review, not ""`},
		{"create-session", creating(`,"require_review":"yes"`), "/payload/require_review: require_review must be true or false"},
		{"create-session", creating(`,"task_timeout_ms":-1`), "/payload/task_timeout_ms: task_timeout_ms must be a whole number from 0 to 9007199254740991"},
		{"create-session", creating(`,"progress_every_ms":1e12`), "/payload/progress_every_ms: progress_every_ms is longer than a year, in milliseconds"},
		{"get-session", `{"limit":-1}`, "/payload/limit: limit must be a whole number from 0 to 10000"},
		{"get-session", `{"limit":10001}`, "/payload/limit: limit must be a whole number from 0 to 10000"},
		{"get-session", `{"after":-1}`, "/payload/after: after must be a whole number from 0 to 9007199254740991"},
		{"get-session", `{"to":{}}`, "/payload/to: to must be a string"},
		{"get-session", `{"task_id":1}`, "/payload/task_id: task_id must be a string"},
		{"list-reviews", `{"review_id":1}`, "/payload/review_id: review_id must be a string"},
		{"send-session-message", `{}`, "/payload/message: message is missing: it must be an object"},
		{"send-session-message", `{"message":null}`, "/payload/message: message is missing: it must be an object"},
		{"send-session-message", `{"message":"{}"}`, "/payload/message: message must be an object"},
		{"send-session-message", `{"message":{},"message":{}}`, "/payload/message: message stands twice"},
		{"send-session-message", `{"session_id":1,"message":{}}`, "/payload/session_id: session_id must be a string"},
	} {
		_, wrong := readAs(t, test.operation, test.payload)
		require.Equal(t, test.want, wrong, "%s %s", test.operation, test.payload)
	}
}

func TestSessionIDs(t *testing.T) {
	for _, good := range []string{"a", "7", "checkout-2_b.c", "A.", strings.Repeat("x", 64)} {
		require.True(t, session.IsID(good), good)
	}
	for _, bad := range []string{"", ".", "-a", "_a", "a b", "a/b", "a\n", "é", "a\x00", strings.Repeat("x", 65)} {
		require.False(t, session.IsID(bad), bad)
	}
}
