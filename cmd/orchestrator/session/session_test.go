package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// evening is the time of the output about sessions.
var evening = time.Date(2026, 11, 20, 18, 0, 0, 0, time.Local)

// minutes returns the time n minutes after nine in the morning of that day.
func minutes(n int) string { return object.Timestamp(time.Date(2026, 11, 20, 9, n, 0, 0, time.Local)) }

// entry returns the n-th message of a session log. More has further members, for example members of
// the log.
func entry(n int, from, to, kind, payload string, more ...string) wire.Raw {
	members := append([]string{fmt.Sprintf(
		`"message_id":"msg-%d","timestamp":"2026-11-20T00:00:00Z","from_agent":{"agent_id":%q},"to_agent":{"agent_id":%q},`+
			`"message_type":%q,"payload":%s,"logged_at":%q`, n, from, to, kind, payload, minutes(n))}, more...)
	return wire.Raw("{" + strings.Join(members, ",") + "}")
}

// ofChain and answering return members of a message beside its payload.
func ofChain(id string) string  { return fmt.Sprintf(`"correlation_id":%q`, id) }
func answering(n int) string    { return fmt.Sprintf(`"reply_to":"msg-%d"`, n) }
func refused(why string) string { return fmt.Sprintf(`"refused":%q`, why) }

// kettle returns a session with a task that has been reviewed once.
func kettle() *sessionSeen {
	seen := &sessionSeen{SessionView: wire.SessionView{
		Spec: session.Spec{
			ID: "kettle", Validation: session.ValidationStandard, MaxIterations: 3, OnMax: session.EscalateHumanReview, RequireReview: true,
			ProgressAfter: 120_000, ProgressEvery: 30_000,
		},
		State: session.Open, Source: session.FromFile,
		Standing: []session.MemberView{
			{Member: session.Member{AgentID: "ada", AgentType: "architect"}, Status: "idle"},
			{Member: session.Member{AgentID: "dev", AgentType: "developer"}, Status: "busy", Working: 1},
			{Member: session.Member{AgentID: "rex", AgentType: "reviewer"}, Waiting: 2},
		},
		Tasks: []wire.SessionTask{
			{
				TaskID: "kettle-1", Name: "Stop when it is empty", Architect: "ada", Developer: "dev", Phase: session.PhaseRevise, State: wire.TaskRunning,
				Tries: 1, Iteration: 1, MaxIterations: 3, CorrelationID: "c-1",
				Findings: []session.FindingView{
					{ID: "k-1", Severity: "major", Category: "logic", File: "kettle/heat.go", Text: "0 is not below 0", Found: 1},
					{ID: "k-0", Severity: "minor", Category: "style", File: "kettle/lid.go", Found: 1, Fixed: 2},
				},
			},
			{
				TaskID: "lid-2", Name: "Open the lid", Architect: "ada", Developer: "dev", Phase: session.PhaseWorking, State: wire.TaskRunning,
				Progress: 0.4, Step: "Writes the test", Overdue: true, Tries: 2, MaxIterations: 3, CorrelationID: "c-2",
				Error: &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: "exit 1", SuggestedAction: session.SuggestRetry},
			},
		},
		Reviews: []session.ReviewView{{ReviewID: "r-9", TaskID: "kettle-1", Reviewer: "rex"}},
	}}
	seen.Messages = []wire.Raw{
		entry(1, "ada", "dev", "task_assignment", `{"task":{"task_id":"kettle-1","task_description":"Stop when\nit is empty \u001b[2J"},"priority":"high","dependencies":[{"depends_on":["sensor-4"],"dependency_type":"hard"}]}`, ofChain("c-1")),
		entry(2, "dev", "ada", "acknowledgment", `{}`, ofChain("c-1"), answering(1)),
		entry(3, "ada", "dev", "task_assignment", `{"task":{"task_id":"lid-2","task_description":"Open the lid"},"priority":"low"}`, ofChain("c-2")),
		entry(4, "dev", "ada", "task_progress", `{"task_id":"kettle-1","progress_percent":62.5,"current_step":"Writes the test","blockers":["no water"]}`, ofChain("c-1"), answering(1)),
		entry(5, "dev", "ada", "task_completion", `{"task_id":"kettle-1","status":"completed","changes":{"files_created":[{"path":"a.go"}],"files_modified":[{"path":"b.go"}],"files_deleted":["c.go","d.go"]},"summary":"It stops","self_review":{"tests_run":true,"tests_passed":true}}`, ofChain("c-1")),
		entry(6, "ada", "rex", "review_request", `{"review_id":"r-1","task_id":"kettle-1","scope":{"files":["a.go"],"focus_areas":["logic","security"]}}`, ofChain("c-1")),
		entry(7, "rex", "ada", "review_result", `{"review_id":"r-1","task_id":"kettle-1","verdict":"changes_requested","summary":"Nearly there","findings":[`+
			`{"finding_id":"k-2","severity":"minor","category":"style","location":{"file":"lid.go"},"description":"a name"},`+
			`{"finding_id":"k-1","severity":"major","category":"logic","location":{"file":"kettle/heat.go","line_start":17},"description":"0 is not below 0"},`+
			`{"finding_id":"k-0","severity":"major","category":"logic","location":{"file":"x.go"},"description":"old","fixed_in_iteration":1}]}`, ofChain("c-1"), answering(6)),
		entry(8, "ada", "rex", "feedback", `{"feedback_type":"question","subject":"Which one?","action_required":true,"related_task_id":"kettle-1"}`, ofChain("c-1"), answering(7)),
		entry(9, "dev", "rex", "task_completion", `{"task_id":7}`, refused("/payload/task_id: task_id must be a string"),
			`"validation_errors":["/payload/task_id: task_id must be a string","/payload/status: status is missing","/a: 1","/b: 2","/c: 3","/d: 4","/e: 5"]`),
		entry(10, "ada", "dev", "abort", `{"scope":"task","target_id":"lid-2","reason":"too late","cleanup_required":true}`, ofChain("c-2")),
		entry(11, "ada", "dev", "status_query", `{"how":"far"}`, ofChain("c-3")),
	}
	return seen
}

