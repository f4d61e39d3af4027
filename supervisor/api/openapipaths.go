package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

const (
	byToken  = "operatorToken"
	byKey    = "agentKey"
	byActor  = "actorToken"
	byCookie = "browserCookie"

	tagHub        = "hub"
	tagBus        = "bus"
	tagOperations = "operations"
	tagDoor       = "door"
)

// endpoints describes everything that the API serves, by method and path.
func (api *API) endpoints(schemas map[string]wire.Raw) map[string]*endpoint {
	found := map[string]*endpoint{"GET " + openAPIPath: {
		ID: "openapi", Summary: "This document", Tags: []string{tagDoor}, Responses: responses(inSchema("This document.", anyObject)),
	}}
	for _, name := range api.operations() {
		found["POST "+operationsPath+name] = operationEndpoint(declared(name), schemas)
	}
	for name := range api.Streams {
		e := operationEndpoint(declared(name), schemas)
		e.Responses["200"] = asLines("event")
		found["POST "+operationsPath+name] = e
	}
	for name := range api.Lists {
		found["GET "+apiPath+name] = listEndpoint(name)
	}
	if api.Metrics != nil {
		found["GET "+metricsPath] = metricsEndpoint()
	}
	for name := range api.Pipes {
		found["POST "+apiPath+name] = pipeEndpoint(name)
	}
	for _, t := range api.routes() {
		found[t.pattern] = passageEndpoint(t)
	}
	maps.Copy(found, api.browserEndpoints())
	return found
}

// operationEndpoint describes an operation.
func operationEndpoint(o *wire.Operation, schemas map[string]wire.Raw) *endpoint {
	name := o.Name
	payload, answer := anyObject, anyObject
	if message := component("request:" + name); schemas[message] != nil {
		payload, answer = refer(message+"/properties/payload"), refer("response.success/properties/payload")
	}
	done := inSchema("The result.", answer)
	if o.OfTask {
		done.Headers = described(placeHeading)
	}
	e := &endpoint{
		ID: name, Summary: cmp.Or(o.Summary, "The operation "+name), Description: operationWords(o), Tags: []string{tagOperations},
		Security:  operationSecurity(o),
		Body:      &openBody{Content: map[string]openContent{inJSON: {Schema: payload}}},
		Responses: responses(done, 400, 401, 403, 404, 409, 413, 415),
	}
	if opensTask(name) {
		e.Parameters = inQuery([]parameter{byTrace})
	}
	return e
}

// operationWords returns the facts that the summary of an operation leaves out.
func operationWords(o *wire.Operation) string {
	var words []string
	switch o.Audience {
	case wire.ForAgents:
		words = append(words, "Only for agents.")
	case wire.ForUnregistered:
		words = append(words, "For operators, and for unregistered callers at the route for registration.")
	}
	if o.Summary != "" && !o.Writes {
		words = append(words, "It changes nothing.")
	}
	if o.Published {
		words = append(words, "Agents can print the same request on their standard output.")
	}
	return strings.Join(words, " ")
}

func operationSecurity(o *wire.Operation) []map[string][]string {
	var schemes []string
	if o.Audience != wire.ForAgents {
		schemes = append(schemes, byToken)
	}
	if o.OpenToAgents() {
		schemes = append(schemes, byKey)
	}
	if o.OpenToActors() {
		schemes = append(schemes, byActor)
	}
	return security(schemes...)
}

// security returns alternative security requirements.
func security(schemes ...string) (one []map[string][]string) {
	for _, scheme := range schemes {
		one = append(one, map[string][]string{scheme: {}})
	}
	return one
}

func (a Access) security() []map[string][]string {
	switch a {
	case Operators:
		return security(byToken)
	case Agents:
		return security(byKey)
	case Actors:
		return security(byToken, byKey, byActor)
	}
	return nil
}

