package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// delegated is a message about delegated work that is to be read. Programs that have
// nothing to say often say null, and nothing in this dialect means something else
// by it.
func delegated(members []member, pointer string) *decoder {
	return &decoder{Object: Object{members: members, pointer: pointer}, all: &judgement{sparing: true}}
}

// label is text that others may refer to: it becomes a key. One that must be there
// says something.
func (p *decoder) label(key string, must need) string {
	if !p.has(key, must) {
		return ""
	}
	s := p.Text(key)
	if !p.settle() {
		return ""
	}
	switch why := unfit(s); {
	case must == needed && blank(s):
		p.wrong(key, "must not be empty")
	case why != "":
		p.wrong(key, why)
	default:
		return s
	}
	return ""
}

// labels is an optional list of labels that say something.
func (p *decoder) labels(key string) []string {
	all := p.names(key, optional)
	for i, s := range all {
		if why := unfit(s); why != "" {
			p.wrongItem(key, i, why)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// LongestChain is how many may have had a task in hand.
const LongestChain = 100

// largestChain is how long their names may be together.
const largestChain = 16 << 10

// chain is a list of labels that does not grow for ever: it goes with each request
// that follows from this one.
func (p *decoder) chain(key string) []string {
	all := p.labels(key)
	size := 0
	for _, name := range all {
		size += len(name)
	}
	if len(all) > LongestChain || size > largestChain {
		p.wrong(key, fmt.Sprintf("must not have more than %d names in it, or %d KiB of them", LongestChain, largestChain>>10))
		return nil
	}
	return all
}

// unfit is why a text is no label, "" if it is one.
func unfit(s string) string {
	switch {
	case len(s) > longestID:
		return fmt.Sprintf("must not be longer than %d bytes", longestID)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "must not have control characters in it"
	}
	return ""
}

// object is an object that is not looked into.
func (p *decoder) object(key string, must need) Raw {
	if !p.has(key, must) {
		return nil
	}
	value := p.Document(key)
	p.settle()
	return value
}

// unmistakable refuses what an agent would take for something else when it is
// forwarded: its members say what a message is, and its sender could speak
// for the orchestrator, or for another agent.
func (p *decoder) unmistakable() {
	var k keys
	for i := range p.members {
		k.note(&p.members[i])
	}
	key, why := k.mistakable()
	told := func(other Problem) bool { return other.Pointer == p.below(key) }
	if key != "" && !slices.ContainsFunc(p.all.problems, told) {
		p.wrong(key, why)
	}
}

// mistakable is the member that makes something else of a message about delegated
// work, and what; "" when none does.
func (k *keys) mistakable() (key, why string) {
	kind, _ := text(k.kind)
	switch {
	case k.twice != "":
		return k.twice, "stands twice"
	case isOwn(kind):
		return "type", "must not begin with request:, event:, response: or notify:"
	case k.calls():
		return "jsonrpc", "makes it the call of a tool"
	case k.session():
		return "message_type", "makes it a message of a session"
	case k.mails(), k.seq != nil && k.createdAt != nil && k.fromActor != nil:
		return "from_actor", "makes it mail"
	}
	return "", ""
}

// lookalikes notes members that are passed over although they were probably meant:
// this dialect mixes two ways of spelling keys.
func (p *decoder) lookalikes(known ...string) {
	const longest = 40 // no key of this dialect is, however it is spelled
	for i := range p.members {
		if len(p.members[i].key) > longest {
			continue
		}
		key := string(p.members[i].key)
		if slices.Contains(known, key) {
			continue
		}
		for _, other := range known {
			if alike(key, other) {
				p.odd(key, "is passed over: it is spelled "+other)
			}
		}
	}
}

// alike reports whether two keys are the same but for capitals, dashes and underscores.
// One of them has letters alone beside these.
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
