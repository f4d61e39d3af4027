package config

import (
	"context"
	"time"
)

// Config is one configuration file, read and checked. It does not change
// after Load.
type Config struct {
	// File is the absolute path of the file, Dir its folder.
	File, Dir string

	Orchestrator Orchestrator
	HTTP         HTTP
	Log          Log
	Store        Store
	Protocol     Protocol
	Scheduler    Scheduler
	Bus          Bus
	Sessions     []Session
	Agents       []Agent

	environ []string // what the file was read with
	run     func(ctx context.Context, command []string, dir string, env []string) ([]byte, error)
	home    string            // for ~/
	secrets map[string]secret // by name

	// withheld names variables of our environment that hold what is sensitive.
	withheld map[string]bool

	places map[string]string // "http.listen" -> "orchestrator.hcl:24"
}

// Orchestrator is the block of the same name.
type Orchestrator struct {
	Name     string
	StateDir string // absolute
	Shutdown time.Duration
}

// HTTP is the listener beside the unix socket.
type HTTP struct {
	Listen      []string
	Hosts       []string
	MaxBody     int64
	Rate        int
	Certificate string // absolute, or empty
	Key         string // absolute, or empty
}

// Log is the orchestrator's own log.
type Log struct {
	Level  string
	Format string
}

// Store is the event log.
type Store struct {
	Kind    string
	Path    string // absolute
	Durable bool
}

// Protocol bounds what agents say.
type Protocol struct {
	MaxLine             int64
	MaxDepth            int
	Rate                int
	Burst               int
	RequestTimeout      time.Duration
	OnDependencyFailure string
	StrictResults       bool
}

// Scheduler says when tasks are matched with agents, and when they are tried again.
type Scheduler struct {
	OnCreate          bool
	OnOnline          bool
	AssignOffline     bool
	CountAssigned     bool
	MaxAttempts       int
	DelegationRetries int // of a delegated task that failed, where its agent says that another try may go well
}

// Bus is the mail between actors.
type Bus struct {
	Heartbeat time.Duration
	Stale     time.Duration
	Topics    []string
}

// Session is a group of agents that review one another's work.
type Session struct {
	Name          string
	Validation    string
	MaxIterations int
	OnMax         string
	RequireReview bool
	TaskTimeout   time.Duration // without a completion; 0: a task may take as long as it does
	ProgressAfter time.Duration // a task that takes longer is expected to report its progress
	ProgressEvery time.Duration // and then this often
	Members       []Member
}

// Member is one agent of a session, of this file or a remote one.
type Member struct {
	Name string
	Type string
}

// Place returns where an attribute such as "http.listen" or
// "agent.coder.command" was set, as file:line, or "" where its default holds.
func (c *Config) Place(attribute string) string { return c.places[attribute] }
