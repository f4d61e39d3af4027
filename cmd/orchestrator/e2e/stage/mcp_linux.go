package stage

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A ToolUser is an MCP client that is connected with the team.
type ToolUser struct {
	t       *testing.T
	Session *sdk.ClientSession
}

func (s *Orchestrator) ToolUser(transport sdk.Transport) *ToolUser {
	s.T.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(s.T.Context(), transport, nil)
	require.NoError(s.T, err)
	s.T.Cleanup(func() { _ = session.Close() })
	return &ToolUser{t: s.T, Session: session}
}

// Guest starts an MCP client that joins as a guest.
func (s *Orchestrator) Guest(args ...string) *ToolUser {
	return s.ToolUser(&sdk.CommandTransport{Command: s.GuestCommand(args...)})
}

func (s *Orchestrator) GuestCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(s.Program, append([]string{"mcp", "--state-dir", s.State()}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.Dir, s.Environ(), os.Stderr
	return cmd
}

// Use calls a tool and returns the texts of its result.
func (u *ToolUser) Use(tool string, arguments map[string]any) (texts []string, failed bool) {
	u.t.Helper()
	result, err := u.Session.CallTool(u.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(u.t, err)
	for _, c := range result.Content {
		texts = append(texts, c.(*sdk.TextContent).Text)
	}
	return texts, result.IsError
}

// Used is use, for a call that must succeed with one text.
func (u *ToolUser) Used(tool string, arguments map[string]any) string {
	u.t.Helper()
	texts, failed := u.Use(tool, arguments)
	require.False(u.t, failed, "%q", texts)
	require.Len(u.t, texts, 1)
	return texts[0]
}

// Refused is use, for a call that must fail.
func (u *ToolUser) Refused(tool string, arguments map[string]any) string {
	u.t.Helper()
	texts, failed := u.Use(tool, arguments)
	require.True(u.t, failed, "%q", texts)
	return texts[0]
}

const OneIdler = "agent \"idler\" {\n  command = [\"cat\"]\n}\n"

// KeyOf waits for an agent and issues a key for it.
func (s *Orchestrator) KeyOf(agent string) bearer {
	s.T.Helper()
	WaitFor(s.T, "the agent that runs", func() bool {
		shown, _, code := s.Call("agent", "show", agent, "--json")
		return code == 0 && strings.Contains(shown, `"state":"running"`)
	})
	var key struct {
		Key string `json:"key"`
	}
	require.NoError(s.T, json.Unmarshal([]byte(s.Ask("key", "issue", agent, "--json")), &key))
	return bearer(key.Key)
}

// bearer is a transport that adds a key.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
