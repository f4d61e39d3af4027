package control

import (
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// State is the state of an agent's process.
type State string

// The states of an agent.
const (
	StateStopped  State = "stopped"  // not started, or stopped on request
	StateWaiting  State = "waiting"  // for the agents it depends on
	StateStarting State = "starting" // its process is being made
	StateRunning  State = "running"
	StateStalled  State = "stalled"  // runs, but does not read or write
	StateBackoff  State = "backoff"  // ended, starts again after a delay
	StateStopping State = "stopping" // is being stopped
	StateExited   State = "exited"   // ended by itself, without an error
	StateFailed   State = "failed"   // ended with an error, or never started; not retried
)

// Live reports whether an agent in this state has a process.
func (s State) Live() bool {
	return s == StateRunning || s == StateStalled || s == StateStopping
}

// Status answers the operation status.
type Status struct {
	FormatVersion string         `json:"format_version"`
	Name          string         `json:"name"`
	Version       string         `json:"version"`
	PID           int            `json:"pid"`
	State         string         `json:"state"` // running | stopping
	Config        string         `json:"config"`
	StateDir      string         `json:"state_dir"`
	URLs          []string       `json:"urls"` // where it listens besides its socket
	StartedAt     string         `json:"started_at"`
	UpMS          int64          `json:"up_ms"`
	Agents        []AgentView    `json:"agents"`
	Tasks         TaskCounts     `json:"tasks"`
	Questions     int            `json:"questions"`        // that wait for a person
	Used          *activity.Used `json:"used,omitzero"`    // by the coding agents, in all their runs
	Seq           int64          `json:"seq"`              // of the latest event
	Upgrade       *Upgrade       `json:"upgrade,omitzero"` // the latest, if there was one
	Damage        *Damage        `json:"damage,omitzero"`  // of the record, if some was found
	Hub           string         `json:"hub,omitzero"`     // the name of the hub at work, if there are several
	// NoQuorum is the reason why the log accepts no records at the moment. The other fields then
	// show the state up to Seq.
	NoQuorum string `json:"no_quorum,omitzero"`
	Degraded bool   `json:"degraded,omitzero"` // the loss of one more hub stops the team
}

// Damage is a fact of the record that cannot be read. Its readers get an error, and everything else goes on.
type Damage struct {
	Seq  int64  `json:"seq"` // the first one that was found
	Text string `json:"text"`
}

// UpgradeRequest is the payload of upgrade.
type UpgradeRequest struct {
	Program string `json:"program,omitzero"` // a path; "": the file of the running program
}

// Upgrade is the replacement of the running program by another one.
type Upgrade struct {
	FormatVersion string `json:"format_version"`
	ID            string `json:"id"`
	Program       string `json:"program"`
	From          string `json:"from"`           // version
	To            string `json:"to"`             // version
	State         string `json:"state"`          // running | done | failed
	Error         string `json:"error,omitzero"` // why it has failed: then the program before it goes on
	Hint          string `json:"hint,omitzero"`  // the remedy for the error
	Agents        int    `json:"agents"`         // that went over
	TookMS        int64  `json:"took_ms"`        // the time without decisions
	PID           int    `json:"pid,omitzero"`   // of the process, which stays the same
}

// OpenUIRequest is the payload of open-ui.
type OpenUIRequest struct {
	Role string `json:"role,omitzero"` // operator or viewer; "": operator
	Page bool   `json:"page,omitzero"` // answer with a page that the browser opens, on the machine of the team
}

// OpenUIReply answers it.
type OpenUIReply struct {
	FormatVersion string `json:"format_version"`
	URL           string `json:"url"`           // of the web view, with a code that signs a person in once
	Page          string `json:"page,omitzero"` // the path of a page that leads there, for ten seconds
}

// TaskCounts has the number of tasks in each state. Blocked tasks are pending tasks that wait for
// another task.
type TaskCounts struct {
	Pending    int `json:"pending"`
	Blocked    int `json:"blocked"`
	Assigned   int `json:"assigned"`
	Planning   int `json:"planning"`
	PlanReview int `json:"plan_review"`
	Running    int `json:"running"`
	NeedsHuman int `json:"needs_human"`
	InReview   int `json:"in_review"`
	Verifying  int `json:"verifying"`
	Done       int `json:"done"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled"`
}

// AgentView is one agent as an operator sees it.
type AgentView struct {
	Name    string `json:"name"`
	Block   string `json:"block"`
	Profile `json:",embed"`
	State   State       `json:"state"`
	Reason  string      `json:"reason"` // why it is in this state, in words
	Command []string    `json:"command"`
	Dir     string      `json:"dir"`
	Role    string      `json:"role"`
	Tasks   []TaskLabel `json:"tasks"` // that it holds

	DependsOn   []string    `json:"depends_on"`
	Host        string      `json:"host,omitzero"` // of its run; "": it runs on the machine of the hub, or not at all
	PID         int         `json:"pid,omitzero"`  // on its host
	Run         string      `json:"run,omitzero"`
	StartedAt   string      `json:"started_at,omitzero"`
	UpMS        int64       `json:"up_ms"`
	Starts      int         `json:"starts"`
	Restarts    int         `json:"restarts"`
	NextStartMS int64       `json:"next_start_ms,omitzero"`
	LastExit    string      `json:"last_exit"`
	Awaited     string      `json:"awaited,omitzero"` // why up --exit-when-idle waits for it
	Output      OutputView  `json:"output"`
	Mailbox     MailboxView `json:"mailbox"`
	CPUMS       int64       `json:"cpu_ms"`
	RSSBytes    int64       `json:"rss_bytes"`
	Activity    *Activity   `json:"activity,omitzero"` // of a coding agent
}

// A Profile describes an agent to people, as its configuration does. No decision depends on it.
type Profile struct {
	Description string `json:"description"`
}

// Activity has the reports of a coding agent about itself.
type Activity struct {
	State        string  `json:"state,omitzero"` // busy | waiting | idle
	Since        string  `json:"since,omitzero"`
	What         string  `json:"what,omitzero"`
	Question     string  `json:"question,omitzero"`      // the question that it waits for
	LimitedUntil string  `json:"limited_until,omitzero"` // it gets no task before
	LimitedBy    string  `json:"limited_by,omitzero"`    // why, as it reported
	Conversation string  `json:"conversation,omitzero"`
	Kind         string  `json:"kind,omitzero"`    // of the program
	Dir          string  `json:"dir,omitzero"`     // of the conversation
	Program      string  `json:"program,omitzero"` // its version
	Model        string  `json:"model,omitzero"`
	Input        int64   `json:"input_tokens,omitzero"` // in all its runs
	Output       int64   `json:"output_tokens,omitzero"`
	Cost         float64 `json:"cost,omitzero"`
	Currency     string  `json:"currency,omitzero"`
}

// A TaskLabel is a short description of a task.
type TaskLabel struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	State    wire.TaskState `json:"state"`
	Progress float64        `json:"progress"`
}

