package adapter

import (
	"time"

	"orchestrator/wire"
	"orchestrator/wire/tools"
)

// An Opening describes the run that a Machine begins.
type Opening struct {
	Agent, Run   string
	Dir          string // absolute
	Protocol     string
	Permission   string // PermissionAsk and its like
	Confined     bool   // by the kernel, so the client cannot begin its own sandbox
	Allow        []string
	Model        string
	Instructions string
	OnTurnEnd    string   // OnTurnEndRemind and its like
	Servers      []Server // further MCP servers
	Conversation string   // to resume; "" begins a new one
	Door         []string // the MCP server of our tools, for clients that take no tools in band
	DoorEnv      []string // variables of its environment
	Patience     time.Duration
	Examine      bool // the run ends after the handshake with the client's Offers, without a prompt
}

// A Server is an MCP server that the client is to start.
type Server struct {
	Name    string
	Command []string
}

// Values of Opening.Permission: who decides about the actions of a client. They are translated for each client, and
// always set.
const (
	PermissionAsk   = "ask"   // a person decides about all changes
	PermissionEdits = "edits" // files may be edited; a person decides about the rest
	PermissionPlan  = "plan"  // changes are refused
	PermissionAuto  = "auto"  // a model of the vendor decides
	PermissionFull  = "full"  // everything is allowed
)

// Values of Opening.OnTurnEnd: the handling of a turn that ends while its task is open.
const (
	OnTurnEndRemind   = "remind"   // the client is reminded once; then the task fails
	OnTurnEndComplete = "complete" // the last words are the result
	OnTurnEndFail     = "fail"     // the task fails
)

// An Effect is an order of a Machine: a Write, an Ask, a Say, a Log, a Clear or a Stuck.
type Effect any

type (
	// Write is a line for the client, without its line feed.
	Write struct{ Line []byte }
	// Ask is a request to the orchestrator. Its answer is passed to Machine.Told.
	Ask struct {
		ID, Operation string
		Payload       any
	}
	// Say is an event for the orchestrator.
	Say struct {
		Event   string
		Payload any
	}
	// Log is a line for people: words of the model or the client.
	Log struct{ Text string }
	// Clear ends the processes that the client has begun in its interrupted turn and has lost since. Machine.Cleared is
	// called afterwards.
	Clear struct{}
	// Stuck ends a client that does not answer, and logs why. Its class is FailLogin, or "" for all other reasons.
	Stuck struct{ Why, Class string }
)

// A Client speaks the protocol of one program. It is pure: it returns the lines to write as Writes, and the reports of
// the program as the events below. A method that is not possible at the moment returns nil.
type Client interface {
	// Begin returns the handshake.
	Begin(o *Opening) []Effect
	// Heard takes a line of the program's stdout.
	Heard(line []byte) []Effect
	// Cut takes the beginning of a line that was too long. A request is refused, so that the program
	// does not wait for its answer.
	Cut(head []byte) []Effect
	// Prompt begins a turn. The id comes back in InContext.
	Prompt(id, text string) []Effect
	// Steer adds a text to the running turn. It returns nil if the client cannot.
	Steer(id, text string) []Effect
	// Interrupt ends the running turn.
	Interrupt() []Effect
	// Plan switches to a mode without changes of files, or back to the configured mode. It returns nil if the client has
	// no such mode. No turn runs.
	Plan(on bool) []Effect
	// Decide answers a Permission. If it allows a plan, it also returns to the configured mode.
	Decide(p *Permission, d Decision) []Effect
	// Result answers a Call.
	Result(call, text string, failed bool) []Effect
}

// The events that a Client reports.
type (
	// Ready reports that the handshake is done.
	Ready struct {
		Conversation, Version, Model string
		Offers                       Offers // always set if Opening.Examine is
	}
	// Begun reports that a turn has begun.
	Begun struct{}
	// InContext reports that the model has the text of a Prompt or a Steer.
	InContext struct{ ID string }
	// Unread reports that the client did not take the text of a Steer.
	Unread struct{ ID string }
	// Doing reports the current action of the client: a tool call, a step of a plan. A tool call has an id, and runs until
	// Did has it.
	Doing struct{ Kind, Text, ID string }
	// Did reports the end of a tool call.
	Did struct{ ID string }
	// Permission asks whether a tool may be used.
	Permission struct {
		ID, Tool, Title string
		Input           wire.Raw
		Paths           []string
		Reason          string
		Once            bool   // its input does not show the action, so the answer is not remembered
		Beyond          bool   // it is more than the use of the tool, so no pattern allows it
		Plan            string // it presents this plan, and waits until it may carry it out
	}
	// Planned reports that the client has presented a plan, and ends its turn without an answer.
	Planned struct{ Text string }
	// Withdrawn reports that the client no longer waits for the answer to a Permission or a Call.
	Withdrawn struct{ ID string }
	// Call is the call of one of our tools.
	Call struct {
		ID, Tool  string
		Arguments wire.Raw
	}
	// Limited reports that the vendor's usage limit is reached. A client that retries by itself sets Retries.
	Limited struct {
		Until   time.Time // zero if it is unknown
		Scope   string
		Retries bool
	}
	// Ended reports the end of a turn.
	Ended struct {
		Failure string // "" or one of the failure classes
		Text    string // the last words, or the reason of the failure
		Stopped bool   // it was interrupted
	}
)

// Offers is the report of a client about itself in the handshake. An empty text means that the client did not report
// the value.
type Offers struct {
	Login  string // LoginYes and its like
	Mail   string // MailProved and its like
	Resume bool   // it can go on with an earlier conversation
	Plans  bool   // it has a mode without changes of files, until a plan is approved
	Cost   string // CostYes or CostNo: whether it reports the cost of a turn
	Mode   string // its own name of the permission that is set
}

// Values of Offers.Login.
const (
	LoginYes  = "yes"
	LoginNo   = "no"
	LoginFree = "not needed" // its model needs no login
)

// Values of Offers.Mail: when the model gets a text that comes during a turn.
const (
	MailProved  = "proved"  // in the turn, and the client reports it
	MailSteered = "steered" // in the turn, as the next step of the client suggests
	MailLater   = "later"   // after the turn, or with the result of one of our tools
)

// Values of Offers.Cost.
const (
	CostYes = "yes"
	CostNo  = "no" // only tokens
)

// A Decision is the answer of a person to a Permission.
type Decision struct {
	Allow   bool
	Message string // why not
}

// Failure classes of a turn.
const (
	FailRefused = "refused" // the model refuses
	FailContext = "context" // the conversation is too long
	FailLimit   = "limit"   // the vendor's usage limit is reached
	FailLogin   = "login"   // the client is not logged in
	FailTool    = "tool"    // any other error of the client
)

// failure returns the error of a task after its turn failed.
func (e *Ended) failure() string {
	return tools.Clip(failures[e.Failure]+orElse(e.Text, "the turn failed"), 2000)
}

// unreported returns the error of a task that is still open after its turn.
func (e *Ended) unreported() string {
	return "its agent ended the turn and reported nothing; its last output: " + tools.Clip(orElse(e.Text, "none"), 2000)
}

// failures begins the error of a task after its turn failed.
var failures = map[string]string{
	FailRefused: "the model refused: ",
	FailContext: "the conversation became too long: ",
	FailLogin:   "the client is not logged in: ",
}
