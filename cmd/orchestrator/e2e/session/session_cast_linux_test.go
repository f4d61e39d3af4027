package session

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Tests of sessions as their members see them. Members are agents made with the SDK, and scripted agents
// that the tests control.

// builtMembers builds the member programs when first used. They are next to the links to this
// binary and are deleted with them.
var builtMembers = sync.OnceValues(func() (string, error) {
	this, err := exec.LookPath("orchestrator")
	if err != nil {
		return "", err
	}
	folder := filepath.Join(filepath.Dir(filepath.Dir(this)), "members")
	build := exec.Command("go", "build", "-o", folder+"/", "orchestrator/fixtures/architect", "orchestrator/fixtures/developer", "orchestrator/fixtures/reviewer")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the members: %w\n%s", err, text)
	}
	return folder, nil
})

// playing returns an agent that runs a member program, such as "developer -slow 1s", behind a
// tap. The stage needs the tap as a file.
func playing(t *testing.T, name, program string, more ...string) string {
	t.Helper()
	return running(t, name, true, program, more...)
}

// untapped is playing without the tap.
func untapped(t *testing.T, name, program string, more ...string) string {
	t.Helper()
	return running(t, name, false, program, more...)
}

func running(t *testing.T, name string, tapped bool, program string, more ...string) string {
	t.Helper()
	folder, err := builtMembers()
	require.NoError(t, err)
	command := strings.Fields(program)
	command[0] = filepath.Join(folder, command[0])
	if tapped {
		command = append([]string{"sh", "tap.sh", name}, command...)
	}
	list, err := json.Marshal(command)
	require.NoError(t, err)
	return fmt.Sprintf("\nagent %q {\n  command = %s\n%s\n}\n", name, list, strings.Join(more, "\n"))
}

// once makes an agent run only once.
const once = `  restart {
    policy = "never"
  }`

// sessionOf returns a session block with some lines and members such as "ann=developer".
func sessionOf(name, lines string, members ...string) string {
	hcl := fmt.Sprintf("\nsession %q {\n%s\n", name, lines)
	for _, m := range members {
		agent, kind, _ := strings.Cut(m, "=")
		hcl += fmt.Sprintf("  member %q { type = %q }\n", agent, kind)
	}
	return hcl + "}\n"
}

// newSession makes a stage that has the tap.
func newSession(t *testing.T, hcl string) *stage.Orchestrator {
	t.Helper()
	return stage.New(t, stage.QuickStop+hcl, "tap.sh", stage.Tap)
}

// An utterance is a session message, from the log or from a line.
type utterance struct {
	MessageID string                `json:"message_id"`
	Type      string                `json:"message_type"`
	From      session.Agent         `json:"from_agent"`
	To        session.Agent         `json:"to_agent"`
	Sequence  int64                 `json:"sequence_number"`
	Chain     string                `json:"correlation_id"`
	ReplyTo   string                `json:"reply_to"`
	Payload   json.RawMessage       `json:"payload"`
	LoggedAt  string                `json:"logged_at"`
	TookMS    *float64              `json:"processing_duration_ms"`
	Errors    []string              `json:"validation_errors"`
	LogSeq    int64                 `json:"log_seq"`
	Refused   string                `json:"refused"`
	text      string                // the unparsed text
	body      struct{ utteredBody } // members of its payload
}

// utteredBody has the members of payloads that tests look at.
type utteredBody struct {
	TaskID   string  `json:"task_id"`
	ReviewID string  `json:"review_id"`
	Status   string  `json:"status"`
	Verdict  string  `json:"verdict"`
	Summary  string  `json:"summary"`
	Percent  float64 `json:"progress_percent"`
	Task     struct {
		TaskID  string `json:"task_id"`
		Context struct {
			Attempts []struct {
				Number   int    `json:"attempt_number"`
				Outcome  string `json:"outcome"`
				Feedback string `json:"feedback"`
			} `json:"previous_attempts"`
		} `json:"context"`
	} `json:"task"`
	Findings []struct {
		ID    string `json:"finding_id"`
		Fixed int    `json:"fixed_in_iteration"`
	} `json:"findings"`
}

// task returns the task that a message is about.
func (u *utterance) task() string {
	if u.body.Task.TaskID != "" {
		return u.body.Task.TaskID
	}
	return u.body.TaskID
}

func (u *utterance) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s>%s %s %s%s", u.From.AgentID, u.To.AgentID, u.Type, u.body.Verdict, u.body.Status))
}

func readUtterance(t *testing.T, text string) utterance {
	t.Helper()
	u := utterance{text: text}
	require.NoError(t, json.Unmarshal([]byte(text), &u), "%.300s", text)
	_ = json.Unmarshal(u.Payload, &u.body) // a refused message may have any payload
	return u
}