// listWords describes the known lists and their query parameters.
var listWords = map[string]struct {
	summary, line string
	query         []parameter
}{
	"events": {summary: "Events, oldest first", line: "event", query: []parameter{
		{name: "since", words: "Only events after this number."},
		{name: "after", words: "Only events after this time."},
		{name: "type", words: "Only events of this type."},
		{name: "task", words: "Only events about this task."},
		{name: "agent", words: "Only events about these agents.", repeats: true},
		{name: "follow", words: "Whether to keep the connection open and send new ones as they arrive.", of: []string{"true", "false"}},
	}},
	"logs": {summary: "Output of agents", line: "log-line", query: []parameter{
		{name: "agent", words: "Only lines of these agents.", repeats: true},
		{name: "n", words: "The maximum number of lines. The latest lines are sent."},
		{name: "stream", words: "Only lines of this stream."},
		{name: "after", words: "Only lines after this time."},
		{name: "until", words: "Only lines before this time."},
		{name: "follow", words: "Whether to keep the connection open and send new ones as they arrive.", of: []string{"true", "false"}},
	}},
	"messages": {summary: "Messages between actors, oldest first", line: "mail", query: []parameter{
		{name: "since", words: "Only messages after this number."},
		{name: "n", words: "The maximum number of messages. The latest messages are sent."},
		{name: "topic", words: "Only messages on topics that match this pattern."},
		{name: "actor", words: "Only messages from or to this actor."},
		{name: "housekeeping", words: "Whether to include the records of the orchestrator: starts and ends of agents, heartbeats, unknown topics.", of: []string{"true", "false"}},
		{name: "follow", words: "Whether to keep the connection open and send new ones as they arrive.", of: []string{"true", "false"}},
	}},
}

func listEndpoint(name string) *endpoint {
	words := listWords[name]
	return &endpoint{
		ID: name, Summary: cmp.Or(words.summary, "The list "+name), Tags: []string{tagDoor}, Security: security(byToken),
		Parameters: inQuery(words.query), Responses: responses(asLines(words.line), 400, 401, 403),
	}
}

func pipeEndpoint(name string) *endpoint {
	found := responses(openResponse{}, 400, 401, 403, 404, 409)
	delete(found, "200")
	found["101"] = openResponse{Description: "The connection switches to the protocol " + PipeProtocol + "."}
	return &endpoint{
		ID: name, Summary: "Join as an agent: the connection then carries its lines", Tags: []string{tagDoor}, Security: security(byToken),
		Description: "Only at the unix socket, for programs on the machine of the orchestrator.", Responses: found,
	}
}

// inPath returns the parameters of a path.
func inPath(path string) (parameters []openParameter) {
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			words := map[string]string{"id": "The id of a task.", "dep_id": "The id of a dependency, or of the task that it names."}
			name = strings.TrimSuffix(name, "}")
			parameters = append(parameters, openParameter{
				Name: name, In: "path", Required: true, Description: words[name], Schema: wire.Raw(`{"type":"string"}`),
			})
		}
	}
	return parameters
}

func inQuery(query []parameter) (parameters []openParameter) {
	for _, p := range query {
		schema := wire.Raw(`{"type":"string"}`)
		switch {
		case p.repeats:
			schema = wire.Raw(`{"type":"array","items":{"type":"string"}}`)
		case p.of != nil:
			words, _ := object.Encode(p.of) // they are texts
			schema = append(append(wire.Raw(`{"enum":`), words...), '}')
		case p.most != 0:
			schema = fmt.Appendf(nil, `{"type":"integer","minimum":%d,"maximum":%d}`, p.least, p.most)
		}
		in := "query"
		if p.header {
			in = "header"
		}
		parameters = append(parameters, openParameter{Name: p.name, In: in, Description: p.words, Schema: schema})
	}
	return parameters
}

// anyObject is the schema of a document without a specific schema.
var anyObject = wire.Raw(`{"type":"object"}`)

func inSchema(words string, schema wire.Raw) openResponse {
	return openResponse{Description: words, Content: map[string]openContent{inJSON: {Schema: schema}}}
}

