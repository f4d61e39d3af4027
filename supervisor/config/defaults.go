package config

import (
	"path/filepath"
	"time"
)

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
	gib int64 = 1 << 30
)

// standard returns the configuration of a file that sets nothing.
func standard(file string) *Config {
	dir := filepath.Dir(file)
	c := &Config{
		File: file,
		Dir:  dir,
		Orchestrator: Orchestrator{
			Name:     filepath.Base(dir),
			StateDir: filepath.Join(dir, ".orchestrator"),
			Shutdown: 40 * time.Second,
		},
		HTTP: HTTP{
			Hosts:   []string{"localhost", "127.0.0.1", "::1"},
			MaxBody: 16 * mib,
			Rate:    200,
		},
		Log:   Log{Level: "info", Format: "auto"},
		Store: Store{Kind: "sqlite", Path: "events.db", Durable: true},
		Protocol: Protocol{
			MaxLine:             16 * mib,
			MaxDepth:            64,
			Rate:                100,
			Burst:               100,
			RequestTimeout:      30 * time.Second,
			OnDependencyFailure: "auto",
			StrictResults:       true,
		},
		Scheduler: Scheduler{OnOnline: true, AssignOffline: true, MaxAttempts: 3},
		Bus:       Bus{Heartbeat: 60 * time.Second, Stale: 180 * time.Second},
		places:    map[string]string{},
		secrets:   map[string]secret{},
		withheld:  map[string]bool{},
	}
	return c
}

// standardAgent returns an agent whose block sets nothing, before the defaults block is
// applied.
func standardAgent() Agent {
	return Agent{
		InheritEnv: InheritEnv{All: true},
		Protocol:   "native",
		Stdin:      "pipe",
		Role:       "worker",
		Actor:      "auto",
		Autostart:  true,
		OnExit:     "auto",
		Client:     Client{Permission: "ask", OnTurnEnd: "remind", Resume: true},
		Restart: Restart{
			Policy:     "on-failure",
			Delay:      500 * time.Millisecond,
			Factor:     2,
			MaxDelay:   30 * time.Second,
			Jitter:     0.2,
			ResetAfter: 60 * time.Second,
			Burst:      5,
			Window:     2 * time.Minute,
			Permanent:  []int{64, 78, 126, 127},
		},
		Stop: Stop{
			CloseStdin: 30 * time.Second,
			Unspoken:   time.Second,
			Signal:     "SIGTERM",
			Grace:      5 * time.Second,
		},
		Health:       Health{WriteTimeout: 10 * time.Second, OnStalled: "mark"},
		Limits:       Limits{Mailbox: 1024, MailboxBytes: 32 * mib},
		Output:       Output{Dir: "logs", MaxSize: 16 * mib, Keep: 8, Tail: 200},
		Capabilities: Capabilities{MaxConcurrentTasks: 1},
	}
}
