package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/browser"
)

// hostile is text that an agent may write anywhere.
const hostile = "<img src=x onerror=\"document.title='hacked'\"> \x1b[31mred \u202eback"

// harmless is hostile as a page shows it.
const harmless = `<img src=x onerror="document.title='hacked'"> \x1b[31mred \u202eback`

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// patch has two files, with hostile names and lines.
const patch = "diff --git a/" + hostile + " b/" + hostile + "\n--- a/" + hostile + "\n+++ b/" + hostile + "\n@@ -7,3 +7,4 @@\n same\n-old " + hostile + "\n--- not a head\n+new " + hostile + "\n+++ not a head\n+third\n" +
	"diff --git a/empty b/empty\nnew file mode 100644\n"

// A fakeTeam answers as an orchestrator does, with hostile texts.
type fakeTeam struct {
	role string

	mu        sync.Mutex
	signedIn  bool
	questions []map[string]any
	answers   []string
	tasks     []map[string]any // instead of the usual one
	agents    []string         // more of them
	given     map[string]any   // answers of operations, instead of the usual ones
	events    []map[string]any
	mails     []map[string]any
	retried   []string
	streams   []string // the header Last-Event-ID of each
	cut       chan struct{}
}

func (f *fakeTeam) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Security-Policy", policy)
	switch operation, isOperation := strings.CutPrefix(r.URL.Path, "/api/v1/operations/"); {
	case strings.HasPrefix(r.URL.Path, "/ui/assets/"):
		http.ServeFile(w, r, filepath.Join("assets", path.Base(r.URL.Path)))
	case r.URL.Path == "/ui/sign-in":
		var in struct{ Code string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.signedIn = in.Code == "once"
		f.me(w)
	case r.URL.Path == "/ui/me":
		f.me(w)
	case strings.HasPrefix(r.URL.Path, "/ui/"):
		index, _ := os.ReadFile("assets/index.html")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(index)
	case r.URL.Path == "/api/v1/events" && r.URL.Query().Get("follow") == "true":
		f.stream(w, r)
	case r.URL.Path == "/api/v1/events":
		kinds := strings.TrimSuffix(r.URL.Query().Get("type"), "*")
		writeLines(w, f.events, func(e map[string]any) bool { return strings.HasPrefix(e["kind"].(string), kinds) })
	case r.URL.Path == "/api/v1/messages":
		writeLines(w, f.mails, func(map[string]any) bool { return true })
	case isOperation:
		f.operation(w, r, operation)
	case !strings.HasPrefix(r.URL.Path, "/api/v1/"):
		http.NotFound(w, r)
	}
}

// writeLines writes those values of a list that fit.
func writeLines(w http.ResponseWriter, list []map[string]any, fits func(map[string]any) bool) {
	for _, one := range list {
		if fits(one) {
			_ = json.NewEncoder(w).Encode(one)
		}
	}
}

func (f *fakeTeam) me(w http.ResponseWriter) {
	if !f.signedIn {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"code":"unauthenticated","message":"the code is not valid"}}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"name": "ann", "role": f.role, "team": "shop", "version": "1"})
}

// stream sends one event, and ends when the stream is cut.
func (f *fakeTeam) stream(w http.ResponseWriter, r *http.Request) {
	f.streams = append(f.streams, r.Header.Get("Last-Event-ID"))
	cut := f.cut
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "id: %d\ndata: {\"seq\":%d,\"at\":\"2026-11-27T09:00:00.000Z\",\"kind\":\"orchestrator.idle\",\"text\":\"\"}\n\n", 7+len(f.streams), 7+len(f.streams))
	_ = http.NewResponseController(w).Flush()
	f.mu.Unlock()
	select {
	case <-cut:
	case <-r.Context().Done():
	}
	f.mu.Lock()
}

