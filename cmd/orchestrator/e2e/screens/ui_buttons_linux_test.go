package screens

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	chromium "orchestrator/fixtures/browser"
	"orchestrator/fixtures/programs"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A visitorOfPages clicks on the buttons of the web view.
type visitorOfPages struct {
	t    *testing.T
	ctx  context.Context
	base string
}

// goes opens a page and waits until it is live.
func (v *visitorOfPages) goes(page string) {
	v.t.Helper()
	require.NoError(v.t, chromedp.Do(v.ctx, chromedp.Navigate(v.base+page)))
	v.sees("live")
}

func (v *visitorOfPages) sees(text string) {
	v.t.Helper()
	chromium.Holds(v.ctx, v.t, shows(text))
}

// presses clicks on the last button with a label: buttons of a dialog come after the buttons of the
// page.
func (v *visitorOfPages) presses(label string) {
	v.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("button")].filter((b) => b.innerText.trim() === %q && !b.disabled).at(-1)`, label)
	chromium.Holds(v.ctx, v.t, find+" !== undefined")
	_, err := chromedp.Run(v.ctx, chromedp.Evaluate[string](find+`.click(); "clicked"`))
	require.NoError(v.t, err)
}

// does runs a script in the page.
func (v *visitorOfPages) does(script string) {
	v.t.Helper()
	_, err := chromedp.Run(v.ctx, chromedp.Evaluate[string](script+`; "done"`))
	require.NoError(v.t, err)
}

// Each button of the web view does its job in a real orchestrator. A second tab sees it, and a hidden tab notifies a
// person who has allowed it of a question.
func TestWebViewButtons(t *testing.T) {
	ctx := chromium.Open(t)
	addresses, err := programs.FreeAddresses(1)
	require.NoError(t, err)
	file := func(more string) string {
		return stage.QuickStop + `
http {
  listen = ["` + addresses[0] + `"]
}
agent "idle" {
  command = ["sh", "-c", "exec sleep 1000"]
}
agent "asker" {
  command   = ["` + stage.Fixture(t, "asker") + `", "Which one?"]
  autostart = false
  restart {
    policy = "never"
  }
}
` + more
	}
	s := stage.New(t, file("")).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "idle")
	id := strings.TrimSpace(s.Ask("task", "add", "A task", "--capability", "nobody", "-q"))
	address := strings.TrimSpace(s.Ask("ui", "--print"))
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	base, _, _ := strings.Cut(address, "#")
	v := &visitorOfPages{t: t, ctx: ctx, base: base}
	v.sees("live")
	other, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	second := &visitorOfPages{t: t, ctx: other, base: v.base}
	second.goes("board?view=table")

	v.goes("agent?name=idle")
	v.presses("Stop")
	v.presses("Stop agent")
	stage.WaitFor(t, "end", func() bool { return s.Agent("idle").State == control.StateStopped })
	v.presses("Start")
	stage.WaitFor(t, "start", func() bool { return s.Agent("idle").State == control.StateRunning })
	run := s.Agent("idle").Run
	v.presses("Restart")
	v.presses("Restart agent")
	stage.WaitFor(t, "restart", func() bool {
		now := s.Agent("idle")
		return now.State == control.StateRunning && now.Run != run
	})

	v.goes("task?id=" + id)
	v.presses("Add a note")
	chromium.Holds(ctx, t, `document.activeElement?.matches("dialog textarea")`)
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("from a page")))
	v.presses("Add note")
	v.sees("Note added")
	require.Contains(t, s.Ask("task", "notes", id), "from a page")
	v.presses("Cancel")
	v.presses("Cancel task")
	stage.WaitFor(t, "end of the task", func() bool { return strings.Contains(s.Ask("task", "show", id), "cancelled") })
	second.sees("cancelled")

	v.goes("bus")
	v.does(`for (const [label, value] of [["To", "idle"], ["Text", "hello from a page"]]) {
		const box = document.querySelector("form.compose input[aria-label=" + label + "]");
		box.value = value;
		box.dispatchEvent(new Event("input", {bubbles: true}));
	}`)
	v.presses("Send")
	v.sees("Sent to idle")
	require.Contains(t, s.Ask("bus", "tail", "-n", "all"), "hello from a page")

	v.goes("settings")
	s.Write("orchestrator.hcl", file("agent \"added\" {\n  command = [\"sleep\", \"1000\"]\n}\n"))
	v.presses("Compare")
	v.sees("added")
	v.presses("Apply")
	v.sees("Applied 1 change")
	stage.WaitFor(t, "new agent", func() bool { return s.Agent("added").State == control.StateRunning })
	second.goes("agents")
	second.sees("added")

	v.does(`window.told = [];
		window.Notification = class { constructor(title, o) { window.told.push(title + ": " + o.body); } static requestPermission() { return Promise.resolve("granted"); } };
		document.querySelector("main input[type=checkbox]").click()`)
	v.does(`Object.defineProperty(document, "hidden", {value: true})`)
	s.Ask("agent", "start", "asker")
	chromium.Holds(ctx, t, `window.told.includes("asker asks: Which one?")`)
	second.sees("question needs you")
	s.Stop()
}

// The page of a task shows its changes as a diff, and merges them.
func TestWebViewMerges(t *testing.T) {
	ctx := chromium.Open(t)
	addresses, err := programs.FreeAddresses(1)
	require.NoError(t, err)
	y := stage.NewRepo(t, "}\nhttp {\n  listen = [\""+addresses[0]+"\"]\n")
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	task := y.Begin(coder, "first")
	y.Change(task.Workspace.Path, "file", "one\n<b>two</b>\n")
	address := strings.TrimSpace(y.Ask("ui", "--print"))
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	base, _, _ := strings.Cut(address, "#")
	v := &visitorOfPages{t: t, ctx: ctx, base: base}
	v.sees("live")
	v.goes("task?id=" + task.ID + "&tab=why")
	v.sees("coder works on it.")
	v.presses("Changes")
	v.sees("<b>two</b>")
	v.presses("Unified")
	v.sees("+<b>two</b>")
	y.Change(task.Workspace.Path, "late", "1\n")
	coder.Granted(nil, "complete-task", stage.Finish(&task))
	v.sees("2 changed files")
	v.presses("Merge")
	v.presses("Merge branch")
	v.sees("Merged into main")
	require.Equal(t, "one\n<b>two</b>\n", y.Read("repo/file"))
	require.Equal(t, "1\n", y.Read("repo/late"))
	v.sees("No workspace")
	y.Stop()
}
