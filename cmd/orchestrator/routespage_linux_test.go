package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// described has the members of the OpenAPI document that the page shows.
type described struct {
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		Summary  string
		Tags     []string
		Security []map[string][]string
	}
}

// The page of routes is generated from the program's OpenAPI document.
func TestRoutesPage(t *testing.T) {
	t.Parallel()
	s := troupe(t, puppets("coder"), "coder")
	s.cast("coder")
	status, text := s.fetch(s.door(), "http://orchestrator/openapi.json", nil)
	require.Equal(t, http.StatusOK, status)
	var d described
	require.NoError(t, json.Unmarshal(text, &d))
	pageIs(t, "help/routes.md", routesPage(t, &d), "TestRoutesPage")
}

func routesPage(t *testing.T, d *described) string {
	rows := make(map[string][]string)
	paths := make([]string, 0, len(d.Paths))
	for path := range d.Paths {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	require.Greater(t, len(paths), 50)
	for _, path := range paths {
		methods := make([]string, 0, len(d.Paths[path]))
		for method := range d.Paths[path] {
			methods = append(methods, method)
		}
		slices.Sort(methods)
		for _, method := range methods {
			e := d.Paths[path][method]
			require.Len(t, e.Tags, 1, path)
			var who []string
			for _, means := range e.Security {
				for name := range means {
					who = append(who, map[string]string{"operatorToken": "operators", "agentKey": "agents", "actorToken": "actors"}[name])
				}
			}
			row := fmt.Sprintf("| `%s %s` | %s | %s |\n", strings.ToUpper(method), path, cmp.Or(strings.Join(who, ", "), "all"), strings.ReplaceAll(e.Summary, "|", `\|`))
			rows[e.Tags[0]] = append(rows[e.Tags[0]], row)
		}
	}
	var b strings.Builder
	b.WriteString("# Routes\n\n<!-- Made by TestRoutesPage -update -->\n")
	b.WriteString("Every route of `/openapi.json`, and with which credential it may be asked. At the\noperators' socket none is needed: `orchestrator help http`.\n")
	for _, tag := range d.Tags {
		fmt.Fprintf(&b, "\n## %s\n\n| Route | Who | What it does |\n|---|---|---|\n%s", strings.TrimSuffix(tag.Description, "."), strings.Join(rows[tag.Name], ""))
		delete(rows, tag.Name)
	}
	require.Empty(t, rows, "routes of a kind that nobody explains")
	return b.String()
}
