package config

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/budget"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/settings"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// A Config is a configuration file, read and checked. It does not change after Load.
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
	Notify       Notify
	Prices       map[string]Price // of models
	Merge        Merge
	Hosts        []hosts.Rule
	Sessions     []Session
	Agents       []Agent
	Tasks        []Task // each behind the tasks that it needs

	environ    []string // the environment that the file was read with
	run        func(ctx context.Context, command []string, dir string, env []string) ([]byte, error)
	home       string                    // replaces ~ in paths
	references map[string]hcl.Expression // attributes that name a secret
	secrets    map[string]secret         // by name

	// withheld holds the names of environment variables with sensitive values.
	withheld map[string]bool

	places map[string]string // "http.listen" -> "orchestrator.hcl:24"
}

// Orchestrator holds the settings of the orchestrator block.
type Orchestrator struct {
	Name     string
	StateDir string // absolute
	Shutdown time.Duration
}

// HTTP configures the listeners other than the unix socket.
type HTTP struct {
	Listen      []string
	Hosts       []string
	MaxBody     int64
	Rate        int
	Certificate string // absolute, or empty
	Key         string // absolute, or empty
}

// Log configures the orchestrator's own log.
type Log struct {
	Level  string
	Format string
}

// Store configures the event log.
type Store struct {
	Kind    string
	Path    string // absolute
	Durable bool

	// How much history stays; both 0: all.
	KeepFor   time.Duration
	KeepBytes int64

	// Of a store that several hubs share.
	URL         string   // of the server of PostgreSQL, or of the servers of NATS, without a password
	Servers     []string // of NATS, each as a URL without a user
	User        string   // of the servers of NATS; may be ""
	Monitors    []string // the URLs of their monitors
	Peers       []string // the addresses of all hubs; nil with servers
	Node        string   // the name of this hub, which is one of the peers if there are any
	Log         string   // the name of the team
	Credentials string   // the name of a secret
	CA          string   // files, absolute, or all empty
	Certificate string
	Key         string
}

// Shared reports whether several hubs share the store.
func (s *Store) Shared() bool { return s.Kind == "jetstream" || s.Kind == "postgres" }

// Protocol limits the messages of agents.
type Protocol struct {
	MaxLine             int64
	MaxDepth            int
	Rate                int
	Burst               int
	RequestTimeout      time.Duration
	OnDependencyFailure string
	StrictResults       bool
}

// Scheduler determines when tasks are matched with agents and when they are retried.
type Scheduler struct {
	OnCreate          bool
	OnOnline          bool
	AssignOffline     bool
	CountAssigned     bool
	MaxAttempts       int
	VerifyAttempts    int // failed verifications of a task before a person decides
	DelegationRetries int // retries of a delegated task that failed with a recoverable error
}

// Bus configures the mail between actors.
type Bus struct {
	Heartbeat time.Duration
	Stale     time.Duration
	Topics    []string
}

// A Session is a group of agents that review each other's work.
type Session struct {
	session.Spec
	Work // for all its tasks
}

// Place returns the position, as file:line, where an attribute such as "http.listen" or "agent.coder.command" was set.
// It returns "" for a default.
func (c *Config) Place(attribute string) string { return c.places[attribute] }

// Alone returns the configuration of a single command without a file. It has the default
// settings, its state in stateDir, and no restarts.
func Alone(dir, stateDir, name string, command []string) *Config {
	c := standard(filepath.Join(dir, "orchestrator.hcl"))
	c.Orchestrator.Name, c.Orchestrator.StateDir = name, stateDir
	c.Store.Path = within(stateDir, c.Store.Path)
	a := c.standardAgent()
	a.Name, a.Block, a.Place = name, name, "the command line"
	a.Command, a.Dir = command, dir
	a.Restart.Policy = "never"
	c.Agents = []Agent{a}
	return c
}

// NameRule describes the valid names of agents.
const NameRule = "up to 63 letters, digits, dots, - and _, the first a letter or digit"

// IsRole reports whether word is a valid role. The word none means no role.
func IsRole(word string) bool { return IsName(word) && word != "none" }

// IsName reports whether name is a valid name of an agent.
func IsName(name string) bool { return agentName().MatchString(name) }

// OnExits lists the values of on_exit.
var OnExits = []string{"auto", "fail", "requeue"}

// Guest returns an agent that is in no file, because a program joins over a connection. It has
// default settings and no command. It gets tasks only if works is true.
func (c *Config) Guest(name, role string, capabilities []string, works bool) Agent {
	a := c.standardAgent()
	a.Name, a.Block, a.Place, a.Description = name, name, "a pipe", "joined by pipe"
	a.Role, a.Names = role, slices.Clone(capabilities)
	if !works {
		a.Capacity = 0
	}
	a.Autostart = false
	return a
}

// An Agent is a program to run: an agent block, or one replica of it. The file cannot have all of its settings: those for
// the supervisor are complete only there.
type Agent struct {
	settings.Agent
	Index int // among the block's replicas

	EnvFile      []string // absolute
	InheritEnv   InheritEnv
	Protocol     string
	Operator     bool // it may ask at the operators' socket
	Connections  int  // to the socket of a run
	Confined     Confine
	Capabilities hub.Capabilities
	Outputs      []OutputSchema
	Work
	VerifyEnv []string      // variables with secrets that setup and verify commands get
	Budget    *budget.Limit // nil: none

	env environment
}

// The protocols of coding agents.
const (
	ProtocolClaude = "claude"
	ProtocolCodex  = "codex"
	ProtocolACP    = "acp"
)

// IsClient reports whether the agent is a coding agent.
func (a *Agent) IsClient() bool {
	return a.Protocol == ProtocolClaude || a.Protocol == ProtocolCodex || a.Protocol == ProtocolACP
}

// InheritEnv selects the variables that an agent inherits: all, all that do not look like credentials, or the named
// ones. The zero value selects none.
type InheritEnv struct {
	All      bool
	Ordinary bool
	Names    []string
}
