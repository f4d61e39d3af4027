package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/browser"
)

// resized sets the size of the page.
func resized(ctx context.Context, t *testing.T, width, height int64) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, height)))
}

// baselines is a function that tells whether the texts of two elements stand on one line.
const baselines = `((a, b) => {
	const line = (e) => { const r = document.createRange(); r.selectNodeContents([...e.childNodes].findLast((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()) ?? e); return r.getBoundingClientRect().bottom; };
	return Math.abs(line(a) - line(b)) < 1;
})`

// event returns an event of a number of seconds ago.
func event(seq int, kind, agent, task string, ago time.Duration, payload map[string]any) map[string]any {
	at := time.Now().Add(-ago).UTC().Format("2006-01-02T15:04:05.000Z")
	return map[string]any{"seq": seq, "at": at, "kind": kind, "agent": agent, "task": task, "text": task + " happened", "payload": payload, "figures": map[string]any{"exit_code": 3}}
}

func boardOfAllStates() []map[string]any {
	return []map[string]any{
		boardTask("asks", "needs_human", map[string]any{"progress": 0.3}),
		boardTask("11111111-2222-4333-8444-555555555555", "running", map[string]any{"name": "Short", "assignedTo": "an-agent-with-a-very-long-name"}),
		boardTask("works", "running", map[string]any{"progress": 0.5, "name": "Write the documentation of the configuration with all of its blocks"}),
		boardTask("blocked", "pending", map[string]any{"assignedTo": nil, "dependencies": []string{"asks"}, "waitsFor": []string{"asks"}, "endedAt": nil}),
		boardTask("last", "pending", map[string]any{"assignedTo": nil, "dependencies": []string{"blocked", "works"}, "waitsFor": []string{"blocked"}, "endedAt": nil}),
		boardTask("f1", "failed", map[string]any{"error": "2 of 9 tests failed", "name": "A name that is longer than its column is wide"}),
		boardTask("ok", "done", nil),
	}
}

// No page is higher than the screen where its lists scroll, or wider. Headings stand at one height.
func TestPagesFitTheScreenInBrowser(t *testing.T) {
	team := &fakeTeam{questions: []map[string]any{question("q1", "day")}, tasks: boardOfAllStates(), agents: []string{"writer", "reviewer"}, events: []map[string]any{event(1, "task.started", "coder", "works", time.Minute, nil)}}
	ctx, open := openTeam(t, team)
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		resized(ctx, t, size[0], size[1])
		heading := ""
		for _, page := range []string{"board", "board?view=table", "graph", "timeline", "bus", "inbox", "agents", "metrics", "settings"} {
			open(page)
			browser.Holds(ctx, t, `document.querySelector("main h1") !== null && `+said("live"))
			browser.Holds(ctx, t, `document.documentElement.scrollWidth <= innerWidth`)
			browser.Holds(ctx, t, `!document.querySelector("main .fill") || document.documentElement.scrollHeight <= innerHeight`)
			browser.Holds(ctx, t, `(() => { const a = document.querySelector(".menu [aria-current]").getBoundingClientRect(); return a.left >= 0 && a.right <= innerWidth && a.bottom <= innerHeight; })()`)
			browser.Holds(ctx, t, `[...document.querySelectorAll("label:has(> input[type=checkbox])")].every((l) => l.querySelector("input").getBoundingClientRect().right <= l.getBoundingClientRect().left + 30)`)
			middle, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(() => { const b = document.querySelector("main h1").getBoundingClientRect(); return "" + Math.round((b.top + b.bottom) / 2); })()`))
			require.NoError(t, err)
			if heading == "" || size[0] < 720 {
				heading = middle
			}
			assert.Equal(t, heading, middle, "the heading of %s", page)
		}
	}
	open("board")
	browser.Holds(ctx, t, `document.querySelectorAll(".column").length === 8`)
	browser.Holds(ctx, t, `new Set([...document.querySelectorAll(".tools-of-board > *")].map((e) => { const b = e.getBoundingClientRect(); return Math.round((b.top + b.bottom) / 20); })).size === 2`) // rows of tools on a phone
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("?")))
	browser.Holds(ctx, t, `document.querySelector(".layer .keys") !== null && document.querySelector(".layer").getBoundingClientRect().bottom <= innerHeight && document.querySelector(".layer").getBoundingClientRect().right <= innerWidth`)
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("\x1b")))
	t.Log("a notice above the page takes its room from the lists")
	_, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("main").prepend(Object.assign(document.createElement("h2"), {textContent: "The team has stopped."})); ""`))
	require.NoError(t, err)
	browser.Holds(ctx, t, said("The team has stopped.")+` && document.documentElement.scrollHeight <= innerHeight`)
}

