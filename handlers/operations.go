package handlers

import (
	"slices"

	"orchestrator/wire"
)

// An Operation is an operation of the package wire with the function that decides about it.
type Operation struct {
	*wire.Operation
	Request any // of the payload's type
	Answer  any // of the answer's type

	do func(d *decision, body any) (any, *wire.Error)
}

// bind returns an Operation with its function, which belongs to a domain of the decision. Request
// is the type that the reader of its payload returns.
func bind[Domain, Request, Answer any](
	name string, domain func(*decision) Domain, do func(Domain, *Request) (*Answer, *wire.Error),
) Operation {
	o := Operation{Operation: wire.OperationNamed(name), Request: new(Request), Answer: new(Answer)}
	if o.Operation == nil {
		panic("wire declares no operation " + name)
	}
	o.do = func(d *decision, body any) (any, *wire.Error) {
		request, ok := body.(*Request)
		if !ok {
			return nil, &wire.Error{Code: wire.CodeInvalid, Message: name + " was given the payload of something else"}
		}
		answer, err := do(domain(d), request)
		if err != nil || answer == nil { // a nil pointer in an any would not be nil
			return nil, err
		}
		return answer, nil
	}
	return o
}

// operations lists all operations, in the order of wire.Operations. Each list is in a file
// of its topic.
var operations = inOrder(
	taskOperations, reportOperations, questionOperations, assignOperations, updateOperations, dependencyOperations, agentOperations, serverOperations,
	accessOperations, mailOperations, actorOperations, delegationOperations, sessionOperations,
)

// inOrder returns the operations of all lists in the order of wire.Operations.
func inOrder(lists ...[]Operation) []Operation {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b Operation) int {
		return slices.Index(wire.Operations, a.Operation) - slices.Index(wire.Operations, b.Operation)
	})
	return all
}

// byName finds operations.
var byName = func() map[string]*Operation {
	found := make(map[string]*Operation, len(operations))
	for i := range operations {
		found[operations[i].Name] = &operations[i]
	}
	return found
}()

// Operations returns all operations with the types of their answers, which the manual lists.
func Operations() []Operation { return slices.Clone(operations) }

// mayAsk returns an error if an actor may not request the operation.
func (o *Operation) mayAsk(from Actor) *wire.Error {
	switch {
	case from.Kind == Anonymous && o.Audience != wire.ForUnregistered:
		return &wire.Error{Code: wire.CodeUnauthenticated, Message: o.Name + " requires authentication"}
	case from.Kind == External && o.Audience != wire.ForActors:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is not available to external actors"}
	case o.Audience == wire.ForAgents && from.Kind != Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for agents"}
	case o.Audience == wire.ForUnregistered && from.Kind == Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: "already registered as an agent"}
	case o.Audience == wire.ForOperators && from.Kind != Operator:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for operators"}
	}
	return nil
}
