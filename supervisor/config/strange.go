package config

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// strange recognizes a file of a completely different kind. A parser would report a hundred
// mistakes in it, but not the real one.
func strange(text []byte, isJSON bool) (Problem, bool) {
	p := Problem{Code: "config/not-hcl", Summary: "File is no configuration"}
	first := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		p.Detail, p.Hint = "It is UTF-16.", "Save it as UTF-8."
	case bytes.IndexByte(text, 0) >= 0:
		p.Detail = "It is no text: it holds NUL bytes."
	case !isJSON && bytes.HasPrefix(first, []byte("{")):
		p.Detail, p.Hint = "It looks like JSON.", "Call it orchestrator.hcl.json, or write it as HCL."
	default:
		return Problem{}, false
	}
	return p, true
}

// warnOfEmpty warns about an empty file, which is valid but seldom intended.
func (r *reader) warnOfEmpty(body hcl.Body, name string) {
	native, ok := body.(*hclsyntax.Body)
	if ok && len(native.Attributes) == 0 && len(native.Blocks) == 0 {
		r.report(hcl.Range{Filename: name}, Problem{
			Severity: SeverityWarning, Code: "config/empty-file", Summary: "File is empty",
			Detail: "It declares no agent, so there is nothing to start.",
			Hint:   `An agent is written as: agent "coder" { command = ["python3", "coder.py"] }`,
		})
	}
}

// rewordSyntax explains a colon in place of an equals sign, which the parser does not
// recognize. It returns false for a mistake that follows from single quotes.
func (r *reader) rewordSyntax(p *Problem, at hcl.Range) bool {
	src := r.sources[at.Filename]
	if src == nil || p.Summary != "Argument or block definition required" || at.End.Byte > len(src.text) {
		return true
	}
	name := r.nameAt(at)
	switch after := bytes.TrimLeft(src.text[at.End.Byte:], " \t"); {
	case bytes.HasPrefix(after, []byte("'")):
		return false // single quotes have their own message
	case bytes.HasPrefix(after, []byte(":")):
		p.Detail = "There is no colon in this language."
		p.Hint = fmt.Sprintf("An attribute is written %s = …, a block %s { … }.", name, name)
	}
	return true
}

// placeOf returns a hint if an attribute at the top of the file belongs in an agent block.
func placeOf(name string, known *section) string {
	if known.title != "The file" {
		return ""
	}
	for _, a := range new(reader).agentAttributes(&Agent{}, new([]dependency), nil) {
		if a.name == name {
			return fmt.Sprintf("It stands in the block of an agent: agent \"NAME\" { %s = … }", name)
		}
	}
	return ""
}

// meansCommand reports whether an agent has a misspelled command attribute. The missing command
// is then not reported as well.
func meansCommand(b *hcl.Block) bool {
	native, ok := b.Body.(*hclsyntax.Body)
	if !ok {
		return false
	}
	for name := range native.Attributes {
		if nearest(name, []string{"command"}) != "" {
			return true
		}
	}
	return false
}

// listed returns a hint with all names that a section may hold.
func (s *section) listed() string {
	return fmt.Sprintf("It may hold %s.", strings.ReplaceAll(quotedList(s.names()), `"`, ""))
}
