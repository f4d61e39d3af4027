package delegation

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"orchestrator/wire/object"
)

// NewDecoder returns a decoder for a message of delegated work. In this dialect null means
// missing, since many programs write null for an absent value.
func NewDecoder(members []object.Member, pointer string) *object.Decoder {
	return &object.Decoder{Reader: object.Reader{Members: members, Pointer: pointer}, Issues: &object.Issues{NullIsAbsent: true}}
}

// readLabel reads text that becomes a key, since other messages may refer to it. A required label
// must not be empty.
func readLabel(p *object.Decoder, key string, must object.Presence) string {
	if !p.Has(key, must) {
		return ""
	}
	s := p.Reader.Text(key)
	if !p.Settle() {
		return ""
	}
	switch why := unfit(s); {
	case must == object.Required && object.IsBlank(s):
		p.Refuse(key, "must not be empty")
	case why != "":
		p.Refuse(key, why)
	default:
		return s
	}
	return ""
}

// readLabels reads an optional list of labels that are not blank.
func readLabels(p *object.Decoder, key string) []string {
	all := p.Names(key, object.Optional)
	for i, s := range all {
		if why := unfit(s); why != "" {
			p.RefuseItem(key, i, why)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// MaxChain is the maximum number of agents in a delegation chain.
const MaxChain = 100

// largestChain is the maximum total length of their names, in bytes.
const largestChain = 16 << 10

// readChain reads a list of labels of bounded size. Every request that follows from this one
// carries it.
func readChain(p *object.Decoder, key string) []string {
	all := readLabels(p, key)
	size := 0
	for _, name := range all {
		size += len(name)
	}
	if len(all) > MaxChain || size > largestChain {
		p.Refuse(key, fmt.Sprintf("must not have more than %d names in it, or %d KiB of them", MaxChain, largestChain>>10))
		return nil
	}
	return all
}

// unfit returns why a text is not a label, or "" if it is one.
func unfit(s string) string {
	switch {
	case len(s) > maxLabel:
		return fmt.Sprintf("must not be longer than %d bytes", maxLabel)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "must not have control characters in it"
	}
	return ""
}

// readObject reads an object without decoding it.
func readObject(p *object.Decoder, key string, must object.Presence) object.Raw {
	if !p.Has(key, must) {
		return nil
	}
	value := p.Document(key)
	p.Settle()
	return value
}

// maxLabel is the maximum length of a label, in bytes.
const maxLabel = 4096

// An Ambiguity returns the member that makes a message look like one of another dialect, and the
// reason. For a clear message it returns "".
type Ambiguity func(members []object.Member) (key, why string)

// checkKeys refuses an ambiguous message. When it is forwarded, its recipient would take it for
// another kind of message, and its sender could speak for the orchestrator or for another agent.
func checkKeys(p *object.Decoder, check Ambiguity) {
	key, why := check(p.Members)
	told := func(other object.Problem) bool { return other.Pointer == p.Below(key) }
	if key != "" && !slices.ContainsFunc(p.Issues.Problems, told) {
		p.Refuse(key, why)
	}
}

// checkLookalikes adds notes about ignored members that were probably meant as known ones. This
// dialect mixes two spellings of keys.
func checkLookalikes(p *object.Decoder, known ...string) {
	const longest = 40 // longer than any key of this dialect
	for i := range p.Members {
		if len(p.Members[i].Key) > longest {
			continue
		}
		key := string(p.Members[i].Key)
		if slices.Contains(known, key) {
			continue
		}
		for _, other := range known {
			if alike(key, other) {
				p.Note(key, "is ignored: it is spelled "+other)
			}
		}
	}
}

// alike reports whether two keys differ only in case, dashes and underscores. One of them must
// consist of letters otherwise.
func alike(a, b string) bool {
	for {
		a, b = strings.TrimLeft(a, "_-"), strings.TrimLeft(b, "_-")
		if a == "" || b == "" {
			return a == b
		}
		if a[0]|0x20 != b[0]|0x20 {
			return false
		}
		a, b = a[1:], b[1:]
	}
}