// OutputView counts the output of an agent in all its runs, and the lines that were not kept.
type OutputView struct {
	Lines    int64  `json:"lines"`
	Bytes    int64  `json:"bytes"`
	Cut      int64  `json:"cut_lines"`      // longer than the limit
	Unlogged int64  `json:"unlogged_lines"` // the log file took no more
	File     string `json:"file"`           // where stdout of the current run goes
}

// MailboxView counts the messages that wait for an agent's stdin.
type MailboxView struct {
	Messages int   `json:"messages"`
	Bytes    int64 `json:"bytes"`
	Refused  int64 `json:"refused"` // never written: the mailbox was full, or the agent gone
	Unread   int64 `json:"unread"`  // bytes in the pipe that the agent has not read

	TaskUnread bool `json:"task_unread,omitzero"` // the agent has not read the latest notice of a task
}

// Streams of a LogLine.
const (
	StreamOut = "stdout"
	StreamErr = "stderr"
	StreamOwn = "own" // the orchestrator about the agent
)

// LogLine is one line of an agent's output.
type LogLine struct {
	// When the line arrived.
	At string `json:"at"`
	// The agent that the line belongs to.
	Agent string `json:"agent"`
	// The source: stdout, stderr, or own for a line of the orchestrator about the agent.
	Stream string `json:"stream"`
	// The text of the line. It is untrusted: escape it before you show it.
	Text string `json:"text"`
	// The level, if the line is an event:log.
	Level string `json:"level,omitzero"`
	// The context, if the line is an event:log.
	Context object.Raw `json:"context,omitzero"`
	// Kind and Trouble are the fields of an Event, if the line is from the orchestrator.
	Kind    string `json:"kind,omitzero" schema:"-"`
	Trouble bool   `json:"trouble,omitzero" schema:"-"`
	// The number of lines before this one that the reader was too slow for.
	Missed int64 `json:"missed,omitzero" schema:"min=0"`
}

