package documents

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/schema"
	"orchestrator/wire/schema/generator"
)

// requestText returns the file of the schema of a request.
func requestText(g *generator.Generator, o *wire.Operation) (string, error) {
	payload, needed := `{"$ref": "urn:orchestrator:`+o.Document+`"}`, true
	if o.Payload() != nil {
		var err error
		if payload, needed, err = payloadText(g, o); err != nil {
			return "", fmt.Errorf("%s: %w", o.Name, err)
		}
	}
	required := `"type", "id", "timestamp"`
	if needed {
		required += `, "payload"`
	}
	examples := make([]string, 0, len(o.Examples))
	for i, example := range o.Examples {
		if example != "" {
			example = `, "payload": ` + example
		}
		examples = append(examples, fmt.Sprintf("\n"+`    {"type": "request:%s", "id": "req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a21%02d", "timestamp": "2026-11-20T09:15:00Z"%s}`, o.Name, i, example))
	}
	return fmt.Sprintf(`{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "urn:orchestrator:request:%[1]s",
  "title": %[2]s,
  "description": %[3]s,
  "type": "object",
  "properties": {
    "type": {"const": "request:%[1]s"},
%[4]s
    "payload": %[5]s
  },
  "required": [%[6]s],
  "examples": [%[7]s
  ]
}
`, o.Name, generator.Line(o.Summary), generator.Line(described(o)), requestHead, payload, required, strings.Join(examples, ",")), nil
}

// payloadText returns the schema of a payload with a member on each line, and whether a request needs
// the payload.
func payloadText(g *generator.Generator, o *wire.Operation) (text string, needed bool, err error) {
	members, required, err := g.MembersOf(&schema.Document{
		Of: reflect.Zero(o.Payload()).Interface(), Lenient: true,
		As: map[string]any{
			"Dependency": dependencySaid{}, "options": []optionSaid{}, "choices": []choiceSaid{}, "members": []memberSaid{}, "artifacts": []artifactSaid{},
		},
		Parts: []schema.Part{{Of: artifactSaid{}, Rules: schema.Node{
			{Key: "anyOf", Value: schema.Literal(`[{"required": ["name"], "properties": {"name": {"type": "string"}}}, {"required": ["path"], "properties": {"path": {"type": "string"}}}]`)},
			{Key: "oneOf", Value: schema.Literal(`[{"required": ["content"], "properties": {"content": {"type": "string"}}}, ` +
				`{"required": ["path"], "properties": {"path": {"type": "string"}}}, {"required": ["ref"], "properties": {"ref": {"type": "string"}}}]`)},
		}}},
	})
	lines := []string{`"type": "object"`}
	switch properties := make([]string, 0, len(members)); {
	case len(members) == 0:
		lines = append(lines, `"description": "No member is read."`)
	default:
		for _, member := range members {
			properties = append(properties, "        "+strconv.Quote(member.Key)+": "+generator.Line(member.Value))
		}
		lines = append(lines, `"properties": {`+"\n"+strings.Join(properties, ",\n")+"\n      }")
	}
	if len(required) > 0 {
		lines = append(lines, `"required": ["`+strings.Join(required, `", "`)+`"]`)
	}
	lines = append(lines, o.Rules...)
	return "{\n      " + strings.Join(lines, ",\n      ") + "\n    }", len(required)+len(o.Rules) > 0, err
}

// described returns the description of a request.
func described(o *wire.Operation) string {
	words := o.Summary + ". "
	if o.About != "" {
		words += o.About + " "
	}
	switch o.Audience {
	case wire.ForOperators:
		words += "Only for people; an agent gets UNAUTHORIZED. "
	case wire.ForUnregistered:
		words += "Only for programs that are not registered; an agent gets UNAUTHORIZED. "
	}
	if !o.Published {
		words += "An extension of the published protocol. "
	}
	return words + "One JSON object on one line of stdout. Keys are case-sensitive and unique. Unknown keys are ignored. " +
		"Where null is allowed, it counts as missing."
}

// requestHead has the members that all requests share.
var requestHead = `    "id": {
      "type": "string",
      "minLength": 1,
      "description": "An id that differs for every request. The response repeats it, letter for letter, as correlationId. The same request with the same id gets the same response and has no second effect."
    },
    "timestamp": {
      "type": "string",
      "pattern": ` + generator.Line(schema.Formats["time"][1].Value) + `,
      "description": "When the request was sent: an ISO 8601 time, such as 2026-11-20T09:15:00Z. Without a zone it is UTC. The day must exist in the calendar, which the pattern cannot express."
    },
    "agentId": {
      "type": "string",
      "description": "The name of the sender; optional. A message with the name of another agent is refused."
    },`
