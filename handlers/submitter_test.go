package handlers

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// submitterPage has a table of the messages that the submitter of a task hears, by the event and
// the protocol of its submission.
const submitterPage = "../cmd/orchestrator/help/submitters.md"

// submissions has the columns of the table: how the task job is submitted to the agent dev, which
// has not been started yet. In A, an operator submits it and polls it. In E, the holder of GO polls its mail.
var submissions = []struct{ column, script string }{
	{"A", `> operator s hub:submit-task {"title":"job","spec":"s","requirements":{"languages":["go"]}}`},
	{"B", `> boss s submit-task {"type":"job","name":"job","requiredRole":"worker"}`},
	{"C", `say boss dev msg-1 task_assignment says=job`},
	{"D", `request boss job-1 job`},
	{"E", `> boss s submit-task {"type":"job","name":"job","requiredRole":"worker"}`},
}

// A taskEvent is a row of the table. The submitter is observed from the line "--" of its script on.
type taskEvent struct {
	row     string
	script  string
	in      map[string]string // other scripts, by column; "" if the event does not occur there
	refused bool              // its agent gets an error
}

const (
	startJob = "start dev\n" + `> dev 1 start-task {"taskId":"$job"}` + "\n"
	askHelp  = `> dev 2 request-help {"taskId":"$job","question":"How?"}`
	jobDone  = `> dev 3 complete-task {"taskId":"$job","result":"r"}`
	jobFails = `> dev 3 fail-task {"taskId":"$job","error":"no"}`

	// of a session
	acknowledged = "start dev\nsay dev boss msg-2 acknowledgment reply=msg-1\n"
)

// onExit sets on_exit of the agent dev.
func onExit(word string) string { return "agents: boss(planner) dev(worker; job; 1; " + word + ")\n" }

var taskEvents = []taskEvent{
	{row: "assigned", script: "--\nstart dev"},
	{row: "started", script: "start dev\n--\n" + `> dev 1 start-task {"taskId":"$job"}`, in: map[string]string{
		"C": "start dev\n--\nsay dev boss msg-2 acknowledgment reply=msg-1",
		"D": "start dev\n--\nrespond dev job-1 in_progress",
	}},
	{row: "started in another protocol", script: "", in: map[string]string{
		"C": "start dev\n--\n" + `> dev 1 start-task {"taskId":"$job"}`,
		"D": "start dev\n--\n" + `> dev 1 start-task {"taskId":"$job"}`,
	}},
	{row: "progress", script: startJob + "--\n" + `> dev event:progress {"taskId":"$job","progress":0.5,"message":"half"}`, in: map[string]string{
		"C": acknowledged + "--\nsay dev boss msg-3 task_progress",
		"D": "start dev\nrespond dev job-1 in_progress\n--\nrespond dev job-1 in_progress message=half",
	}},
	{row: "progress in another protocol", script: "", in: map[string]string{
		"C": acknowledged + "--\n" + `> dev event:progress {"taskId":"$job","progress":0.5,"message":"half"}`,
		"D": startJob + "--\n" + `> dev event:progress {"taskId":"$job","progress":0.5,"message":"half"}`,
	}},
	{row: "its agent asks for help", script: startJob + "--\n" + askHelp},
	{row: "a person answers", script: startJob + askHelp + "\n--\n" + `> operator 4 answer-question {"questionId":"q1","answer":"so"}`},
	{row: "a question of its agent times out", refused: true,
		script: startJob + `> dev 2 ask-user {"question":"How?","timeout":5000}` + "\n--\nwait"},
	{row: "completed", script: startJob + "--\n" + jobDone, in: map[string]string{
		"C": acknowledged + "--\nsay dev boss msg-3 task_completion",
		"D": "start dev\n--\nrespond dev job-1 completed result=1",
	}},
	{row: "completed in another protocol", script: "", in: map[string]string{
		"C": acknowledged + "--\n" + `> operator 3 complete-task {"taskId":"$job"}`,
		"D": startJob + "--\n" + jobDone,
	}},
	{row: "its completion is refused", refused: true, script: startJob + "--\n" + `> dev 3 complete-task {"taskId":"$job","result":{"$schema":"task-result/v1"}}`, in: map[string]string{
		"C": acknowledged + "--\nsay dev boss msg-3 task_completion status=fine",
		"D": startJob + "--\nrespond dev job-1 done",
	}},
	{row: "a verify command fails", script: startJob + "checked verifying $job\n--\nchecked unverified $job"},
	{row: "failed", script: startJob + "--\n" + jobFails, in: map[string]string{
		"C": acknowledged + "--\nsay dev boss msg-3 task_completion status=failed",
		"D": "start dev\n--\nrespond dev job-1 failed code=X says=no",
	}},
	{row: "failed in another protocol", script: "", in: map[string]string{
		"C": acknowledged + "--\n" + `> operator 3 fail-task {"taskId":"$job","error":"no"}`,
		"D": startJob + "--\n" + jobFails,
	}},
	{row: "its agent sends `task.failed`", script: startJob + "--\n" +
		`> dev 3 send-message {"to_actor":"GO","topic":"task.failed","payload":{"task_id":"$job","error_code":"MCP_NOT_CONNECTED"}}`},
	{row: "cancelled by a person", script: startJob + "--\n" + `> operator 3 cancel-task {"taskId":"$job"}`},
	{row: "a needed task fails", script: `> operator 3 submit-task {"type":"t","name":"first"}` + "\n" +
		`> operator 4 add-dependency {"taskId":"$job","dependsOnTaskId":"$first"}` + "\n--\n" + `> operator 5 cancel-task {"taskId":"$first"}`, in: map[string]string{"C": ""}},
	{row: "its agent ends and the task is requeued", script: onExit("requeue") + startJob + "--\nexit dev 1", in: map[string]string{
		"C": acknowledged + "--\nexit dev 1",
	}},
	{row: "its agent ends and the task fails", script: onExit("fail") + startJob + "--\nexit dev 1", in: map[string]string{
		"C": acknowledged + "takes dev\nexit dev 1\nstart dev\ntakes dev\nsay dev boss msg-3 task_progress\n--\nexit dev 1",
	}},
	{row: "returned by its agent", script: startJob + "--\n" + `> dev 3 return-task {"taskId":"$job","reason":"limit"}`, in: map[string]string{"C": ""}},
	{row: "retried by a person", script: startJob + jobFails + "\n--\n" + `> operator 4 retry-task {"taskId":"$job"}`, in: map[string]string{"C": "", "D": ""}},
	{row: "retried automatically after a failure", script: "", in: map[string]string{
		"D": "rules: retries=1\nstart dev\n--\nrespond dev job-1 failed code=X says=no recoverable=true",
	}},
	{row: "its branch is merged", script: "rules: queue=true\nstart dev\n" + `> dev 1 start-task {"taskId":"$job"}` + "\nchecked workspace $job\n" + jobDone + "\n--\nchecked merged $job", in: map[string]string{
		"C": "rules: queue=true\n" + acknowledged + "checked workspace $job\nsay dev boss msg-3 task_completion\n--\nchecked merged $job",
	}},
	{row: "its branch is refused", script: "rules: queue=true\nstart dev\n" + `> dev 1 start-task {"taskId":"$job"}` + "\nchecked workspace $job\n" + jobDone + "\n--\nchecked unmerged $job", in: map[string]string{
		"C": "rules: queue=true\n" + acknowledged + "checked workspace $job\nsay dev boss msg-3 task_completion\n--\nchecked unmerged $job",
	}},
}