// The cards of the board begin at one height, and have no blank line. Parts that do not fit are left out whole.
func TestBoardLayoutInBrowser(t *testing.T) {
	team := &fakeTeam{questions: []map[string]any{}, tasks: boardOfAllStates(), agents: []string{"writer", "reviewer"}}
	ctx, open := openTeam(t, team)
	resized(ctx, t, 1440, 900)
	open("board")
	browser.Holds(ctx, t, `new Set([...document.querySelectorAll(".column .slot:first-child .task")].map((e) => e.getBoundingClientRect().top)).size === 1`)
	browser.Holds(ctx, t, `document.querySelectorAll(".column.thin").length === 3 && [...document.querySelectorAll(".column.thin")].every((e) => e.getBoundingClientRect().width < 40)`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".task")].every((e) => [...e.children].every((part, i) => i === 0 || part.getBoundingClientRect().top - e.children[i - 1].getBoundingClientRect().bottom < 6))`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".meta code")].every((e) => { const id = e.getBoundingClientRect(), of = e.parentElement.getBoundingClientRect(); return id.top >= of.bottom || id.right <= of.right + 1; })`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".meta code")].some((e) => e.innerText === "asks" && e.getBoundingClientRect().top < e.parentElement.getBoundingClientRect().bottom)`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".name")].find((e) => e.innerText.startsWith("Write the documentation")).getBoundingClientRect().height > 30`) // two lines
	browser.Holds(ctx, t, `(() => { const [a, b] = ["section[aria-label=Failed] .name", "section[aria-label=Failed] .act button"].map((s) => document.querySelector(s).getBoundingClientRect()); return b.top >= a.bottom; })()`)
	browser.Holds(ctx, t, `new Set([...document.querySelectorAll("progress")].map((e) => getComputedStyle(e).color)).size === 1`)
	resized(ctx, t, 1200, 800)
	browser.Holds(ctx, t, `(() => { const b = document.querySelector(".board"); return b.scrollWidth <= b.clientWidth; })()`)
	open("board?view=table")
	browser.Holds(ctx, t, `document.querySelectorAll("a.of-tasks").length === 7 && [...document.querySelectorAll("a.of-tasks")].every((r) => `+baselines+`(r.querySelector(".badge"), r.children[1]))`)
	open("agents")
	browser.Holds(ctx, t, `document.querySelectorAll(".of-agents .strong").length === 3 && new Set([...document.querySelectorAll("main .avatar")].map((e) => getComputedStyle(e).backgroundColor)).size === 3`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".of-agents:has(.strong)")].slice(1).every((r) => `+baselines+`(r.querySelector(".badge"), r.querySelector(".strong")))`)
	open("task?id=blocked")
	browser.Holds(ctx, t, `(() => { const all = [...document.querySelectorAll("aside li")]; return all.length === 2 && all.every((li) => `+baselines+`(li.querySelector(".badge"), li.querySelector("a"))); })()`)
}

// An edge leads from the middle of a side to the middle of a side, texts stay in their boxes, and Fit enlarges.
func TestGraphLayoutInBrowser(t *testing.T) {
	team := &fakeTeam{questions: []map[string]any{}, tasks: boardOfAllStates()}
	team.tasks[1]["name"] = "WWWW MMMM WWWW MMMM WWWW MMMM WWWW"
	ctx, open := openTeam(t, team)
	resized(ctx, t, 1440, 900)
	open("graph")
	browser.Holds(ctx, t, said("is needed by")+` && `+said("longest chain of open tasks"))
	browser.Holds(ctx, t, `document.querySelectorAll(".canvas .edge").length === 3 && [...document.querySelectorAll(".canvas .edge")].every((e) => {
		const n = e.getTotalLength(), ends = [e.getPointAtLength(0), e.getPointAtLength(n)], near = e.getPointAtLength(n - 6);
		const boxes = [...document.querySelectorAll(".node")].map((a) => a.transform.baseVal[0].matrix);
		const at = (p, dx) => boxes.some((m) => Math.abs(m.e + dx - p.x) < 1 && Math.abs(m.f + 23 - p.y) < 1);
		return at(ends[0], 190) && at(ends[1], 0) && near.x < ends[1].x - 4;
	})`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".node")].every((a) => { const box = a.querySelector("rect").getBoundingClientRect(); return [...a.querySelectorAll("text")].every((e) => e.getBoundingClientRect().right <= box.right); })`)
	const scale = `document.querySelector(".canvas > g") !== null && new DOMMatrix(getComputedStyle(document.querySelector(".canvas > g")).transform).a`
	_, err := chromedp.Run(ctx, chromedp.Evaluate[string](`for (const n of [1, 2, 3]) document.querySelector(".tools [aria-label='Zoom out']").click(); ""`))
	require.NoError(t, err)
	browser.Holds(ctx, t, scale+" < 0.8")
	_, err = chromedp.Run(ctx, chromedp.Evaluate[string](`[...document.querySelectorAll(".tools button")].at(-1).click(); ""`))
	require.NoError(t, err)
	browser.Holds(ctx, t, scale+" > 1.2")
	resized(ctx, t, 390, 844)
	open("graph")
	browser.Holds(ctx, t, scale+" >= 0.75")
}