func logOf(t *testing.T, seen *sessionSeen) *sessionLog {
	t.Helper()
	log, err := readLog(seen)
	require.NoError(t, err)
	return log
}

func TestSessionCard(t *testing.T) {
	v := &kettle().SessionView
	require.Equal(t, `kettle  open
  from      the file
  messages  standard: common omissions are accepted
  reviews   a task is done when it is approved; 3 at most, then human_review
  progress  of a task that takes longer than 2m0s, every 30s
`, sessionCard(v, false))
	require.Equal(t, `MEMBER  TYPE       STATUS  WAITING  AT
ada     architect  idle          0  kettle-1 revise
dev     developer  busy          0  lid-2 working 40%
rex     reviewer   -             2  r-9 of kettle-1
`, membersTable(v, false))
}

// The log shows messages in chains, with answers below their message. Control sequences in
// messages are escaped.
func TestSessionLog(t *testing.T) {
	require.Equal(t, strings.TrimPrefix(`
kettle-1  Stop when it is empty  revise  iteration 1 of 3  by dev
chain c-1
  09:01:00  ada -> dev        task_assignment  high  Stop when it is empty \x1b[2J  after sensor-4
  09:02:00  └─ dev -> ada     acknowledgment
  09:04:00  └─ dev -> ada     task_progress    62.5%  Writes the test  blocked: no water
  09:05:00  dev -> ada        task_completion  completed  4 files: +a.go, b.go, -c.go, …  tests passed  It stops
  09:06:00  ada -> rex        review_request   r-1  1 file: a.go  look at logic, security
  09:07:00  └─ rex -> ada     review_result    changes_requested  1 major, 1 minor, 1 fixed  Nearly there
                                               major  logic  k-1  kettle/heat.go:17  0 is not below 0
                                               minor  style  k-2  lid.go  a name
  09:08:00     └─ ada -> rex  feedback         question, action required  Which one?
  open findings
    major  k-1  kettle/heat.go  since iteration 1  0 is not below 0
  1 finding is fixed

lid-2  Open the lid  working  iteration 0 of 3  by dev  40% Writes the test  try 2  overdue: no progress was reported
chain c-2
  09:03:00  ada -> dev        task_assignment  low  Open the lid
  09:10:00  ada -> dev        abort            task lid-2  too late (to be cleaned up)
  error exception: exit 1 (retry)

of no chain
  09:09:00  dev -> rex        task_completion  refused: /payload/task_id: task_id must be a string
                                               /payload/status: status is missing
                                               /a: 1
                                               /b: 2
                                               /c: 3
                                               and 2 more: --json

chain c-3
  09:11:00  ada -> dev        status_query     {"how":"far"}
`, "\n"), logOf(t, kettle()).draw(false, evening, 0))
}

// Only message texts are cut to the width of the screen.
func TestSessionLogIsCut(t *testing.T) {
	for line := range strings.Lines(logOf(t, kettle()).draw(false, evening, 90)) {
		if strings.HasPrefix(line, "  09:") {
			require.LessOrEqual(t, term.Width(strings.TrimSuffix(line, "\n")), 90, line)
		}
	}
	narrow := logOf(t, kettle()).draw(false, evening, 20)
	require.Contains(t, narrow, "completed  4 files: +a.go, b.…\n", "something is shown on any screen")
}

