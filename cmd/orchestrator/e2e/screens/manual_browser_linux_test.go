package screens

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	chromium "orchestrator/fixtures/browser"
)

// The manual as a web site is read in a real browser, from a server and from a folder: it searches, changes its colors,
// fits a phone, and loads only its own files.
func TestManualInBrowser(t *testing.T) {
	ctx := chromium.Open(t)
	s := stage.New(t, "")
	dir := filepath.Join(t.TempDir(), "site")
	require.Regexp(t, `^\d+ pages in `, s.Ask("help", "--html", dir))
	require.Regexp(t, `^\d+ pages in `, s.Ask("help", "--html", dir), "again")
	_, stderr, code := s.Call("help", "--html", dir, "config")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--html takes one folder")
	_, stderr, code = s.Call("help", "--html", filepath.Join(dir, "index.html"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "cannot write the manual")

	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	rules, err := os.ReadFile("../../../../supervisor/web/testdata/rules.js")
	require.NoError(t, err)
	visit := func(address string) {
		t.Helper()
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	}
	search := func(words string) {
		t.Helper()
		chromium.Holds(ctx, t, `document.querySelector(".search input:not([hidden])") !== null`)
		require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("/"), chromedp.KeyEvent(words)))
	}
	for _, base := range []string{server.URL + "/", "file://" + dir + "/"} {
		visit(base + "index.html")
		chromium.Holds(ctx, t, shows("Your first team, in ten minutes"))
		search("retry failed")
		chromium.Holds(ctx, t, `document.querySelector(".search li a.chosen") !== null`)
		require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent("\r")))
		chromium.Holds(ctx, t, `!location.href.endsWith("index.html") && document.querySelector("main h1") !== null && document.body.innerText.toLowerCase().includes("retry")`)

		visit(base + "troubleshooting.html")
		_, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("main a[href='code/not_found.html']").click(); ""`))
		require.NoError(t, err)
		chromium.Holds(ctx, t, `location.href.endsWith("code/not_found.html") && `+shows("not_found"))
		search("zzzzz")
		chromium.Holds(ctx, t, shows("No results"))

		for _, page := range []string{"index.html", "limits.html", "config.html", "code/not_found.html"} {
			visit(base + page)
			for _, scheme := range []string{"light", "dark"} {
				faults, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("document.documentElement.className = '"+scheme+"';\n"+string(rules)))
				assert.NoError(t, err)
				assert.Empty(t, faults, "%s, %s", page, scheme)
			}
			elsewhere, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("file:"))`))
			require.NoError(t, err)
			require.Empty(t, elsewhere)
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(390, 800)))
			chromium.Holds(ctx, t, `document.documentElement.scrollWidth <= innerWidth`)
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 800)))
		}

		_, err = chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector(".colors").click(); ""`))
		require.NoError(t, err)
		visit(base + "limits.html")
		chromium.Holds(ctx, t, `document.documentElement.className === "light" && `+shows("Colors: light"))
	}
}
