package config

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"
)

// language returns all names that a file may hold.
func language(t *testing.T) []string {
	t.Helper()
	found, _ := problemsWith(cty.StringVal("?"))
	var names []string
	for name := range found {
		if !strings.HasSuffix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	require.Subset(t, names, []string{"agent", "agent.restart.burst", "agent.capabilities.repo.path", "defaults.stop.grace", "session.member.type", "secret.env", "locals"})
	return names
}

const manualPage = "../../cmd/orchestrator/help/config.md"

// shown returns the samples of the manual page by name, with the text of their values. Commented
// alternatives count.
func shown(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, sample := range samples(t) {
		spelled(t, sample, found)
	}
	require.NotEmpty(t, found)
	return found
}

func spelled(t *testing.T, text string, into map[string]string) {
	t.Helper()
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
	walk("", parsed(t, text))
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

// TestTheManualHasTheRightDefaults compares the defaults on the page with the reader's.
func TestTheManualHasTheRightDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]string{}
	spelled(t, reference(), defaults)
	there, compared := shown(t), 0
	for name, value := range defaults {
		said, ok := there[name]
		if strings.HasPrefix(name, "defaults.") { // the page shows the block with other values
			said, ok = cmp.Or(there[alone(name)], said), true
		}
		if value == "" || name == "agent.command" {
			continue // a block, or an attribute without a default
		}
		compared++
		require.True(t, ok, name)
		require.Equal(t, value, said, "%s in %s", name, manualPage)
	}
	require.Greater(t, compared, 50)
}
