package site

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var codes = []Code{
	{Name: "not_found", Rows: []Row{{"Exit", "7", "exit-codes"}, {"Fix", "list `<ids>`", "troubleshooting"}}},
	{Name: "NOT_FOUND", Rows: []Row{{"Meaning", "no such object", "protocol"}}},
	{Name: "config/bad-name", Rows: []Row{{"Fix", "another name", "config-codes"}}},
}

// written returns the files of a site.
func written(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	n, err := Write(dir, "1.2.3", codes)
	require.NoError(t, err)
	found := make(map[string]string)
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			text, readErr := fs.ReadFile(os.DirFS(dir), name)
			found[name], err = string(text), readErr
		}
		return err
	}))
	require.Len(t, found, n+3) // a style, a script and the index
	return found
}

var (
	links = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
)

// TestLinks checks that each link of the site leads to a file and an anchor of it, and none elsewhere.
func TestLinks(t *testing.T) {
	pages := written(t)
	anchors := make(map[string]bool)
	for name, text := range pages {
		for _, id := range ids.FindAllStringSubmatch(text, -1) {
			anchors[name+"#"+id[1]] = true
		}
	}
	for name, text := range pages {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		require.NotContains(t, text, "ZgotmplZ", name)
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			to, anchor, has := strings.Cut(link[1], "#")
			if to = path.Join(path.Dir(name), to); link[1][0] == '#' {
				to = name
			}
			assert.Contains(t, pages, to, "%s: %s", name, link[1])
			if has {
				assert.True(t, anchors[to+"#"+anchor], "%s: %s", name, link[1])
			}
		}
	}
}

// TestPagesOfCodes checks that codes that differ only in case share a page, and that texts stay texts.
func TestPagesOfCodes(t *testing.T) {
	pages := written(t)
	page := pages["code/not_found.html"]
	require.Contains(t, page, "<title>not_found, NOT_FOUND - orchestrator</title>")
	require.Contains(t, page, "<code>&lt;ids&gt;</code>")
	require.Contains(t, page, "no such object")
	require.Contains(t, pages, "code/config-bad-name.html")
	require.Contains(t, pages["troubleshooting.html"], `<a href="code/not_found.html"><code>not_found</code></a>`)
}

// TestSameSite checks that equal programs write equal sites.
func TestSameSite(t *testing.T) { require.Equal(t, written(t), written(t)) }

// TestSyntax checks the syntax of pages: lists, tables, samples, marks and signs that HTML knows.
func TestSyntax(t *testing.T) {
	s := &site{places: map[string]string{}}
	p := page{Address: "x.html"}
	s.render(&p, "# Title\n\nA `<b>` and **bold `code`**, see `orchestrator help config restart`.\n\n- one\n  more\n- two\n\n1. first\n\n## Same\n\n| A | B |\n|---|---|\n| `a\\|b` | & |\n\n## Same\n\n```\nif a < b\n```\n")
	require.Equal(t, "Title", p.Title)
	require.Equal(t, `<h1 id="title">Title</h1>
<p>A <code>&lt;b&gt;</code> and <strong>bold <code>code</code></strong>, see <a href="config.html#restart"><code>orchestrator help config restart</code></a>.</p>
<ul>
<li>one more</li>
<li>two</li>
</ul>
<ol>
<li>first</li>
</ol>
<h2 id="same">Same</h2>
<table>
<tr><th>A</th><th>B</th></tr>
<tr><td><code>a|b</code></td><td>&amp;</td></tr>
</table>
<h2 id="same-">Same</h2>
<pre><code>if a &lt; b</code></pre>
`, string(p.Body))
	require.Equal(t, "Same", s.index[2].Title)
	require.Equal(t, "if a < b ", s.index[2].Text)
}