// Each agent has a row, each color a word, and a short bar its name beside it.
func TestTimelineLayoutInBrowser(t *testing.T) {
	team := &fakeTeam{questions: []map[string]any{}, tasks: boardOfAllStates(), agents: []string{"writer", "reviewer"}, events: []map[string]any{
		event(1, "task.started", "coder", "ok", 100*time.Second, nil), event(2, "task.done", "coder", "ok", 99*time.Second, nil),
		event(3, "task.started", "writer", "f1", 90*time.Second, nil), event(4, "task.failed", "writer", "f1", 50*time.Second, nil),
		event(5, "task.started", "writer", "asks", 40*time.Second, nil), event(6, "task.requeued", "writer", "asks", 30*time.Second, nil),
		event(7, "task.started", "writer", "asks", 20*time.Second, nil), event(8, "task.cancelled", "writer", "asks", 15*time.Second, nil),
		event(9, "task.started", "writer", "works", 10*time.Second, nil), event(10, "agent.exited", "coder", "", 5*time.Second, nil),
		event(11, "question.asked", "coder", "ok", 80*time.Second, map[string]any{"question_id": "q1"}), event(12, "review.requested", "coder", "ok", 70*time.Second, map[string]any{"review_id": "r1"}),
	}}
	ctx, open := openTeam(t, team)
	resized(ctx, t, 1440, 900)
	open("timeline")
	browser.Holds(ctx, t, `[...document.querySelectorAll(".gantt .names a")].map((a) => a.innerText.split(/\s/).at(-1)).join() === "coder,writer,reviewer"`)
	browser.Holds(ctx, t, said("(first event) to now"))
	browser.Holds(ctx, t, `(() => {
		const look = (e) => { const s = getComputedStyle(e.querySelector("rect, path")); return [s.fill, s.stroke, s.strokeDasharray].join(); };
		const known = new Set([...document.querySelectorAll(".legend svg")].map(look)), drawn = [...document.querySelectorAll(".gantt svg a, .gantt svg g[class^=k-]")];
		return known.size === 8 && drawn.length === 8 && new Set(drawn.map(look)).size === 8 && drawn.every((e) => known.has(look(e)));
	})()`)
	browser.Holds(ctx, t, `(() => { const bar = document.querySelector(".gantt a.o-done"); return bar.querySelector("text").textContent === "Task ok" && bar.querySelector("text").getBoundingClientRect().left > bar.querySelector("rect").getBoundingClientRect().right; })()`)
	browser.Holds(ctx, t, `[...document.querySelectorAll(".gantt .grid text")].every((e) => e.getBoundingClientRect().right <= e.ownerSVGElement.getBoundingClientRect().right)`)
	browser.Holds(ctx, t, `document.querySelectorAll(".happened .line").length === 12 && [...document.querySelectorAll(".happened .words")].every((e) => e.innerText.split("ok").length <= 2)`)
	resized(ctx, t, 390, 844)
	open("timeline")
	browser.Holds(ctx, t, `document.querySelectorAll(".happened .line").length > 0 && [...document.querySelectorAll(".happened .line")].every((e) => e.getBoundingClientRect().height === 44 && e.getBoundingClientRect().right <= innerWidth)`)
}