// proceedings is a session as JSON output shows it.
type proceedings struct {
	State    string               `json:"state"`
	More     bool                 `json:"more"`
	Reason   string               `json:"reason"`
	Standing []session.MemberView `json:"standing"`
	Tasks    []wire.SessionTask   `json:"tasks"`
	Reviews  []session.ReviewView `json:"reviews"`
	Texts    []json.RawMessage    `json:"messages"`
	said     []utterance          // the decoded messages
	of       map[string][]string  // their types and verdicts, by task
}

func proceedingsOf(s *stage.Orchestrator, sessionID string) *proceedings {
	s.T.Helper()
	return readProceedings(s.T, s.Ask("session", "show", sessionID, "--json"))
}

func readProceedings(t *testing.T, text string) *proceedings {
	t.Helper()
	p := &proceedings{of: make(map[string][]string)}
	require.NoError(t, json.Unmarshal([]byte(text), p))
	var last int64
	for _, text := range p.Texts {
		u := readUtterance(t, string(text))
		require.Greater(t, u.LogSeq, last, "they are in order")
		last = u.LogSeq
		require.Regexp(t, stage.TimePattern, u.LoggedAt)
		require.NotNil(t, u.TookMS)
		require.GreaterOrEqual(t, *u.TookMS, 0.0)
		p.said = append(p.said, u)
		if task := u.task(); u.Refused == "" {
			p.of[task] = append(p.of[task], strings.TrimSpace(u.Type+" "+u.body.Verdict+u.body.Status))
		}
	}
	return p
}

// task returns a task of a session.
func (p *proceedings) task(t *testing.T, id string) *wire.SessionTask {
	t.Helper()
	for i := range p.Tasks {
		if p.Tasks[i].TaskID == id {
			return &p.Tasks[i]
		}
	}
	require.Fail(t, "no task "+id)
	return nil
}

// one returns the only message of a type to an agent.
func (p *proceedings) one(t *testing.T, kind, to string) *utterance {
	t.Helper()
	var found []*utterance
	for i := range p.said {
		if u := &p.said[i]; u.Type == kind && u.To.AgentID == to {
			found = append(found, u)
		}
	}
	require.Len(t, found, 1, "%s for %s", kind, to)
	return found[0]
}

// types returns the types of messages, in order.
func types(said []utterance) (all []string) {
	for i := range said {
		all = append(all, said[i].String())
	}
	return all
}

// tapped returns the messages of a session in a file of a tap.
func tapped(s *stage.Orchestrator, file string) (found []utterance) {
	s.T.Helper()
	text, err := os.ReadFile(s.Path(file))
	require.NoError(s.T, err)
	for line := range strings.Lines(string(text)) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole || !strings.Contains(line, `"message_type":`) {
			continue
		}
		if u := readUtterance(s.T, line); u.Type != "" { // otherwise an answer that contains messages
			found = append(found, u)
		}
	}
	return found
}

// requireHeard requires that each tapped agent has received exactly the log's messages to it, in
// the same order and as another tapped agent has sent them.
func requireHeard(s *stage.Orchestrator, p *proceedings, names ...string) {
	s.T.Helper()
	lines := make(map[string]string)
	for _, name := range names {
		for _, u := range tapped(s, name+".said") {
			lines[u.MessageID] = u.text
		}
	}
	for _, name := range names {
		var logged, heard []string
		for _, u := range p.said {
			if u.To.AgentID == name && u.Refused == "" {
				logged = append(logged, u.MessageID)
			}
		}
		for _, u := range tapped(s, name+".heard") {
			if slices.Contains(heard, u.MessageID) {
				continue // a repeat, for example after a crash
			}
			heard = append(heard, u.MessageID)
			require.Equal(s.T, lines[u.MessageID], u.text, "%s to %s", u.Type, name)
		}
		require.Equal(s.T, logged, heard, "what %s hears", name)
	}
}

// logEntry returns the log entry of a line, with the log's own members taken from entry.
func logEntry(t *testing.T, entry, line string) string {
	t.Helper()
	var logged, said map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(entry), &logged))
	require.NoError(t, json.Unmarshal([]byte(line), &said))
	for _, key := range []string{"logged_at", "processing_duration_ms", "log_seq", "validation_errors", "said_by"} {
		if value, there := logged[key]; there {
			said[key] = value
		}
	}
	text, err := json.Marshal(said)
	require.NoError(t, err)
	return string(text)
}

// Messages that scripted agents send and receive in sessions.

// assigning returns the payload of an assignment with the scope src/**.
func assigning(task string) string {
	return fmt.Sprintf(`{"priority":"low","task":{"task_id":%q,"task_description":"Do %[1]s","context":{"specs":[],"reference_files":[]},`+
		`"constraints":{"scope":["src/**"],"testing_required":false,"must_not_break":[]},"acceptance_criteria":["done"]}}`, task)
}

