package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Identity identifies an agent in a session.
type Identity struct {
	Agent   string // its name
	Type    string // wire.AgentArchitect, wire.AgentDeveloper or wire.AgentReviewer
	Session string // required only if the agent is in several sessions
}

// A Session is an agent's membership in a session. Its methods send one message each and return
// when it is written; the Sent reports a later refusal. Invalid messages are rejected at once,
// with the orchestrator's error.
//
// A message refused for a rate limit or a full queue is sent again, for a few minutes at most.
// Messages that would overtake it wait. The methods may be called concurrently.
type Session struct {
	conn  *Conn
	me    Identity
	chain string
	count *atomic.Int64 // the highest sequence number sent or received
}

var errNobody = errors.New("who the agent is in its session is not known")

// OpenSession returns the agent's membership in a session. Empty fields of the identity default
// to $ORC_AGENT_ID, $ORC_SESSION_TYPE and $ORC_SESSION, which the orchestrator sets for the
// agents that it starts.
func (c *Conn) OpenSession(me Identity) (*Session, error) {
	me.Agent = cmp.Or(me.Agent, os.Getenv("ORC_AGENT_ID"))
	me.Type = cmp.Or(me.Type, os.Getenv("ORC_SESSION_TYPE"))
	me.Session = cmp.Or(me.Session, os.Getenv("ORC_SESSION"))
	switch {
	case me.Agent == "":
		return nil, fmt.Errorf("%w: $ORC_AGENT_ID is not set", errNobody)
	case !slices.Contains(session.AgentTypes, me.Type):
		return nil, fmt.Errorf("%w: %q is none of the types %q ($ORC_SESSION_TYPE)", errNobody, me.Type, session.AgentTypes)
	}
	return &Session{conn: c, me: me, count: new(atomic.Int64)}, nil
}

// opened checks that the agent has the given role.
func (s *Session) opened(role string) error {
	if s.me.Type != role {
		return fmt.Errorf("%w: %s is of the type %s, and this is for one of the type %s", errNobody, s.me.Agent, s.me.Type, role)
	}
	return nil
}

// Identity returns the agent's identity in the session.
func (s *Session) Identity() Identity { return s.me }

// Conn returns the agent's connection.
func (s *Session) Conn() *Conn { return s.conn }

// Chain returns the same session with a correlation_id for its messages. Answers keep the
// correlation_id of the message that they answer.
func (s *Session) Chain(correlation string) *Session {
	chained := *s
	chained.chain = correlation
	return &chained
}

// ArchitectID returns the identifier of an architect, for use as a recipient.
func ArchitectID(name string) session.Agent {
	return session.Agent{AgentID: name, AgentType: session.AgentArchitect}
}

// DeveloperID returns the identifier of a developer.
func DeveloperID(name string) session.Agent {
	return session.Agent{AgentID: name, AgentType: session.AgentDeveloper}
}

// ReviewerID returns the identifier of a reviewer.
func ReviewerID(name string) session.Agent {
	return session.Agent{AgentID: name, AgentType: session.AgentReviewer}
}

// to returns a message that answers no other.
func (s *Session) to(whom session.Agent, kind string) session.Message {
	return session.Message{To: whom, MessageType: kind, CorrelationID: s.chain, SessionID: s.me.Session}
}

// about returns a message to the sender of another, with the same correlation_id.
func (s *Session) about(said *Said, kind string) session.Message {
	s.saw(said)
	m := s.to(said.From, kind)
	m.CorrelationID = cmp.Or(said.CorrelationID, m.CorrelationID)
	m.SessionID = cmp.Or(said.SessionID, m.SessionID)
	return m
}

// answering returns a message that answers another.
func (s *Session) answering(said *Said, kind string) session.Message {
	m := s.about(said, kind)
	m.ReplyTo = said.MessageID
	return m
}

// farAhead bounds the jump of a sequence number. Following a larger one could use up the
// numbers.
const farAhead = 1 << 20

// saw raises the sequence number to the number of a received message, so that numbers rise in the
// whole session.
func (s *Session) saw(said *Said) {
	for now := s.count.Load(); now < said.SequenceNumber && said.SequenceNumber-now <= farAhead; now = s.count.Load() {
		s.count.CompareAndSwap(now, said.SequenceNumber)
	}
}

