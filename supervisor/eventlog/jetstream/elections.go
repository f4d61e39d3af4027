package jetstream

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname
)

// These are variables of the server. TestElections reads them back, and a version of the server
// without them cannot be linked.
var (
	//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
	minElectionTimeout time.Duration
	//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
	maxElectionTimeout time.Duration
	//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
	hbInterval time.Duration
	//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
	lostQuorumInterval time.Duration
	//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
	lostQuorumCheck time.Duration
)

// shortenElections makes servers that are started later notice a lost leader after 1.5 to 3 seconds.
// The other times keep their proportions.
var shortenElections = sync.OnceFunc(func() {
	minElectionTimeout, maxElectionTimeout = 1500*time.Millisecond, 3*time.Second
	hbInterval = 400 * time.Millisecond
	lostQuorumInterval, lostQuorumCheck = 4*time.Second, 4*time.Second
})
