package config

import "time"

// An Agent is a program to run: an agent block, or one replica of it.
type Agent struct {
	Name  string // name of this replica
	Block string // the block's label
	Index int    // among the block's replicas
	Place string // of the block, such as "orchestrator.hcl:31"

	Command      []string
	Description  string
	Dir          string   // absolute
	EnvFile      []string // absolute
	InheritEnv   InheritEnv
	Protocol     string
	Stdin        string
	Role         string
	Actor        string
	Pty          bool
	DependsOn    []string // names of agents; a block with replicas is listed as all of them
	Autostart    bool
	OnExit       string
	Restart      Restart
	Stop         Stop
	Health       Health
	Limits       Limits
	Output       Output
	Capabilities Capabilities
	Client       Client

	env environment
}

// A Client holds the settings of a coding agent: an agent whose protocol is its own.
type Client struct {
	Permission   string
	Allow        []string
	Model        string
	Instructions string
	OnTurnEnd    string
	Resume       bool
	Servers      []MCPServer
}

// An MCPServer is a program with more tools for a coding agent.
type MCPServer struct {
	Name    string
	Command []string
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

// InheritEnv selects the variables that an agent inherits: all, or the named ones. The zero
// value selects none.
type InheritEnv struct {
	All   bool
	Names []string
}

// Restart holds the restart settings of an agent.
type Restart struct {
	Policy     string
	Delay      time.Duration
	Factor     float64
	MaxDelay   time.Duration
	Jitter     float64
	ResetAfter time.Duration
	Burst      int
	Window     time.Duration
	Permanent  []int
}

// Stop holds the steps of an orderly stop.
type Stop struct {
	CloseStdin time.Duration
	Unspoken   time.Duration // for an agent that has sent no message; CloseStdin if the file sets that
	Signal     string
	Grace      time.Duration
}

// Health determines when an agent counts as stalled.
type Health struct {
	Silence      time.Duration
	WriteTimeout time.Duration
	OnStalled    string
}

// Limits restrict the resources of one agent. Zero open files or memory means no limit.
type Limits struct {
	Mailbox      int
	MailboxBytes int64
	OpenFiles    int
	Memory       int64
}

// Output determines how the lines of an agent are stored.
type Output struct {
	Dir     string // absolute
	MaxSize int64
	Keep    int
	Tail    int
}

// Capabilities are what an agent offers, as configured.
type Capabilities struct {
	Languages          []string
	Tools              []string
	Environments       []string
	Tags               []string
	Names              []string
	MaxConcurrentTasks int
	Repos              []Repo
}

// A Repo is a repository that an agent can work in. Its path is passed on as written.
type Repo struct {
	Name      string
	Path      string
	Languages []string
	Tools     []string
}