// say sends a message. Its sequence number is taken when its turn to be written comes, so that
// numbers rise on the stream as well.
func (s *Session) say(ctx context.Context, m session.Message, payload any) (*Sent, error) {
	var sent *Sent
	body, err := asObject(payload)
	if err == nil {
		m.MessageID, m.Body = uuid.NewString(), body
		m.From = session.Agent{AgentID: s.me.Agent, AgentType: s.me.Type}
		err = s.conn.writeBehind(ctx, m.To.AgentID, func() (line []byte, err error) {
			m.SequenceNumber, m.Timestamp = s.count.Add(1), object.Timestamp(time.Now())
			if line, err = spelled(&m); err == nil {
				sent = s.conn.toldBy(&m, line)
			}
			return line, err
		})
	} else {
		err = fmt.Errorf("%w: %w", errUnsaid, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.MessageType, err)
	}
	return sent, nil
}

// spelled encodes a message as a line and validates it as the orchestrator will. Its Body is the
// payload.
func spelled(m *session.Message) ([]byte, error) {
	line, err := object.Encode(m)
	var said *Said
	if err == nil {
		said, err = readSaid(line)
	}
	switch {
	case err != nil:
	case said.Misdirected() != nil:
		err = said.Misdirected()
	case len(line) > maxLine:
		err = errTooLong
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsaid, err)
	}
	return append(line, '\n'), nil
}

