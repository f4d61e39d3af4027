package config

import (
	"fmt"
	pathpkg "path"
	"time"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/hosts"
)

// hostBlocks reads the host blocks.
func (r *reader) hostBlocks(blocks hcl.Blocks) {
	seen := map[string]hcl.Range{}
	for _, b := range blocks {
		if !r.unique(seen, b) {
			continue
		}
		h := hosts.Rule{Name: b.Labels[0]}
		at := "host." + h.Name
		r.config.places[at] = place(b.DefRange)
		r.read(b.Body, r.scope, section{title: fmt.Sprintf("Host %q", h.Name), path: at, attributes: []attribute{
			attr("names", &h.Names, patterns),
			attr("labels", &h.Labels, dictionary),
			attr("agents", &h.Agents, patterns),
			attr("grace", &h.Grace, grace),
		}})
		r.config.Hosts = append(r.config.Hosts, h)
	}
}

// shortestGrace is how long a link may be silent. A shorter grace would kill agents with an intact link.
const shortestGrace = 6 * time.Second

// grace reads how long agents live on a host without a hub.
func grace(into *time.Duration, v value) {
	var d time.Duration
	if duration(&d, v); d != 0 && d < shortestGrace {
		v.reject("out-of-range", "Duration out of range", fmt.Sprintf("%s must be at least %s: a link may be silent for that long.", v.name, shortestGrace), "")
	} else if d != 0 {
		*into = d
	}
}

// isPlaced reports whether an agent has a placement block.
func isPlaced(b *hcl.Block) bool {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "placement"}}})
	return content != nil && len(content.Blocks) > 0
}

// placement returns the block of an agent.
func (r *reader) placement(at string, a *Agent, sc *scope) child {
	return child{kind: "placement", read: func(b *hcl.Block) {
		p := new(hosts.Placement)
		a.Placement = p
		r.readFresh(b.Body, sc, section{title: "Block placement", path: at + ".placement", attributes: []attribute{
			attr("hosts", &p.Hosts, pattern).initially("*"),
			attr("labels", &p.Labels, dictionary),
			attr("spread", &p.Spread, truth),
			attr("on_host_lost", &a.Wait, chosen("wait", "wait", "move")).initially("wait"),
		}})
	}}
}

// pattern reads a pattern of names, such as "gpu-*".
func pattern(into *string, v value) {
	s, ok := v.asText()
	if !ok {
		return
	}
	if _, err := pathpkg.Match(s, ""); s == "" || err != nil {
		v.reject("bad-pattern", "Bad pattern", fmt.Sprintf("%s must be a name, in which * matches any text, for example \"gpu-*\", not %s.", v.name, v.quoted()), "")
		return
	}
	*into = s
}

// patterns reads a list of patterns.
func patterns(into *[]string, v value) {
	items, ok := v.items("a list of names")
	if !ok {
		return
	}
	*into = nil
	for _, item := range items {
		var s string
		if pattern(&s, item); s != "" {
			*into = append(*into, s)
		}
	}
}

// dictionary reads an object of texts.
func dictionary(into *map[string]string, v value) {
	ty := v.cty.Type()
	if !ty.IsObjectType() && !ty.IsMapType() {
		v.wrongKind("a map of texts such as { gpu = \"a100\" }")
		return
	}
	*into = nil
	for key, element := range v.cty.AsValueMap() {
		item := v
		item.cty, item.name = element, v.name+"."+key
		s, ok := item.asText()
		if !ok {
			return
		}
		if *into == nil {
			*into = map[string]string{}
		}
		(*into)[key] = s
	}
}