// reviewing returns the payload of a review request, with the number of previous reviews.
func reviewing(review, task string, before int, more ...string) string {
	var list []string
	for n := range before {
		list = append(list, fmt.Sprintf(`{"review_number":%d,"verdict":"changes_requested","key_findings":[]}`, n+1))
	}
	criteria := append([]string{`"must_pass_tests":true,"must_pass_type_check":true`}, more...)
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"scope":{"files":["src/a"],"focus_areas":["logic"]},"criteria":{%s},`+
		`"context":{"task_description":"it","acceptance_criteria":[],"previous_reviews":[%s]}}`, review, task, strings.Join(criteria, ","), strings.Join(list, ","))
}

// completing returns the payload of a completion that has changed some files.
func completing(task string, files ...string) string {
	var list []string
	for _, file := range files {
		list = append(list, fmt.Sprintf(`{"path":%q,"change_type":"modified"}`, file))
	}
	return fmt.Sprintf(`{"task_id":%q,"status":"completed","changes":{"files_created":[],"files_modified":[%s],"files_deleted":[]},"summary":"It is so",`+
		`"self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}}`, task, strings.Join(list, ","))
}

// judging returns the payload of a review result with major findings.
func judging(review, task, verdict string, findings ...string) string {
	var list []string
	for _, id := range findings {
		list = append(list, fmt.Sprintf(`{"finding_id":%q,"severity":"major","category":"logic","location":{"file":"src/a"},"description":"odd","rationale":"it is"}`, id))
	}
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"verdict":%q,"findings":[%s],"summary":"seen",`+
		`"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}}}`, review, task, verdict, strings.Join(list, ","))
}

// remark returns the payload of a feedback, which any member may send.
func remark(words string) string {
	return fmt.Sprintf(`{"feedback_type":"guidance","subject":"s","content":%q,"action_required":false}`, words)
}

const ending = `{"scope":"session","target_id":"checkout","reason":"enough","cleanup_required":true}`

// utter sends a message of the session.
func utter(a *stage.Agent, id, to, kind, payload string) {
	a.T.Helper()
	a.Say(speech(id, a.Name, to, kind, payload) + "\n")
}

// spoken returns the session messages that a scripted agent has received, of one type or, for "", of
// all.
func spoken(a *stage.Agent, kind string) (found []utterance) {
	a.T.Helper()
	for _, m := range a.All() {
		if u := readUtterance(a.T, m.Line); u.Type != "" && (kind == "" || u.Type == kind) {
			found = append(found, u)
		}
	}
	return found
}

// nth waits for the nth message of a type.
func nth(a *stage.Agent, n int, kind string) utterance {
	a.T.Helper()
	stage.WaitFor(a.T, fmt.Sprintf("%d. %s for %s", n, kind, a.Name), func() bool { return len(spoken(a, kind)) >= n })
	return spoken(a, kind)[n-1]
}

// undelivered is the notice that a message was not delivered.
type undelivered struct {
	ID      string `json:"original_message_id"`
	Type    string `json:"error_type"`
	Retries int    `json:"retry_count"`
	Most    int    `json:"max_retries"`
	Next    string `json:"next_retry_at"`
	Pointer string `json:"pointer"`
	Reason  string `json:"reason"`
	To      string `json:"to_agent"`
	Scope   []string
	Errors  []object.Problem

	message string
	code    string
}

func undeliveredIn(m *stage.Message, t *testing.T) undelivered {
	t.Helper()
	require.NotNil(t, m.Error, m.Line)
	text, err := json.Marshal(m.Error.Details)
	require.NoError(t, err)
	u := undelivered{message: m.Error.Message, code: m.Error.Code}
	require.NoError(t, json.Unmarshal(text, &u), "%s", text)
	return u
}

// refusedFor waits until a message is refused.
func refusedFor(a *stage.Agent, id string) undelivered {
	a.T.Helper()
	m := a.Answer(id)
	require.Equal(a.T, "response:error", m.Type)
	u := undeliveredIn(&m, a.T)
	require.Equal(a.T, id, u.ID)
	return u
}

// checkout returns a session of the agents that speech knows.
func checkout(lines string) string {
	return sessionOf("checkout", lines, "ada=architect", "dev=developer", "rex=reviewer")
}

// waitForPhase waits until the task t of the session checkout is in a phase.
func waitForPhase(s *stage.Orchestrator, phase string) *proceedings {
	s.T.Helper()
	var p *proceedings
	stage.WaitFor(s.T, "t "+phase, func() bool {
		p = proceedingsOf(s, "checkout")
		for i := range p.Tasks {
			if p.Tasks[i].TaskID == "t" && p.Tasks[i].Phase == phase {
				return true
			}
		}
		return false
	})
	return p
}
