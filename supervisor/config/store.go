package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/config/storeurl"
)

// store reads the block of the event log.
func (r *reader) storeAttributes(s *Store, block hcl.Range) []attribute {
	return []attribute{
		attr("kind", &s.Kind, choice("sqlite", "memory", "jetstream", "postgres")).refused("sqlite"),
		attr("path", &s.Path, word).refused("events.db"),
		attr("durable", &s.Durable, truth).refused(true),
		attr("keep", s, keep).of(&s.KeepFor, &s.KeepBytes).refused("forever"),
		attr("url", s, serverURL(block)).of(&s.URL, &s.Servers, &s.User).refused(nil),
		attr("monitor", &s.Monitors, monitors).refused(nil),
		attr("peers", &s.Peers, peers).of(&s.Peers, &s.Node).refused(nil),
		attr("log", &s.Log, word).refused(nil),
		raw("credentials", func(a *hcl.Attribute) {
			r.secretNamed(a, "store.credentials", &s.Credentials, "credentials must refer to a secret block, for example secret.engine: shared credentials must not be in this file.")
		}, &s.Credentials).refused(nil),
		attr("ca", &s.CA, existingFile).refused(nil),
		attr("certificate", &s.Certificate, existingFile).refused(nil),
		attr("key", &s.Key, existingFile).refused(nil),
	}
}

// checkStore checks the relations of attributes.
func (r *reader) checkStore(b *hcl.Block, set map[string]hcl.Range) {
	s := &r.config.Store
	_, elsewhere := set["url"]
	switch {
	case s.Kind == "jetstream" && elsewhere:
		r.natsServers(b, set)
	case s.Kind == "jetstream":
		r.hubs(b, set)
	case s.Kind == "postgres":
		r.server(b, set)
	default:
		for _, name := range []string{"url", "monitor", "peers", "log", "credentials", "ca", "certificate", "key"} {
			if at, ok := set[name]; ok {
				r.report(at, Problem{
					Code: "config/not-shared", Summary: "Store is not shared",
					Detail: fmt.Sprintf("%s needs a store that several machines share: kind = \"jetstream\" or \"postgres\".", name),
				})
			}
		}
	}
}

// shares checks the attributes that all stores of several hubs need, and that attributes of another kind are not set.
func (r *reader) shares(b *hcl.Block, set map[string]hcl.Range, needs, others []string, why string) {
	s := &r.config.Store
	if s.Log == "" {
		s.Log = "team"
	}
	for _, name := range needs {
		if _, ok := set[name]; !ok {
			r.missing(b, fmt.Sprintf("A store of kind %q needs %s.", s.Kind, name), "To set up a shared store: orchestrator help many-machines")
		}
	}
	for _, name := range others {
		if at, ok := set[name]; ok {
			r.report(at, Problem{
				Code: "config/other-store", Summary: "Attribute of another store",
				Detail: fmt.Sprintf("This store of kind %q has no %s: %s", s.Kind, name, why),
			})
		}
	}
	for _, name := range []string{"keep", "durable"} {
		if at, ok := set[name]; ok && (name == "keep" && (s.KeepFor > 0 || s.KeepBytes > 0) || name == "durable" && !s.Durable) {
			r.report(at, Problem{
				Code: "config/shared-keeps-all", Summary: "A shared store keeps everything",
				Detail: fmt.Sprintf("A store of kind %q is always durable, and keeps all records: a hub that joins later needs them.", s.Kind),
			})
		}
	}
}

// hubs checks a store that the hubs keep themselves.
func (r *reader) hubs(b *hcl.Block, set map[string]hcl.Range) {
	s := &r.config.Store
	r.shares(b, set, []string{"peers", "credentials"}, []string{"monitor"}, "the hubs keep the record themselves. List them in peers.")
	files, remote := s.CA != "" && s.Certificate != "" && s.Key != "", slices.ContainsFunc(s.Peers, storeurl.IsElsewhere)
	if at, ok := set["peers"]; ok && remote && !files {
		r.report(at, Problem{
			Code: "config/hubs-without-tls", Summary: "Hubs without certificates",
			Detail: "Hubs on several machines need ca, certificate and key: their traffic must be encrypted.",
		})
	}
	if at, ok := set["peers"]; ok && len(s.Peers) == 2 {
		r.report(at, Problem{
			Severity: SeverityWarning, Code: "config/two-hubs", Summary: "Two hubs tolerate no failure",
			Detail: "A majority of the hubs must be up, and the majority of two is both. Use three.",
		})
	}
	if at, ok := set["peers"]; ok {
		r.thisHub(at)
	}
}

// thisHub finds out which of the hubs is this one.
func (r *reader) thisHub(at hcl.Range) {
	s := &r.config.Store
	if named := r.options.Node; named != "" {
		for _, peer := range s.Peers {
			if host, _, _ := net.SplitHostPort(peer); peer == named || host == named {
				s.Node = peer
				return
			}
		}
		r.report(at, Problem{
			Code: "config/unknown-hub", Summary: "Unknown hub",
			Detail: fmt.Sprintf("%q, from --node or ORC_NODE, is not one of the peers.", named),
		})
		return
	}
	own := slices.DeleteFunc(slices.Clone(s.Peers), func(peer string) bool { return !storeurl.IsHere(peer) })
	if len(own) == 1 {
		s.Node = own[0]
	}
}

// peers reads the addresses of hubs.
func peers(into *[]string, v value) {
	items, ok := v.items("a list of addresses")
	if !ok {
		return
	}
	*into = nil
	for _, item := range items {
		text, ok := item.asText()
		if !ok {
			continue
		}
		host, port, err := net.SplitHostPort(text)
		n, portErr := strconv.Atoi(port)
		switch {
		case err != nil || host == "" || portErr != nil || n < 1 || n > math.MaxUint16:
			item.reject("bad-address", "Bad address", fmt.Sprintf("A peer must be host:port, for example \"h1:7434\", not %s.", item.quoted()), "")
		case slices.Contains(*into, text):
			item.reject("duplicate-peer", "Duplicate peer", fmt.Sprintf("%s is listed twice.", item.quoted()), "")
		default:
			*into = append(*into, text)
		}
	}
	if len(items) == 0 {
		v.reject("empty", "Empty value", "peers must not be empty.", "")
	}
}
