package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orchestrator/wire/object"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// diagnose converts diagnostics of the HCL library into problems. It replaces the codes, and
// the texts that are about the library instead of the file. known are the names that the body
// may hold, or nil.
func (r *reader) diagnose(diags hcl.Diagnostics, code string, known *section) {
	for _, d := range diags {
		at := hcl.Range{}
		if d.Subject != nil {
			at = *d.Subject
		}
		p := Problem{Code: code, Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			p.Severity = SeverityWarning
		}
		reword(&p, d)
		if !r.rewordSyntax(&p, at) {
			continue
		}
		if known != nil {
			r.rewordBody(&p, d, at, known)
		}
		around := at
		if d.Context != nil && code == "config/syntax" {
			around = *d.Context
		}
		r.reportWithin(around, at, p)
	}
}

// argumentPrefix is the text that the library puts before the error of a function.
var argumentPrefix = expression(`^Invalid value for "([^"]*)" parameter: `)

func reword(p *Problem, d *hcl.Diagnostic) {
	switch d.Summary {
	case "Attribute redefined", "Duplicate argument", "Duplicate attribute definition":
		p.Code = "config/duplicate-attribute"
	case "Call to unknown function":
		p.Code = "config/unknown-function"
	case "Invalid function argument", "Error in function call":
		p.Code = "config/bad-argument"
		p.Detail = argumentPrefix().ReplaceAllString(p.Detail, "")
		if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok && call.CalledFunctionName() == "env" {
			p.Code = "config/missing-env"
		}
	}
	p.Detail, p.Hint = splitHint(p.Detail)
	if d.Summary == "Invalid single-argument block definition" {
		p.Summary, p.Detail = "Too many attributes in one line", "A block in one line can hold one attribute only."
		p.Hint = "Write each attribute in its own line, and the closing brace below them."
	}
}

// splitHint separates the library's suggestion from the detail.
func splitHint(detail string) (rest, hint string) {
	if i := strings.Index(detail, "Did you mean "); i >= 0 {
		return strings.TrimSpace(detail[:i]), detail[i:]
	}
	return detail, ""
}

// rewordBody describes an unknown name in a body. It adds the suggestion itself, because the
// library offers only names that are not set yet.
func (r *reader) rewordBody(p *Problem, d *hcl.Diagnostic, at hcl.Range, known *section) {
	switch {
	case d.Summary == "Unsupported argument", d.Summary == "Extraneous JSON object property":
		name := r.sources.nameAt(at)
		p.Code, p.Summary = "config/unknown-attribute", "Unknown attribute"
		p.Detail = fmt.Sprintf("%s has no attribute %q.", known.title, name)
		p.Hint = cmp.Or(placeOf(name, known), didYouMean(name, known.names()), known.listed())
		if known.hasChild(name) {
			p.Hint = fmt.Sprintf("It is a block: write %s { … } without =.", name)
		}
	case d.Summary == "Unsupported block type":
		name := r.sources.nameAt(at)
		p.Code, p.Summary = "config/unknown-block", "Unknown block"
		p.Detail = fmt.Sprintf("%s has no block %q.", known.title, name)
		p.Hint = cmp.Or(didYouMean(name, known.names()), known.listed())
		if known.hasAttribute(name) {
			p.Hint = fmt.Sprintf("It is an attribute: write %s = …", name)
		}
	case strings.HasPrefix(d.Summary, "Extraneous label"), strings.HasPrefix(d.Summary, "Missing name for"),
		d.Summary == "Missing block label":
		p.Code = "config/bad-label"
		if named, ok := strings.CutPrefix(d.Summary, "Missing name for "); ok {
			p.Detail, p.Hint = "", fmt.Sprintf("Each %s has a name: %s \"NAME\" { … }", named, named)
		}
	default:
		p.Code = "config/bad-body"
	}
}

// nearest returns the known name that was most likely meant, or "".
func nearest(wrong string, known []string) string {
	if len(wrong) < 2 {
		return "" // any other single letter would do
	}
	best, bestDistance := "", min(3, (len(wrong)+1)/2)+1
	low := strings.ToLower(wrong)
	for _, name := range slices.Sorted(slices.Values(known)) {
		if name == wrong {
			continue
		}
		d := object.EditDistance(low, strings.ToLower(name))
		if d >= bestDistance && len(low) >= 3 && strings.Contains(strings.ToLower(name), low) {
			d = bestDistance - 1 // TERM for SIGTERM
			if best != "" {
				continue
			}
		}
		if d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// didYouMean is nearest as a sentence, or "".
func didYouMean(wrong string, known []string) string {
	if name := nearest(wrong, known); name != "" {
		return fmt.Sprintf("Did you mean %q?", name)
	}
	return ""
}

// quotedList joins names for a sentence: "a", "b" or "c".
func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
