package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// What a code means, and what to do about it, stands in tables of the manual. A
// table of codes has one of these words at the head of a column, and the codes
// below it.
var codeHeads = []string{"Code", "Error code", "Reason"}

// codePages are those that have such tables: the ones that say what to do come
// last, as in an answer.
var codePages = []string{"exit-codes", "http", "protocol", "bus", "delegation", "troubleshooting", "config-codes"}

// explained answers help CODE for programs.
type explained struct {
	FormatVersion string        `json:"format_version"`
	Code          string        `json:"code"`
	Entries       []explanation `json:"entries"`
}

// explanation is what a page says of a code under the head of a column.
type explanation struct {
	Code  string `json:"-"`
	Topic string `json:"topic"`
	Head  string `json:"head"`
	Text  string `json:"text"`
}

// explain returns what a code means, or that it is not known.
func (a *App) explain(root *cobra.Command, args []string) error {
	all, err := CodeEntries()
	if err != nil {
		return err
	}
	asked := strings.Join(args, " ")
	found := entriesOf(all, asked)
	if len(found) == 0 {
		return UsageError(
			fmt.Sprintf("no help on %q%s", asked, DidYouMean(asked, slices.Concat(help.TopicNames(), VerbNames(root), codesOf(all)))),
			"Topics: orchestrator help     Commands: orchestrator     Codes: orchestrator help troubleshooting",
		)
	}
	if a.Flags.JSON {
		return a.Document(explained{FormatVersion: wire.FormatVersion, Code: found[0].Code, Entries: found})
	}
	var b strings.Builder
	said := make(map[string]bool)
	for _, e := range found {
		if !said[e.Head] { // what a code means is the same on every page
			fmt.Fprintf(&b, "- %s: %s\n", e.Head, e.Text)
		}
		said[e.Head] = true
	}
	fmt.Fprintf(&b, "\nMore: orchestrator help %s\n", found[len(found)-1].Topic)
	return a.Print("%s\n%s", a.Paint(a.Stdout).Strong(found[0].Code), a.readable(b.String()))
}

// entriesOf are those of a code as it is written, or else however it is
// written: conflict and CONFLICT, unknown-agent and config/unknown-agent.
func entriesOf(all []explanation, code string) []explanation {
	for _, same := range []func(explanation) bool{
		func(e explanation) bool { return e.Code == code },
		func(e explanation) bool { return strings.EqualFold(e.Code, code) },
		func(e explanation) bool { return strings.EqualFold(e.Code, "config/"+code) },
	} {
		var found []explanation
		for _, e := range all {
			if same(e) {
				found = append(found, e)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func codesOf(all []explanation) (codes []string) {
	for _, e := range all {
		codes = append(codes, e.Code)
	}
	return codes
}

// CodeEntries reads the tables of codes.
func CodeEntries() (all []explanation, err error) {
	for _, topic := range codePages {
		text, err := help.ReadTopic(topic)
		if err != nil {
			return nil, err
		}
		all = append(all, tableEntries(topic, text)...)
	}
	return all, nil
}

// tableEntries reads the tables of codes of a page: an entry for each column
// beside the code.
func tableEntries(topic, text string) (all []explanation) {
	var heads []string // of the table that the line is in
	at := -1           // the column of the codes
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") {
			heads = nil
			continue
		}
		row := term.RowFields(line)
		if heads == nil {
			heads = row
			at = slices.IndexFunc(heads, func(head string) bool { return slices.Contains(codeHeads, head) })
			continue
		}
		if at < 0 || at >= len(row) || strings.Trim(row[at], "-") == "" {
			continue
		}
		for i, text := range row {
			if i != at && i < len(heads) && text != "" {
				all = append(all, explanation{Code: row[at], Topic: topic, Head: heads[i], Text: text})
			}
		}
	}
	return all
}