// Messages have names and texts. Starts of agents are hidden, and the envelope is behind a click.
func TestBusInBrowser(t *testing.T) {
	const run = "0b67d79d-315c-4eeb-acde-00319f60207b"
	mail := func(seq int, from, to, topic string, payload map[string]any) map[string]any {
		return map[string]any{"seq": seq, "from_actor": from, "to_actor": to, "topic": topic, "payload": payload, "reply_to": nil, "created_at": "2026-11-27T09:00:00.000Z"}
	}
	team := &fakeTeam{questions: []map[string]any{}, tasks: boardOfAllStates(), mails: []map[string]any{
		mail(2, "GO", "GO", "agent.spawned", map[string]any{"agent": "writer", "actor": "W:" + run}),
		mail(5, "GO", "W:"+run, "task.assigned", map[string]any{"name": "Outline the site", "task": "t1"}),
		mail(9, "W:"+run, "GO", "task.completed", map[string]any{"name": "Outline the site", "result": map[string]any{"summary": "3 pages"}}),
		mail(12, "Bus", "GO", "alert.fired", map[string]any{"agent": "writer", "text": "exit 3"}),
		mail(14, "IO:ann", "broadcast", "message.direct", map[string]any{"text": hostile, "from": 7, "to": "GO", "document": 7}),
		mail(15, "session:site", "session:site", "task_assignment", map[string]any{"from": "architect", "to": "writer", "document": map[string]any{"payload": map[string]any{"task": map[string]any{"task_description": "Put the\nsite together"}}}}),
		mail(16, "session:site", "session:site", "review_request", map[string]any{"from": "architect", "to": "reviewer", "task": "ok", "document": map[string]any{"payload": map[string]any{"task_id": "ok"}}}),
	}, given: map[string]any{"list-actors": map[string]any{"actors": []any{map[string]any{"actor": "GO", "status": "quiet", "cursor": 0, "latest": 9}}}}}
	ctx, open := openTeam(t, team)
	open("bus")
	browser.Holds(ctx, t, `[...document.querySelectorAll(".mail")].map((e) => e.innerText.replace(/\s+/g, " ").replace(/^.*?\d\d:\d\d:\d\d /, "")).join("|") === `+quoted(
		"orchestrator → writer task.assigned Outline the site|writer → orchestrator task.completed Outline the site: 3 pages|orchestrator alert.fired writer: exit 3|"+
			"ann → everyone message.direct "+harmless+"|architect → writer task_assignment Put the site together|architect → reviewer review_request Task ok"))
	browser.Holds(ctx, t, `!document.querySelector(".bus aside").innerText.includes("agent.spawned") && !`+said("unread"))
	press := func(selector string) {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q).click(); ''", selector)))
		require.NoError(t, err)
	}
	press(".mail")
	browser.Holds(ctx, t, `document.querySelector(".message p").innerText === "Outline the site" && !`+said("W:"+run))
	press(".message summary")
	browser.Holds(ctx, t, said("W:"+run))
	press(".bar input[type=checkbox]")
	browser.Holds(ctx, t, `document.querySelectorAll(".mail").length === 7 && `+said("agent.spawned"))
}

