package config

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/config/storeurl"
)

// natsServers checks a store that servers of NATS keep, which do not belong to the hubs. Any machine may
// be a hub.
func (r *reader) natsServers(b *hcl.Block, set map[string]hcl.Range) {
	s := &r.config.Store
	needs := []string{"url", "monitor", "credentials"}
	if s.Certificate != "" {
		needs = needs[:2] // the servers may know the hub by it
	}
	r.shares(b, set, needs, []string{"peers"}, "the servers of url keep the record.")
	for name, other := range map[string]string{"certificate": "key", "key": "certificate"} {
		if at, ok := set[name]; ok && set[other] == (hcl.Range{}) {
			r.report(at, Problem{Code: "config/half-certificate", Summary: "Incomplete certificate", Detail: fmt.Sprintf("%s needs %s.", name, other)})
		}
	}
	name, _ := os.Hostname()
	s.Node = cmp.Or(r.options.Node, name, "hub")
}

// natsURL reads the URLs of servers of NATS, in a block. A problem shows its line, so one with a password is
// reported at the block.
func natsURL(into *Store, block hcl.Range, v value, text string) {
	u, ok := storeurl.NATS(text)
	switch {
	case u.Password:
		v.r.reportPassword(block)
	case !ok:
		v.reject("bad-url", "Bad URL", "url must be the URL of NATS servers, for example \"tls://hub@n1:4222,n2:4222,n3:4222\".", "")
	case u.Remote && !strings.HasPrefix(text, "tls:"):
		v.reject("server-without-tls", "Server without TLS",
			"A server is on another machine: traffic to it must be encrypted.",
			"Write tls:// instead of nats://, and set ca if you use your own certificate authority.")
	default:
		into.URL, into.Servers, into.User = text, u.Servers, u.User
	}
}

// monitors reads the URLs of the monitors of servers of NATS.
func monitors(into *[]string, v value) {
	items, ok := v.items("a list of URLs")
	if !ok {
		return
	}
	*into = nil
	for _, item := range items {
		text, ok := item.asText()
		if !ok {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			item.reject("bad-url", "Bad URL", fmt.Sprintf("A monitor must be the URL of a server's http_port or https_port, for example \"http://n1:8222\", not %s.", item.quoted()), "")
			continue
		}
		*into = append(*into, text)
	}
	if len(items) == 0 {
		v.reject("empty", "Empty value", "monitor must not be empty.", "")
	}
}