func (f *fakeTeam) operation(w http.ResponseWriter, r *http.Request, name string) {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	task := map[string]any{
		"id": "t1", "name": hostile, "type": hostile, "state": "running", "status": "running", "dependencies": []string{}, "requiredCapabilities": []string{},
		"submittedBy": "operator", "assignedTo": "coder", "createdAt": now, "startedAt": now, "progress": 0.5, "message": hostile, "description": hostile, "result": nil,
		"artifacts": []any{map[string]any{"name": hostile, "type": hostile, "size": len(hostile)}},
		"workspace": map[string]any{"path": hostile, "branch": hostile, "base": hostile},
	}
	agent := map[string]any{
		"name": "coder", "block": "coder", "description": hostile, "state": "running", "reason": hostile, "command": []string{hostile}, "role": "worker", "depends_on": []string{}, "dir": "/",
		"tasks": []any{map[string]any{"id": "t1", "name": hostile, "state": "running", "progress": 0.5}}, "restarts": 0, "starts": 1, "last_exit": hostile, "pid": 7, "cpu_ms": 1, "rss_bytes": 1,
		"up_ms": 1, "started_at": now, "output": map[string]any{}, "mailbox": map[string]any{"messages": 0},
	}
	agents := []any{agent}
	for _, name := range f.agents {
		more := maps.Clone(agent)
		more["name"], more["tasks"], more["reason"] = name, []any{}, ""
		agents = append(agents, more)
	}
	answers := map[string]any{
		"status": map[string]any{
			"name": "shop", "version": "1", "state": "running", "config": hostile, "state_dir": hostile, "urls": []string{hostile}, "agents": agents, "questions": 2, "seq": 7, "up_ms": 1, "pid": 7,
			"tasks": map[string]int{"running": 1},
		},
		"query-tasks": map[string]any{"tasks": []any{task}}, "get-task": map[string]any{"task": task}, "list-questions": map[string]any{"questions": f.questions},
		"list-notes":  map[string]any{"notes": []any{map[string]any{"id": "n1", "author": hostile, "content": hostile, "created_at": now}}},
		"list-topics": map[string]any{"topics": []any{}}, "list-actors": map[string]any{"actors": []any{}}, "list-keys": map[string]any{"credentials": []any{}},
		"list-tokens": map[string]any{"credentials": []any{}}, "list-hosts": map[string]any{"hosts": []any{}, "hubs": []any{}}, "list-sessions": map[string]any{"sessions": []any{}}, "list-reviews": map[string]any{"reviews": []any{}},
	}
	if f.tasks != nil {
		answers["query-tasks"] = map[string]any{"tasks": f.tasks}
	}
	if f.tasks != nil && (name == "get-task" || name == "retry-task") {
		var in struct{ TaskID string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		for _, t := range f.tasks {
			if t["id"] == in.TaskID && name == "retry-task" {
				f.retried = append(f.retried, in.TaskID)
				t["state"], t["error"] = "pending", nil
			}
			if t["id"] == in.TaskID {
				answers[name] = map[string]any{"task": t}
			}
		}
	}
	answers["get-task-response"] = map[string]any{"artifacts": []any{map[string]any{"name": hostile, "type": hostile, "content": "the content: " + hostile}}}
	answers["explain"] = map[string]any{"text": "in words: " + hostile}
	answers["diff-task"] = map[string]any{"branch": hostile, "base": hostile, "uncommitted": []string{hostile}, "patch": patch}
	if name == "answer-question" {
		var in struct{ QuestionID, Answer string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.answers = append(f.answers, in.QuestionID+" "+in.Answer)
		f.questions = f.questions[1:]
		answers[name] = map[string]any{}
	}
	maps.Copy(answers, f.given)
	_ = json.NewEncoder(w).Encode(answers[name])
}

func question(id string, options ...string) map[string]any {
	list := make([]map[string]string, 0, len(options))
	for _, o := range options {
		list = append(list, map[string]string{"label": o, "value": o})
	}
	return map[string]any{"id": id, "agent": "coder", "task": "t1", "question": hostile + id, "options": list, "blocking": true, "askedAt": "2026-11-27T09:00:0" + id[1:] + ".000Z"}
}

// said is the expression that a text is on the page.
func said(text string) string { return "document.body.innerText.includes(" + quoted(text) + ")" }

// quoted returns a text as JavaScript.
func quoted(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}

func TestPagesInBrowser(t *testing.T) {
	ctx := browser.Open(t)
	team := &fakeTeam{role: "operator", questions: []map[string]any{question("q1", "day", "night"), question("q2")}, cut: make(chan struct{})}
	server := httptest.NewServer(team)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(team.cut) })

	console, stopConsole := context.WithCancel(ctx)
	messages := chromedp.Console(console)
	var wrong []string
	var seen sync.WaitGroup
	seen.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Source == "security" || strings.Contains(m.Text, "Content Security Policy") {
				wrong = append(wrong, m.String())
			}
		}
	})
	open := func(page string) {
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(server.URL+"/ui/"+page)))
	}

	press := func(button string) { // by script, because the page may still be moving
		_, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.querySelector("+quoted(button)+").click(); ''"))
		require.NoError(t, err)
	}
	rules, err := os.ReadFile("testdata/rules.js")
	require.NoError(t, err)
	keepsRules := func(page string) {
		for _, scheme := range []string{"light", "dark"} {
			faults, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("document.documentElement.style.colorScheme = '"+scheme+"';\n"+string(rules)))
			assert.NoError(t, err)
			assert.Empty(t, faults, "%s, %s", page, scheme)
		}
	}
	t.Log("who has not signed in is told how to")
	open("")
	browser.Holds(ctx, t, said("orchestrator ui"))
	keepsRules("sign-in")
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	open("board#code=once")
	browser.Holds(ctx, t, said(harmless))
	browser.Holds(ctx, t, "location.hash === ''")
	browser.Holds(ctx, t, "document.title === '(2) Board · shop'")

	t.Log("text of agents is only text")
	for _, page := range []string{"board", "board?view=table", "agents", "agent?name=coder", "agent?name=coder&tab=activity", "task?id=t1", "task?id=t1&tab=why", "task?id=t1&tab=changes", "graph", "settings", "inbox"} {
		open(page)
		browser.Holds(ctx, t, `document.querySelector("main h1") !== null`)
		browser.Holds(ctx, t, `document.body.innerText.includes("onerror=") && document.querySelector("main img") === null && /^\(2\) .* · shop$/.test(document.title)`)
		keepsRules(page)
	}
	for _, page := range []string{"timeline", "bus", "metrics", "reviews"} {
		open(page)
		browser.Holds(ctx, t, `document.querySelector("main .page, main .empty") !== null`)
		keepsRules(page)
	}

	open("board")
	browser.Holds(ctx, t, said(harmless))
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("n")))
	browser.Holds(ctx, t, `document.querySelector("form.adding") !== null`)
	keepsRules("a new task")

	t.Log("a drawing is saved as a file, with text that is only text")
	open("graph")
	browser.Saves(ctx, t, "<img src=x onerror=")

	t.Log("an artifact is shown as text")
	open("task?id=t1")
	browser.Holds(ctx, t, `document.querySelector(".artifacts button") !== null`)
	press(".artifacts button")
	browser.Holds(ctx, t, said("the content: "+harmless))
	keepsRules("an artifact")

	t.Log("a diff is text in rows, unified or side by side")
	open("task?id=t1&tab=changes")
	const row = `[...document.querySelectorAll(".code tr")].map((r) => [...r.cells].map((c) => c.innerText).join("|"))`
	browser.Holds(ctx, t, `document.querySelectorAll(".diff").length === 2 && document.querySelector("main img") === null`)
	press(".changes .switch button:first-child")
	browser.Holds(ctx, t, row+`[2] === `+quoted("8||-old "+harmless))
	browser.Holds(ctx, t, row+`[3] === "9||--- not a head" && `+row+`[5] === "|9|+++ not a head" && `+row+`[6] === "|10|+third"`)
	press(".changes .switch button:last-child")
	browser.Holds(ctx, t, row+`[3] === "9|-- not a head|9|++ not a head" && `+row+`[4] === "||10|third"`)
	keepsRules("side by side")
	open("task?id=t1&tab=why")
	browser.Holds(ctx, t, said("in words: "+harmless))

	open("nothing")
	browser.Holds(ctx, t, said("Page not found"))
	keepsRules("no page")

	t.Log("a key answers, and the next question follows")
	open("inbox")
	browser.Holds(ctx, t, said("night"))
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("2")))
	browser.Holds(ctx, t, said("Answered coder: night"))
	browser.Holds(ctx, t, "document.title === '(1) Inbox · shop'")
	browser.Holds(ctx, t, `document.querySelector(".asked.open textarea") !== null`)
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("\r"), chromedp.Sleep(200*time.Millisecond), chromedp.KeyEvent("oauth"), chromedp.KeyEvent("\r")))
	browser.Holds(ctx, t, said("Nothing needs you"))
	keepsRules("empty inbox")
	team.mu.Lock()
	assert.Equal(t, []string{"q1 night", "q2 oauth"}, team.answers)
	before := len(team.streams)

	t.Log("a stream that ends is resumed after the last event")
	close(team.cut)
	team.cut = make(chan struct{})
	team.mu.Unlock()
	browser.Holds(ctx, t, said("reconnecting in"))
	browser.Holds(ctx, t, said("live"))
	team.mu.Lock()
	assert.Equal(t, fmt.Sprint(7+before), team.streams[before], "Last-Event-ID")
	team.role = "viewer"
	team.mu.Unlock()

	t.Log("a viewer sees no button that changes anything")
	open("agent?name=coder")
	browser.Holds(ctx, t, said("read only"))
	browser.Holds(ctx, t, `document.querySelector(".act, .choice") === null`)

	stopConsole()
	seen.Wait()
	assert.Empty(t, wrong, "exceptions, and what the policy has refused")
}