// AgentsRequest is the payload of start-agent, stop-agent and restart-agent.
type AgentsRequest struct {
	Agents []string `json:"agents"`           // names, or blocks: all replicas; empty: all, for start-agent
	All    bool     `json:"all,omitzero"`     // every agent, without names; stop-agent and restart-agent need it
	NoDeps bool     `json:"no_deps,omitzero"` // only for start-agent: without their dependencies
}

// AgentsReply answers them, one entry an agent.
type AgentsReply struct {
	FormatVersion string         `json:"format_version"`
	Agents        []AgentOutcome `json:"agents"`
}

// An AgentOutcome is the result of such a request for one agent.
type AgentOutcome struct {
	Name      string   `json:"name"`
	OK        bool     `json:"ok"`
	Text      string   `json:"text"`
	PID       int      `json:"pid,omitzero"`
	TookMS    int64    `json:"took_ms"`
	LastWords []string `json:"last_words,omitzero"` // its last lines of output before it failed
}

// ReloadRequest is the payload of reload.
type ReloadRequest struct {
	DryRun bool   `json:"dry_run,omitzero"`
	Expect string `json:"expect,omitzero"` // a digest; the reload is refused if the file has another one now
}

// ReloadReply describes the changes that a reload would make, or made.
type ReloadReply struct {
	FormatVersion string          `json:"format_version"`
	DryRun        bool            `json:"dry_run"`
	Changes       []ReloadChange  `json:"changes"`
	Commands      []CommandChange `json:"commands,omitzero"`
	Digest        string          `json:"digest,omitzero"` // of the file's commands
	Errors        int             `json:"errors"`
	Problems      string          `json:"problems,omitzero"` // the errors in the file, formatted for people
}

// A CommandChange is a command that is added, removed or changed by a reload. If Before equals
// After, its environment, folder or rights have changed.
type CommandChange struct {
	Of     string   `json:"of"` // such as "agent coder" or "secret token"
	Place  string   `json:"place"`
	Before []string `json:"before,omitzero"`
	After  []string `json:"after,omitzero"`
}

// A ReloadChange is one change in the configuration and the action that it needs.
type ReloadChange struct {
	Agent   string `json:"agent"`
	Action  string `json:"action"` // start | stop | restart | live | refused
	Detail  string `json:"detail"`
	Place   string `json:"place"`
	OK      bool   `json:"ok"`
	Outcome string `json:"outcome"`
}

// DownRequest is the payload of down.
type DownRequest struct {
	Force bool `json:"force,omitzero"` // kill at once
}

// HostsReply answers list-hosts, and list-hubs without hosts.
type HostsReply struct {
	FormatVersion string     `json:"format_version"`
	Hosts         []HostView `json:"hosts"`
	Hubs          []HubView  `json:"hubs"`               // of a shared store; otherwise none
	Degraded      bool       `json:"degraded,omitzero"`  // the loss of one more hub stops the team
	NoQuorum      string     `json:"no_quorum,omitzero"` // why the log accepts no records at the moment
}

