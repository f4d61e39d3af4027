package screens

import (
	"encoding/json"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	chromium "orchestrator/fixtures/browser"
	"orchestrator/fixtures/programs"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// shows is the expression that a text is on a page.
func shows(text string) string {
	quoted, _ := json.Marshal(text)
	return "document.body.innerText.includes(" + string(quoted) + ")"
}

// A person signs in with a real browser, answers a question, and sees tasks and output as they come. When the
// orchestrator is killed the page shows it, and continues after the next start.
func TestWebViewInBrowser(t *testing.T) {
	ctx := chromium.Open(t)
	addresses, err := programs.FreeAddresses(1)
	require.NoError(t, err)
	s := stage.New(t, stage.QuickStop+`
http {
  listen = ["`+addresses[0]+`"]
}
agent "asker" {
  command = ["`+stage.Fixture(t, "asker")+`", "Which one?"]
  restart {
    policy = "never"
  }
}
agent "printer" {
  command  = ["sh", "-c", "while true; do echo \"<b>hello</b> $(date +%N)\"; sleep 0.2; done"]
  protocol = "raw"
}
`).Up("--json")
	visit := func(address string) {
		t.Helper()
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(strings.TrimSpace(address))))
	}
	s.WaitForEvents(1, events.AgentStarted, "printer")
	s.WaitForQuestions(1)
	address := s.Ask("ui", "--print")
	u, err := url.Parse(strings.TrimSpace(address))
	require.NoError(t, err)
	base := "http://" + u.Host + "/ui/"
	require.Contains(t, u.Host, ".localhost:")
	visit(address)
	chromium.Holds(ctx, t, "location.hash === '' && document.title.startsWith('(1) ')")
	chromium.Holds(ctx, t, shows("live"))

	visit(base + "board")
	chromium.Holds(ctx, t, `document.querySelector("section[aria-label='Needs you'] .n")?.innerText === "1" && document.querySelector(".needs b").innerText === "1"`)
	chromium.Holds(ctx, t, shows("Which one?"))
	visit(base + "inbox")
	chromium.Holds(ctx, t, shows("Which one?"))
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("\r"), chromedp.Sleep(200*time.Millisecond), chromedp.KeyEvent("this one"), chromedp.KeyEvent("\r")))
	chromium.Holds(ctx, t, shows("Nothing needs you"))
	stage.WaitFor(t, "the answer", func() bool { return strings.Join(s.Lines("asker", control.StreamOut), " ") == "the answer is this one" })

	visit(base + "board")
	chromium.Holds(ctx, t, shows("live"))
	s.Ask("task", "add", "Say hello", "-q")
	chromium.Holds(ctx, t, shows("Say hello"))

	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("n")))
	chromium.Holds(ctx, t, `document.activeElement?.closest("form.adding") !== null`)
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("From the browser")))
	chromium.Holds(ctx, t, shows("orchestrator task add 'From the browser'"))
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("\r")))
	chromium.Holds(ctx, t, shows("Added: From the browser")+` && document.querySelector("form.adding") === null`)
	require.Contains(t, s.Ask("task", "ls"), "From the browser")

	ended := strings.TrimSpace(s.Ask("task", "add", "Not yet", "-q"))
	s.Ask("task", "cancel", ended, "--message", "too early", "--yes")
	visit(base + "task?id=" + ended)
	chromium.Holds(ctx, t, shows("too early")+` && document.querySelector(".act.primary button") !== null`)
	_, err = chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector(".act.primary button").click(); ""`))
	require.NoError(t, err)
	s.WaitForState(ended, wire.TaskPending)
	chromium.Holds(ctx, t, shows("pending")+" && !"+shows("too early"))

	visit(base + "timeline")
	chromium.Saves(ctx, t, "asker")

	visit(base + "agent?name=printer")
	chromium.Holds(ctx, t, shows("<b>hello</b> ")+` && document.querySelector("main b b") === null`)

	s.Signal(syscall.SIGKILL)
	<-s.Ended
	chromium.Holds(ctx, t, shows("The orchestrator does not answer.")+" && "+shows("orchestrator up -d"))
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "printer")
	chromium.Holds(ctx, t, shows("live")+" && !"+shows("orchestrator up -d"))
	s.Stop()
	chromium.Holds(ctx, t, shows("The team has stopped.")+" && "+shows("orchestrator up -d"))
	s.Up("--json")
	chromium.Holds(ctx, t, shows("live")+" && !"+shows("orchestrator up -d"))
	visit(base + "board")
	chromium.Holds(ctx, t, shows("Say hello"))
	s.Stop()
}