// Color is only decoration: without it the text is the same.
func TestSessionLogInColour(t *testing.T) {
	seen := kettle()
	painted := sessionCard(&seen.SessionView, true) + membersTable(&seen.SessionView, true) + logOf(t, seen).draw(true, evening, 0)
	plain := sessionCard(&seen.SessionView, false) + membersTable(&seen.SessionView, false) + logOf(t, seen).draw(false, evening, 0)
	require.NotEqual(t, plain, painted)
	for _, code := range []string{"1;31", "1", "2", "32", "33"} {
		require.Contains(t, painted, "\x1b["+code+"m")
		painted = strings.ReplaceAll(painted, "\x1b["+code+"m", "")
	}
	require.Equal(t, plain, strings.ReplaceAll(painted, "\x1b[0m", ""))
}

// Tasks that share a chain are shown separately. An open task is shown even if it has no recent
// messages.
func TestSessionLogOfTasksTogether(t *testing.T) {
	seen := kettle()
	seen.Tasks[1].CorrelationID = "c-1"
	seen.Tasks = append(seen.Tasks,
		wire.SessionTask{TaskID: "old-1", Name: "Silent", Developer: "dev", Phase: session.PhaseHeld, CorrelationID: "c-8", MaxIterations: 3},
		wire.SessionTask{TaskID: "old-2", Name: "Past", Phase: session.PhaseOver, State: wire.TaskDone, CorrelationID: "c-9"},
	)
	seen.Messages = seen.Messages[:2]
	require.Equal(t, `kettle-1  Stop when it is empty  revise  iteration 1 of 3  by dev
lid-2  Open the lid  working  iteration 0 of 3  by dev  40% Writes the test  try 2  overdue: no progress was reported
chain c-1
  09:01:00  ada -> dev     task_assignment  kettle-1: high  Stop when it is empty \x1b[2J  after sensor-4
  09:02:00  └─ dev -> ada  acknowledgment
  open findings
    major  k-1  kettle/heat.go  since iteration 1  0 is not below 0
  1 finding is fixed
  error exception: exit 1 (retry)

old-1  Silent  held  iteration 0 of 3  by dev
chain c-8
  none of its messages are shown here
`, logOf(t, seen).draw(false, evening, 0))
}

// An answer to a later message or to itself causes no endless loop, and deeply nested answers
// stay on the screen.
func TestSessionLogOfOddAnswers(t *testing.T) {
	seen := &sessionSeen{}
	seen.Messages = []wire.Raw{
		entry(1, "a", "b", "feedback", `{}`, ofChain("c"), answering(2)),
		entry(2, "b", "a", "feedback", `{}`, ofChain("c"), answering(2)),
		entry(1, "a", "b", "feedback", `{}`, ofChain("c"), answering(1)),
	}
	for n := 3; n < 50; n++ {
		seen.Messages = append(seen.Messages, entry(n, "a", "b", "feedback", `{}`, ofChain("c"), answering(n-1)))
	}
	lines := strings.Split(logOf(t, seen).draw(false, evening, 0), "\n")
	require.Len(t, lines, 1+50+1)
	for _, line := range lines {
		require.LessOrEqual(t, term.Width(line), 60)
	}
}

// A refused message may have any content. It is shown as far as it can be read.
func TestSessionLogOfNonsense(t *testing.T) {
	seen := &sessionSeen{}
	for _, odd := range []string{
		`"message_id":7,"message_type":null,"from_agent":"x","to_agent":[],"reply_to":{},"correlation_id":1,"payload":"no"`,
		`"message_type":"task_assignment","payload":{"task":7,"priority":["high"]}`,
		`"message_type":"review_result","from_agent":{"agent_id":"rex"},"payload":{"verdict":1,"findings":{"a":1}}`,
		`"message_type":"task_progress","message_type":"abort","from_agent":{"agent_id":"dev"}`,
		`"message_type":"\u001b[2J","payload":{"a":1,"a":2}`,
	} {
		seen.Messages = append(seen.Messages, wire.Raw(`{`+odd+`,"logged_at":"`+minutes(1)+`","log_seq":1,"processing_duration_ms":0.1,"refused":"no"}`))
	}
	require.Equal(t, `of no chain
  09:01:00  ? -> ?    ?                refused: no
  09:01:00  ? -> ?    task_assignment  refused: no
  09:01:00  rex -> ?  review_result    refused: no
  09:01:00  dev -> ?  ?                refused: no
  09:01:00  ? -> ?    \x1b[2J          refused: no
`, logOf(t, seen).draw(false, evening, 0))
}

func TestSessionRows(t *testing.T) {
	require.Equal(t, `NAME    STATE   MEMBERS                    TASKS  REVIEWS  MESSAGES  REFUSED
kettle  open    1 architect, 2 developers    1/3        1        40        2
\x1bod  closed  no member                    0/0        0         0        0
`, term.Table(sessionRows([]session.Brief{
		{
			ID: "kettle", State: session.Open, Open: 1, Tasks: 3, Reviews: 1, Messages: 40, Refused: 2,
			Members: []session.Member{{AgentID: "dev", AgentType: "developer"}, {AgentID: "ada", AgentType: "architect"}, {AgentID: "eve", AgentType: "developer"}},
		},
		{ID: "\x1bod", State: session.Closed},
	}, false)))
}