// asLines describes an answer of many documents, which no JSON schema can.
func asLines(line string) openResponse {
	schema := wire.Raw(`{"type":"string"}`)
	words := "One JSON document a line, sent as it arrives. If the connection breaks, more may follow: ask again."
	if line != "" {
		words += " Each line is described by components/schemas/" + line + "."
	}
	return openResponse{Description: words, Content: map[string]openContent{inLines: {Schema: schema}}}
}

// responses returns a success and refusals, with the refusals that every route may have.
func responses(success openResponse, refusals ...int) map[string]openResponse {
	all := refused(refer("refusal"), append(refusals, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusGatewayTimeout))
	all["200"] = success
	return all
}

// refusedWords describes refusals by status.
var refusedWords = map[int]string{
	400: "The request cannot be read.",
	401: "The credential is missing or not valid here.",
	403: "The caller may not do this.",
	404: "Not found.",
	409: "The current state does not allow the request.",
	413: "The request is too long.",
	415: "The Content-Type is not JSON.",
	422: "The request is not valid.",
	429: "Too many requests. Retry after the time in Retry-After.",
	500: "An internal error. The log of the orchestrator has the details.",
	504: "The request timed out.",
}

func refused(schema wire.Raw, statuses []int) map[string]openResponse {
	all := make(map[string]openResponse)
	for _, status := range statuses {
		all[strconv.Itoa(status)] = inSchema(refusedWords[status], schema)
	}
	return all
}

// passageEndpoint describes a route of the hub or the bus.
func passageEndpoint(t *route) *endpoint {
	e := &endpoint{
		ID:      strings.ReplaceAll(t.operation, "-", "_") + "_by" + strings.NewReplacer("/api/v1/", "_", "/", "_", "{", "", "}", "", "-", "_").Replace(t.path()),
		Summary: cmp.Or(t.summary, declared(t.operation).Summary), Description: cmp.Or(t.words, "The operation "+t.operation+"."), Tags: []string{tagHub}, Security: t.access.security(),
		Parameters: append(inPath(t.path()), inQuery(t.query)...),
		Responses:  refused(refer("hub.refusal"), refusals(t)),
	}
	if ofBus(t.path()) {
		e.Tags = []string{tagBus}
	}
	if t.read.schema != "" {
		e.Body = &openBody{Required: t.read.need, Content: map[string]openContent{inJSON: {Schema: refer(t.read.schema)}}}
	}
	e.Responses[strconv.Itoa(t.write.status)] = t.write.response()
	return e
}

// response describes a success.
func (w *writing) response() openResponse {
	if w.schema == "" {
		words := "An endless stream of events, sent as messages arrive. The id of an event is the number of the message, its name is the topic, " +
			"and its data is the message (see components/schemas/bus.message)."
		return openResponse{Description: words, Content: map[string]openContent{inEvents: {Schema: wire.Raw(`{"type":"string"}`)}}}
	}
	done := inSchema("Success.", refer(w.schema))
	done.Headers = described(w.headings...)
	return done
}

// described returns the headers of an answer for the document, or nil for none.
func described(headings ...heading) map[string]openHeader {
	var found map[string]openHeader
	for _, h := range headings {
		if found == nil {
			found = make(map[string]openHeader)
		}
		found[h.name] = openHeader{Description: h.words, Schema: wire.Raw(`{"type":"string"}`)}
	}
	return found
}

// refusals returns the statuses of possible refusals of a route.
func refusals(t *route) []int {
	statuses := slices.Sorted(maps.Keys(refusedWords))
	return slices.DeleteFunc(statuses, func(status int) bool {
		switch status {
		case http.StatusConflict: // an agent that does not run has no mail
			return !t.takesBody() && t.access != Actors
		case http.StatusRequestEntityTooLarge:
			return !t.takesBody()
		case http.StatusUnprocessableEntity:
			return ofBus(t.path()) || !t.takesBody() && t.query == nil
		case http.StatusUnauthorized, http.StatusNotFound, http.StatusGatewayTimeout:
			return t.access == Public && !t.takesBody()
		}
		return false
	})
}