// boardTask returns a task as query-tasks has it.
func boardTask(id, state string, more map[string]any) map[string]any {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	t := map[string]any{
		"id": id, "name": "Task " + id, "type": "task", "state": state, "dependencies": []string{}, "requiredCapabilities": []string{}, "submittedBy": "operator",
		"assignedTo": "coder", "createdAt": now, "startedAt": now, "endedAt": now, "result": nil,
	}
	maps.Copy(t, more)
	return t
}

// openTeam opens a page of a team with these tasks and questions, signed in.
func openTeam(t *testing.T, team *fakeTeam) (ctx context.Context, open func(page string)) {
	ctx = browser.Open(t)
	team.role, team.cut = "operator", make(chan struct{})
	server := httptest.NewServer(team)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(team.cut) })
	open = func(page string) {
		t.Helper()
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(server.URL+"/ui/"+page)))
	}
	open("board#code=once")
	browser.Holds(ctx, t, "location.hash === ''")
	return ctx, open
}

// The header, the inbox, the column, the metrics and the table have the same number for "needs you". A reviewed request
// is one card that names its part.
func TestCountsAgreeInBrowser(t *testing.T) {
	about := func(id, task string) map[string]any {
		q := question(id)
		q["task"], q["question"] = task, "Which one, "+id+"?"
		return q
	}
	team := &fakeTeam{
		questions: []map[string]any{about("q1", "asks"), about("q2", "part")},
		tasks: []map[string]any{
			boardTask("asks", "needs_human", nil), boardTask("works", "running", nil),
			boardTask("request", "needs_human", nil), boardTask("part", "needs_human", map[string]any{"sessionId": "s", "parentTaskId": "request"}),
			boardTask("blocked", "pending", map[string]any{"assignedTo": nil, "dependencies": []string{"asks"}, "waitsFor": []string{"asks"}}),
		},
	}
	ctx, open := openTeam(t, team)
	const column = `document.querySelector("section[aria-label='Needs you']")`
	agree := func(n, ofTasks int) {
		t.Helper()
		open("board")
		browser.Holds(ctx, t, fmt.Sprintf(`%s?.querySelector(".n").innerText === "%[2]d" && %[1]s.querySelectorAll(".task").length === %[2]d`, column, n))
		browser.Holds(ctx, t, fmt.Sprintf(`document.querySelector(".needs b").innerText === "%[1]d" && document.querySelector(".menu .num").innerText === "%[1]d"`, n))
		open("metrics")
		browser.Holds(ctx, t, fmt.Sprintf(`[...document.querySelectorAll(".figures .card")].some((c) => c.innerText.replace(/\s+/g, " ") === "%d Needs you")`, n))
		open("inbox")
		browser.Holds(ctx, t, fmt.Sprintf(`document.querySelectorAll(".asked").length === %d`, n))
		open("board?view=table&state=you")
		browser.Holds(ctx, t, fmt.Sprintf(`document.querySelectorAll("a.of-tasks").length === %d`, ofTasks))
	}
	agree(2, 2)
	open("board")
	browser.Holds(ctx, t, said("Which one, q1?")+` && `+said("blocked by Task asks"))
	browser.Holds(ctx, t, `![...document.querySelectorAll(".task .name")].some((e) => e.innerText === "Task part") && `+said("Which one, q2?"))

	t.Log("a question of a task that goes on, or of none, has a card")
	team.mu.Lock()
	team.questions = append(team.questions, about("q3", "works"), about("q4", ""))
	team.mu.Unlock()
	agree(4, 2)
}