// A HostView is a machine that has joined, as an operator sees it.
type HostView struct {
	Name     string            `json:"name"`
	State    string            `json:"state"` // joined | draining | gone
	Since    string            `json:"since"` // when it joined
	HeardAt  string            `json:"heard_at"`
	Address  string            `json:"address"`
	Version  string            `json:"version"`
	Labels   map[string]string `json:"labels"`
	Capacity int               `json:"capacity"` // how many agents it runs at most; 0: any number
	Agents   []string          `json:"agents"`
}

// A HubView is one of the machines that share a record.
type HubView struct {
	Name  string `json:"name"`
	State string `json:"state"` // at_work | standing_by | missing
	URL   string `json:"url,omitzero"`
	Epoch int64  `json:"epoch,omitzero"` // the number of the record that began its term
	// Followed is the number of the last record that the hub has; 0: it is not known.
	Followed int64 `json:"followed,omitzero"`
}

// DrainRequest is the payload of drain-host.
type DrainRequest struct {
	Host string `json:"host"`
	Undo bool   `json:"undo,omitzero"`
}

// DrainReply answers it.
type DrainReply struct {
	FormatVersion string   `json:"format_version"`
	Host          string   `json:"host"`
	Agents        []string `json:"agents"` // that are being stopped there
}

// ExplainRequest is the payload of explain.
type ExplainRequest struct {
	Of string `json:"of"` // the id of a task, its beginning, or the name of an agent
}

// Explanation answers it.
type Explanation struct {
	FormatVersion string `json:"format_version"`
	Text          string `json:"text"`
}

// DiffRequest is the payload of diff-task.
type DiffRequest struct {
	TaskID string `json:"taskId"`
	Whole  bool   `json:"whole,omitzero"` // with the contents of files that are not text, so that it can be applied
}

// TaskDiff answers diff-task: the changes that a task made.
type TaskDiff struct {
	FormatVersion string   `json:"format_version"`
	Path          string   `json:"path"`
	Branch        string   `json:"branch"`
	Base          string   `json:"base"`
	Commit        string   `json:"commit"`      // of the branch
	Uncommitted   []string `json:"uncommitted"` // files
	Patch         string   `json:"patch"`
	Bytes         []byte   `json:"bytes,omitzero"` // of a whole patch that is not UTF-8
}

// MergeRequest is the payload of merge-task.
type MergeRequest struct {
	TaskID string `json:"taskId"`
	Into   string `json:"into,omitzero"`   // a branch; "" for the branch that the task began at
	Commit string `json:"commit,omitzero"` // refuse if the branch of the task has moved on; "": do not look
}

// MergeReply answers merge-task.
type MergeReply struct {
	FormatVersion string `json:"format_version"`
	Branch        string `json:"branch"`
	Into          string `json:"into"`
	Commit        string `json:"commit"`           // the end of Into now
	Already       bool   `json:"already,omitzero"` // it was merged before
	Removed       bool   `json:"removed,omitzero"` // the workspace and the branch are gone
}

// WorkspaceList answers list-workspaces. For prune-workspaces it has the removed workspaces.
type WorkspaceList struct {
	FormatVersion string          `json:"format_version"`
	Workspaces    []WorkspaceView `json:"workspaces"`
}

// WorkspaceView describes the workspace of a task.
type WorkspaceView struct {
	TaskID      string `json:"taskId"`
	Path        string `json:"path"`
	Branch      string `json:"branch"`
	Base        string `json:"base"`
	Ahead       int    `json:"ahead"`            // commits that Base does not have
	Uncommitted int    `json:"uncommitted"`      // files
	Heir        string `json:"heir,omitzero"`    // the task that is to resolve why it was not merged
	Moved       bool   `json:"moved"`            // the branch has been committed to
	Missing     bool   `json:"missing,omitzero"` // the folder was removed by hand
	Trouble     string `json:"trouble,omitzero"` // why the rest is not known
}
