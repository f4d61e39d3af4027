package config

import "time"

// Agent is one program to keep running: an agent block, or one replica of it.
type Agent struct {
	Name  string // of this replica
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
	DependsOn    []string // names of agents; a block with replicas stands here as all of them
	Autostart    bool
	OnExit       string
	Restart      Restart
	Stop         Stop
	Health       Health
	Limits       Limits
	Output       Output
	Capabilities Capabilities

	env environment
}

// InheritEnv says which of the orchestrator's own variables an agent sees:
// all, or only the named ones. The zero value is none.
type InheritEnv struct {
	All   bool
	Names []string
}

// Restart is what happens after an exit.
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

// Stop is the ladder of an ordered end.
type Stop struct {
	CloseStdin time.Duration
	Unspoken   time.Duration // for an agent that has sent no message; as CloseStdin where the file names that
	Signal     string
	Grace      time.Duration
}

// Health says when an agent counts as stalled.
type Health struct {
	Silence      time.Duration
	WriteTimeout time.Duration
	OnStalled    string
}

// Limits bound what one agent may hold. Zero open files or memory: no limit
// of ours.
type Limits struct {
	Mailbox      int
	MailboxBytes int64
	OpenFiles    int
	Memory       int64
}

// Output is where an agent's lines are kept.
type Output struct {
	Dir     string // absolute
	MaxSize int64
	Keep    int
	Tail    int
}

// Capabilities are what an agent offers, as far as the file knows.
type Capabilities struct {
	Languages          []string
	Tools              []string
	Environments       []string
	Tags               []string
	Names              []string
	MaxConcurrentTasks int
	Repos              []Repo
}

// Repo is a repository an agent can work in. Its path is passed on as written.
type Repo struct {
	Name      string
	Path      string
	Languages []string
	Tools     []string
}