// toldBy registers a message before it is written, because a refusal may arrive before the
// sender goes on.
func (c *Conn) toldBy(m *session.Message, line []byte) *Sent {
	sent := &Sent{
		MessageID: m.MessageID, CorrelationID: m.CorrelationID, SequenceNumber: m.SequenceNumber,
		kind: m.MessageType, to: m.To.AgentID, lost: make(chan struct{}),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places++
	sent.place = c.places
	c.said.add(sent.MessageID, sent)
	c.lines.add(sent, line)
	return sent
}

// Assign assigns a task to a developer. It starts a new correlation_id, unless the Session
// comes from Chain.
func (s *Session) Assign(ctx context.Context, developer string, work Assignment) (*Sent, error) {
	m := s.to(DeveloperID(developer), session.TypeTaskAssignment)
	m.CorrelationID = cmp.Or(m.CorrelationID, uuid.NewString())
	work.Priority = cmp.Or(work.Priority, session.PriorityMedium)
	return s.say(ctx, m, work)
}

// Acknowledge confirms the arrival of an assignment.
func (s *Session) Acknowledge(ctx context.Context, assignment *Said) (*Sent, error) {
	return s.say(ctx, s.answering(assignment, session.TypeAcknowledgment), nil)
}

// Report tells the agent that assigned a task how far it is.
func (s *Session) Report(ctx context.Context, assignment *Said, how Progress) (*Sent, error) {
	how.TaskID = cmp.Or(how.TaskID, taskOf(assignment))
	return s.say(ctx, s.answering(assignment, session.TypeTaskProgress), how)
}

// Complete reports the outcome of a task to the agent that assigned it.
func (s *Session) Complete(ctx context.Context, assignment *Said, what Completion) (*Sent, error) {
	what.TaskID = cmp.Or(what.TaskID, taskOf(assignment))
	what.Status = cmp.Or(what.Status, session.OutcomeCompleted)
	what.Changes = withTypes(what.Changes)
	return s.say(ctx, s.answering(assignment, session.TypeTaskCompletion), what)
}

// RequestReview asks a reviewer to look at a task.
func (s *Session) RequestReview(ctx context.Context, reviewer string, what ReviewRequest) (*Sent, error) {
	what.ReviewID = cmp.Or(what.ReviewID, uuid.NewString())
	return s.say(ctx, s.to(ReviewerID(reviewer), session.TypeReviewRequest), what)
}

// Judge sends the result of a review to the agent that asked for it.
func (s *Session) Judge(ctx context.Context, request *Said, result ReviewResult) (*Sent, error) {
	if asked, ok := request.Body.(*session.ReviewRequest); ok {
		result.ReviewID, result.TaskID = cmp.Or(result.ReviewID, asked.ReviewID), cmp.Or(result.TaskID, asked.TaskID)
	}
	return s.say(ctx, s.answering(request, session.TypeReviewResult), result)
}

// GiveFeedback sends feedback to an agent.
func (s *Session) GiveFeedback(ctx context.Context, to session.Agent, feedback Feedback) (*Sent, error) {
	return s.say(ctx, s.to(to, session.TypeFeedback), feedback)
}

// Answer sends feedback to the sender of a message.
func (s *Session) Answer(ctx context.Context, said *Said, feedback Feedback) (*Sent, error) {
	return s.say(ctx, s.answering(said, session.TypeFeedback), feedback)
}

// AskStatus asks another agent for its status.
func (s *Session) AskStatus(ctx context.Context, to session.Agent, about StatusQuery) (*Sent, error) {
	return s.say(ctx, s.to(to, session.TypeStatusQuery), about)
}

// TellStatus answers a status query with any object. The roles answer by themselves, with a
// Status.
func (s *Session) TellStatus(ctx context.Context, query *Said, status any) (*Sent, error) {
	return s.say(ctx, s.answering(query, session.TypeStatusResponse), status)
}

// Abort tells an agent that a task or the session is aborted.
func (s *Session) Abort(ctx context.Context, to session.Agent, what Abort) (*Sent, error) {
	if what.Scope == session.AbortSession {
		what.TargetID = cmp.Or(what.TargetID, s.me.Session)
	}
	return s.say(ctx, s.to(to, session.TypeAbort), what)
}

// taskOf returns the id of the assigned task.
func taskOf(assignment *Said) string {
	if body, ok := assignment.Body.(*session.Assignment); ok {
		return body.Task.TaskID
	}
	return ""
}

// The payloads of session messages, and their parts. Members that are usually the same may be left
// out: the priority of an assignment is medium, a completion has the task of its assignment and the
// status completed, a file change has the type of its list, and a review result has the ids of its
// request.
type (
	Assignment     = session.Assignment
	TaskInput      = session.TaskInput
	TaskContext    = session.TaskContext
	ContextFile    = session.ContextFile
	Attempt        = session.Attempt
	Constraints    = session.Constraints
	TaskDependency = session.Dependency
	Progress       = session.Progress
	Completion     = session.Completion
	FileChanges    = session.FileChanges
	FileChange     = session.FileChange
	SelfReview     = session.SelfReview

	ReviewRequest  = session.ReviewRequest
	ReviewScope    = session.ReviewScope
	ReviewCriteria = session.ReviewCriteria
	CustomCheck    = session.CustomCheck
	ReviewContext  = session.ReviewContext
	ReviewSummary  = session.ReviewSummary
	ReviewResult   = session.ReviewResult
	Finding        = session.Finding
	Location       = session.Location
	Verification   = session.Verification
	CheckResult    = session.CheckResult
	RequiredChange = session.RequiredChange

	Feedback    = session.Feedback
	StatusQuery = session.StatusQuery
	Abort       = session.Abort
)

// After returns dependencies on tasks that must be done first.
func After(tasks ...string) []TaskDependency {
	if len(tasks) == 0 {
		return nil
	}
	return []TaskDependency{{DependsOn: tasks, Type: session.DependsHard}}
}

// withTypes fills in the change type of each file that has none.
func withTypes(c FileChanges) FileChanges {
	return FileChanges{Created: typed(c.Created, session.ChangeCreated), Modified: typed(c.Modified, session.ChangeModified), Deleted: c.Deleted}
}

func typed(files []FileChange, change string) []FileChange {
	all := make([]FileChange, 0, len(files))
	for _, file := range files {
		if file.Type == "" {
			file.Type = change
		}
		all = append(all, file)
	}
	return all
}

// Result is a structured result. Its contracts are delivered to the tasks that depend on them.
// A handler returns it like any other result:
//
//	return agents.Result{
//		Summary:   "The form keeps the name",
//		Contracts: map[string]agents.Contract{"form_fields": agents.Fulfilled(fields)},
//	}, nil
type Result = hub.ResultDocument

// Types of the parts of a Result.
type (
	Contract = hub.ResultContract
	Changes  = hub.ResultChanges
	Tests    = hub.ResultTests
)

// Fulfilled returns a contract that is delivered completely. The data is usually an object.
func Fulfilled(data any) Contract { return Contract{Status: hub.ContractFulfilled, Data: data} }

// Partial returns a contract that is delivered in part.
func Partial(data any) Contract { return Contract{Status: hub.ContractPartial, Data: data} }

// Skipped returns a contract that is not delivered, with the reason.
func Skipped(reason string) Contract {
	return Contract{Status: hub.ContractSkipped, Data: map[string]string{"reason": reason}}
}