// A refusal shows every mistake with its place.
func TestSessionProblems(t *testing.T) {
	f := cli.FailureOf(cli.Problems(&cli.Failure{Message: "m", Details: map[string]any{"pointer": "/a", "errors": []any{
		map[string]any{"pointer": "/a", "message": "a is missing"}, map[string]any{"pointer": "", "message": "it is odd"}, 7,
	}}}))
	require.Equal(t, []string{"/a: a is missing", "it is odd"}, f.Because)
	f = cli.FailureOf(cli.Problems(&cli.Failure{Message: "m", Details: map[string]any{"pointer": "/payload/verdict"}}))
	require.Equal(t, []string{"At /payload/verdict"}, f.Because)
	f = cli.FailureOf(cli.Problems(&cli.Failure{Message: "m", Details: map[string]any{"pointer": "/payload/message/payload/verdict"}}))
	require.Equal(t, []string{"At /payload/verdict"}, f.Because, "it is the message that was written")
	require.NoError(t, cli.Problems(nil))
}

func kettleReviews(t *testing.T) []reviewSeen {
	t.Helper()
	found, err := readReviews([]byte(strings.NewReplacer("ASKED", minutes(6), "DECIDED", minutes(7), "LATER", minutes(8*60)).Replace(`{"reviews":[
{"review_id":"r-1","session_id":"kettle","task_id":"kettle-1","reviewer":"rex","iteration":1,"verdict":"changes_requested","requested_at":"ASKED","decided_at":"DECIDED","findings":["k-1","k-0","k-7"]},
{"review_id":"r-2","session_id":"kettle","task_id":"kettle-1","reviewer":"rex","iteration":2,"requested_at":"LATER","findings":[]},
{"review_id":"r-1","session_id":"other","task_id":"\u001bx","reviewer":"ann","iteration":1,"verdict":"approved","requested_at":"LATER","findings":[]}]}`)))
	require.NoError(t, err)
	return found
}

func TestReviewRows(t *testing.T) {
	require.Equal(t, `ID   SESSION  TASK      REVIEWER  ITERATION  VERDICT            FINDINGS  ASKED
r-1  kettle   kettle-1  rex               1  changes_requested         3  8h54m ago
r-2  kettle   kettle-1  rex               2  open                      -  1h00m ago
r-1  other    \x1bx     ann               1  approved                  0  1h00m ago
`, term.Table(reviewRows(kettleReviews(t), false, evening)))
}

func TestReviewCard(t *testing.T) {
	all := kettleReviews(t)
	task := &kettle().Tasks[0]
	require.Equal(t, `r-1  changes_requested
  session    kettle
  task       kettle-1  Stop when it is empty  revise
  reviewer   rex
  iteration  1 of 3
  asked      09:06:00
  decided    09:07:00 after 1m
  summary    Nearly there
             and more

FINDING  SEVERITY  CATEGORY  FILE            STATE                   WHAT
k-1      major     logic     kettle/heat.go  open since iteration 1  0 is not below 0
k-0      minor     style     kettle/lid.go   fixed in iteration 2
k-7      -         -         -               open
`, reviewCard(&all[0], task, "Nearly there\nand more", findingsOf(&all[0], task, nil), false, evening))
	require.Equal(t, `r-2  open
  session    kettle
  task       kettle-1
  reviewer   rex
  iteration  2
  asked      17:00:00
`, reviewCard(&all[1], &wire.SessionTask{TaskID: "kettle-1"}, "", nil, false, evening))
}

func TestReviewOf(t *testing.T) {
	all := kettleReviews(t)
	r, err := reviewOf(all, "r-2")
	require.NoError(t, err)
	require.Equal(t, 2, r.Iteration)
	for word, want := range map[string]string{
		"r-1": `"r-1" matches 2 reviews: r-1 of kettle, r-1 of other`,
		"r-":  `"r-" matches 3 reviews: r-1 of kettle, r-2 of kettle, r-1 of other`,
		"x":   `no review id begins with "x"`,
	} {
		_, err = reviewOf(all, word)
		require.EqualError(t, err, want)
		require.Equal(t, cli.ExitNotFound, cli.FailureOf(err).Exit)
	}
	r, err = reviewOf(all[1:], "r-1")
	require.NoError(t, err)
	require.Equal(t, "other", r.SessionID)
	_, err = reviewOf(all, "s-2")
	require.Equal(t, []string{`Did you mean "r-2"?`}, cli.FailureOf(err).Because)
}
