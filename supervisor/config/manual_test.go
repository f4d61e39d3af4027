package config

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/require"
)

// asked is a body that has every requested name, and records the names: the language as the
// reader defines it.
type asked struct {
	path string
	all  map[string]bool // names with those of the blocks around them: agent.stop.grace
}

func (a *asked) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content := &hcl.BodyContent{}
	for _, attribute := range schema.Attributes {
		a.all[a.path+attribute.Name] = true
	}
	for _, header := range schema.Blocks {
		a.all[a.path+header.Type] = true
		content.Blocks = append(content.Blocks, &hcl.Block{
			Type: header.Type, Labels: []string{"any"}, LabelRanges: []hcl.Range{{}},
			Body: &asked{path: a.path + header.Type + ".", all: a.all},
		})
	}
	return content, nil
}

func (a *asked) PartialContent(*hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	return &hcl.BodyContent{}, a, nil // the reader requests all of a body later
}

func (a *asked) JustAttributes() (hcl.Attributes, hcl.Diagnostics) { return nil, nil }
func (a *asked) MissingItemRange() hcl.Range                       { return hcl.Range{} }

// language returns all names that a file may hold.
func language(t *testing.T) []string {
	t.Helper()
	r := &reader{options: Options{NoEnv: true}, sources: map[string]*source{}, agents: map[string]*block{}, actors: map[string]string{}}
	r.config = standard("/shop/orchestrator.hcl")
	r.functions = r.functionTable()
	body := &asked{all: map[string]bool{}}
	r.file(body)
	names := slices.Sorted(maps.Keys(body.all))
	require.Subset(t, names, []string{"agent", "agent.restart.burst", "agent.capabilities.repo.path", "defaults.stop.grace", "session.member.type", "secret.env", "locals"})
	return names
}

const manualPage = "../../cmd/orchestrator/help/config.md"

// shown returns the samples of the manual page by name, with the text of their values. Commented
// alternatives count.
func shown(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(manualPage)
	require.NoError(t, err)
	found := map[string]string{}
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 1 {
			spelled(t, regexp.MustCompile(`(?m)^(\s*)# (\w+ += )`).ReplaceAllString(part, "$1$2"), found)
		}
	}
	require.NotEmpty(t, found)
	return found
}

func spelled(t *testing.T, text string, into map[string]string) {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(text), "sample", hcl.InitialPos)
	require.False(t, diags.HasErrors(), "%v\n%s", diags, text)
	var walk func(prefix string, body *hclsyntax.Body)
	walk = func(prefix string, body *hclsyntax.Body) {
		for _, a := range body.Attributes {
			at := a.Expr.Range()
			if _, again := into[prefix+a.Name]; !again { // a later sample shows another value
				into[prefix+a.Name] = text[at.Start.Byte:at.End.Byte]
			}
		}
		for _, b := range body.Blocks {
			into[prefix+b.Type] = ""
			walk(prefix+b.Type+".", b.Body)
		}
	}
	walk("", file.Body.(*hclsyntax.Body))
}

// alone returns a name without its agent or defaults block, because the page shows their blocks
// once.
func alone(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "agent."), "defaults.")
}

// TestTheManualHasTheWholeLanguage checks that every block and attribute is on the page.
func TestTheManualHasTheWholeLanguage(t *testing.T) {
	t.Parallel()
	there, all := shown(t), language(t)
	for _, name := range all {
		_, whole := there[name]
		_, short := there[alone(name)]
		if !whole && !short {
			t.Errorf("%s has no entry in %s", name, manualPage)
		}
	}
	for name := range there {
		if root, _, _ := strings.Cut(name, "."); root != "locals" && !slices.Contains(all, name) && !slices.Contains(all, "agent."+name) {
			t.Errorf("%s has %s, which there is not", manualPage, name)
		}
	}
}

// TestTheManualHasTheRightDefaults compares the defaults on the page with defaults.hcl, which
// another test compares with the code.
func TestTheManualHasTheRightDefaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/defaults.hcl")
	require.NoError(t, err)
	defaults := map[string]string{}
	spelled(t, string(text), defaults)
	there, compared := shown(t), 0
	for name, value := range defaults {
		said, ok := there[name]
		if strings.HasPrefix(name, "defaults.") { // the page shows the block with other values
			said, ok = cmp.Or(there[alone(name)], said), true
		}
		if value == "" || name == "orchestrator.name" || name == "agent.command" {
			continue // a block, or an attribute without a default
		}
		compared++
		require.True(t, ok, name)
		require.Equal(t, value, said, "%s in %s", name, manualPage)
	}
	require.Greater(t, compared, 50)
}