// TestSubmittersHearWhatTheManualSays plays each event for each submitter. The messages that reach it equal the table.
//
// Rows: K-01, K-22, K-25.
func TestSubmittersHearWhatTheManualSays(t *testing.T) {
	page, err := os.ReadFile(submitterPage)
	require.NoError(t, err)
	var played strings.Builder
	for _, e := range taskEvents {
		played.WriteString("| " + e.row + " |")
		for _, s := range submissions {
			script, other := e.in[s.column]
			if !other {
				script = e.script
			}
			played.WriteString(" " + heardBySubmitter(t, s.column, s.script, &e, script) + " |")
		}
		played.WriteString("\n")
	}
	table := submitterTable.FindStringSubmatch(string(page))
	require.NotNil(t, table, "%s has the table", submitterPage)
	require.Equal(t, table[1], played.String(), "the left is the manual, the right what submitters hear")
}

// submitterTable matches the table, up to its rows, and the rows.
var submitterTable = regexp.MustCompile(`(?m)^\| Event \|.*\n(?:\|---){6}\|\n((?:^\| .*\n)+)`)

// heardBySubmitter plays a script and returns the messages to the submitter of its task from the line "--" on.
func heardBySubmitter(t *testing.T, column, submit string, e *taskEvent, script string) string {
	if script == "" {
		return "-"
	}
	p := newPlayer(t)
	var setup []string
	if column == "C" {
		setup = append(setup, "session shop architect=boss developer=dev")
	}
	setup = append(setup, `able dev {"languages":["go"]}`, "agents: boss(planner) dev(worker; job)", "up", "start boss", submit)
	for _, line := range setup {
		p.play(line)
	}
	before, event, _ := strings.Cut(script, "--\n")
	for line := range strings.Lines(before) {
		came := p.play(strings.TrimSuffix(line, "\n"))
		require.NotContains(t, came, "response:error", "%s: %s", column, line)
	}
	mailed := len(p.records)
	var lines strings.Builder
	for line := range strings.Lines(event) {
		lines.WriteString(p.play(strings.TrimSuffix(line, "\n")))
	}
	refusals := strings.Count(lines.String(), "response:error")
	require.Equal(t, e.refused, refusals == 1, "%s %s: %s", column, e.row, lines.String())
	var words []string
	switch column {
	case "A":
		k := p.task("job")
		require.NotNil(t, k)
		words = append(words, k.View.State.Hub())
	case "E":
		words = p.mailOfGO(mailed)
	default:
		for _, found := range submitterHears.FindAllStringSubmatch(lines.String(), -1) {
			words = append(words, found[1]+found[2]+found[3])
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// submitterHears matches messages to the agent boss: a notice, a response to a delegated task, or a session message.
var submitterHears = regexp.MustCompile(`(?m)^ +boss <(?:- (notify:[a-z-]+)|= (?:kept \d+ )?response job-1 (\w+)|= (?:kept \d+ )?(\w+_\w+|acknowledgment|feedback) )`)

// mailOfGO returns the topics of the mail to GO after a record.
func (p *player) mailOfGO(after int) (topics []string) {
	p.out.Reset()
	p.speak(`operator poll poll-messages {"actor":"GO"}`)
	_, answer, _ := strings.Cut(p.out.String(), "response:success poll ")
	var got struct {
		Messages []struct {
			Seq   int    `json:"seq"`
			Topic string `json:"topic"`
		} `json:"messages"`
	}
	require.NoError(p.t, json.Unmarshal([]byte(answer), &got))
	for _, m := range got.Messages {
		if m.Seq > after && !strings.HasPrefix(m.Topic, "agent.") { // about no task
			topics = append(topics, m.Topic)
		}
	}
	return topics
}