// A refused message of a session is marked and does not count.
func TestRefusedReviewInBrowser(t *testing.T) {
	said1 := map[string]any{
		"log_seq": 1, "logged_at": "2026-11-27T09:00:00.000Z", "message_type": "review_result", "from_agent": map[string]any{"agent_id": "reviewer"}, "refused": "invalid",
		"validation_errors": []string{"category must be bug"}, "payload": map[string]any{"task_id": "ok", "verdict": "changes_requested", "findings": []any{map[string]any{"finding_id": "f1"}}},
	}
	team := &fakeTeam{questions: []map[string]any{}, tasks: boardOfAllStates(), given: map[string]any{"get-session": map[string]any{
		"session_id": "site", "state": "open", "max_iterations": 3, "on_max": "human_review", "standing": []any{map[string]any{"agent_id": "reviewer", "agent_type": "reviewer", "status": "idle"}},
		"tasks": []any{map[string]any{"task_id": "ok", "name": "Task ok", "state": "done", "step": "Write: last.go", "developer": "coder", "iteration": 0, "max_iterations": 3}}, "reviews": []any{}, "messages": []any{said1},
	}}}
	ctx, open := openTeam(t, team)
	open("session?id=site")
	browser.Holds(ctx, t, said("category must be bug")+" && "+said("refused")+" && "+said("Show all")+" && !"+said("asked for changes")+" && !"+said("0 open of 0")+" && !"+said("Write: last.go"))
	browser.Holds(ctx, t, baselines+`(...document.querySelectorAll(".three aside li small, .three aside li a"))`)
}

// A result stands once, a chart without samples is marked, and its legend has the colors of its
// lines.
func TestTextsStandOnceInBrowser(t *testing.T) {
	team := &fakeTeam{questions: []map[string]any{question("q1", "day")}, tasks: []map[string]any{
		boardTask("ok", "done", map[string]any{"result": map[string]any{"summary": "tides.html, 24 lines", "lines_added": 24}}),
	}, events: []map[string]any{event(1, "task.done", "coder", "ok", 10*time.Second, nil)}}
	ctx, open := openTeam(t, team)
	open("task?id=ok")
	browser.Holds(ctx, t, said("tides.html, 24 lines")+` && document.body.innerText.split("tides.html").length === 2`)
	open("metrics")
	browser.Holds(ctx, t, said("1 in total")+" && "+said("No data yet"))
	browser.Holds(ctx, t, `document.querySelectorAll(".u-marker").length > 10 && [...document.querySelectorAll(".u-series + .u-series .u-marker")].every((e) => getComputedStyle(e).borderTopWidth === "0px")`)
	open("inbox")
	browser.Holds(ctx, t, `document.querySelector(".choices .quiet")?.innerText.trim() === "command" && document.querySelector(".choices .quiet").title === "Copy: orchestrator inbox answer q1 day"`)
	team.mu.Lock()
	for i := range 60 {
		team.events = append(team.events, event(2+i, "task.progress", "coder", "ok", time.Second, nil))
	}
	team.mu.Unlock()
	open("agent?name=coder&tab=activity")
	browser.Holds(ctx, t, `document.querySelectorAll(".story .what").length === 61 && document.querySelector(".story .what").innerText === "ok happened" && document.querySelector(".tabs").getBoundingClientRect().height > 24`)
	team.mu.Lock()
	team.questions[0]["task"], team.questions[0]["question"] = "ok", "It was verified twice.\nFAIL TestPage"
	team.mu.Unlock()
	for _, page := range []string{"board", "task?id=ok", "agent?name=coder"} {
		open(page)
		browser.Holds(ctx, t, said("It was verified twice.")+" && !"+said("FAIL TestPage"))
	}
	open("nothing")
	browser.Holds(ctx, t, `document.title.startsWith("(1) Page not found") && document.querySelector("main .empty a") !== null`)
}