// A failed task shows its reason once, in lines, and is retried by a button. A done task shows that its branch is not merged.
func TestFailedTaskInBrowser(t *testing.T) {
	team := &fakeTeam{questions: []map[string]any{}, tasks: []map[string]any{
		boardTask("f1", "failed", map[string]any{"error": "2 of 9 tests failed\nFAIL TestPage\n    page.go:17: got 3"}),
		boardTask("c1", "cancelled", nil),
		boardTask("r1", "running", map[string]any{"progress": 0.3}),
		boardTask("m1", "done", map[string]any{"workspace": map[string]any{"path": "/w", "branch": "task/m1", "merge": "refused"}}),
		boardTask("m2", "done", map[string]any{"workspace": map[string]any{"path": "/w", "branch": "task/m2", "merge": "waiting"}}),
	}}
	ctx, open := openTeam(t, team)
	browser.Holds(ctx, t, said("merge refused")+" && "+said("merge queued")+" && "+said("2 of 9 tests failed"))
	browser.Holds(ctx, t, `["Failed", "Cancelled"].every((word) => document.querySelector("section[aria-label='" + word + "'] .n").innerText === "1") && `+said("30%"))
	open("task?id=r1")
	browser.Holds(ctx, t, said("30%"))
	open("task?id=m1")
	browser.Holds(ctx, t, said("merge refused"))
	open("task?id=f1")
	browser.Holds(ctx, t, `document.querySelector("pre.output")?.innerText === "FAIL TestPage\n    page.go:17: got 3" && document.body.innerText.split("2 of 9 tests failed").length === 2`)
	_, err := chromedp.Run(ctx, chromedp.Evaluate[string](`[...document.querySelectorAll(".act button")].find((b) => b.innerText.trim() === "Retry").click(); ""`))
	require.NoError(t, err)
	browser.Holds(ctx, t, said("Retrying Task f1"))
	open("board")
	browser.Holds(ctx, t, `document.querySelector("section[aria-label='Pending'] .task .name")?.innerText === "Task f1"`)
	team.mu.Lock()
	defer team.mu.Unlock()
	require.Equal(t, []string{"f1"}, team.retried)
}
