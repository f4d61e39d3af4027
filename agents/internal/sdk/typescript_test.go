package sdk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// typeScriptTypes are the types of members that differ from the schema, by the names of the
// document or the operation and the member.
var typeScriptTypes = map[string]string{
	"Task context": "TaskContext", "Task routing": "TaskRouting", "Task observability": "TaskTrace",
	"Task requiredRole": "Role | null", "Task priority": "Priority", "Agent role": "Role", "Server capabilities": "Capabilities | null",
	"Completion error": "TaskExecutionError", "Link result": "any", "Requirements $schema": "string", "Capabilities $schema": "string",
	"SubmitTask requiredRole": "Role", "SubmitTask priority": "Priority | Raw", "SubmitTask observability": "TaskTrace<Document>",
	"QueryTasks requiredRole": "Role", "QueryTasks status": "TaskStatus | TaskState", "UpdateTask priority": "Priority | Raw",
	"AskPermission choices": "PermissionChoice[]",
	"AskUser options":       "(string | { label?: string; value: string })[]",
	"QueryAgents role":      "Role", "QueryAgents status": "AgentStatus",
	"complete-task result": "unknown", "submit-plan plan": "object | string", "request-help context": "unknown",
	"ack-messages seq": "number | bigint | Raw",
}

// typeScriptWords are the names of lists of texts, by the paths of the schemas.
var typeScriptWords = []struct{ name, schema, about string }{
	{"TaskState", "task/state", "The state of a task. The last three are final."},
	{"TaskStatus", "task/status", "A summary of the state of a task."},
	{"AgentStatus", "agent/status", "The status of an agent."},
}

// typeScriptType returns the type of a member of a document or an operation. path leads to its
// schema. Documents that are sent may be Raw.
func typeScriptType(t *testing.T, of, name, path string, s *schema, sent bool) string {
	t.Helper()
	if given := typeScriptTypes[of+" "+name]; given != "" {
		return given
	}
	if s.ref() == "dependency" {
		return "Dependency"
	}
	if found := documentAt(s, path).typescript; found != "" && s.Items == nil {
		if sent {
			return found + " | Document"
		}
		return found
	}
	if strings.HasPrefix(s.ref(), sessionMessage) {
		s = schemaAt(t, s.ref())
	}
	if words := s.words(); len(words) > 0 {
		for _, each := range typeScriptWords {
			if slices.Equal(schemaAt(t, each.schema).words(), words) {
				return each.name
			}
		}
		return `"` + strings.Join(words, `" | "`) + `"`
	}
	var kinds []string
	for _, kind := range s.types() {
		switch kind {
		case "integer", "number":
			kinds = append(kinds, "number")
		case "array":
			kinds = append(kinds, typeScriptList(typeScriptType(t, of, "", path, s.Items, sent)))
		case "object":
			kinds = append(kinds, typeScriptObject(t, s, sent))
		default:
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return "unknown"
	}
	return strings.Join(kinds, " | ")
}

func typeScriptList(item string) string {
	if strings.Contains(item, " | ") {
		return "(" + item + ")[]"
	}
	return item + "[]"
}

// typeScriptObject returns the type of an object without a name.
func typeScriptObject(t *testing.T, s *schema, sent bool) string {
	t.Helper()
	switch {
	case s.Values != nil:
		return "{ [name: string]: " + typeScriptType(t, "", "", "", s.Values, sent) + " }"
	case len(s.Properties) > 0:
		var inside []string
		for _, m := range s.Properties {
			inside = append(inside, typeScriptMember(t, document{sent: sent}, s, m))
		}
		return "{ " + strings.Join(inside, "; ") + " }"
	case sent:
		return "Document"
	}
	return "{ [key: string]: any }"
}

// typeScriptMember returns the declaration of a member, without its end.
func typeScriptMember(t *testing.T, of document, s *schema, m member) string {
	t.Helper()
	kind, mark := typeScriptType(t, of.typescript, m.name, of.schema+"/"+m.name, m.schema, of.sent), "?"
	removes := strings.Contains(m.schema.Description, "null removes") // otherwise null counts as missing
	if m.schema.nullable() && (!of.sent || removes) && !strings.HasSuffix(kind, " | null") {
		kind += " | null"
	}
	if s.needs(m.name) {
		mark = ""
	}
	return m.name + mark + ": " + kind
}

// typeScriptDocuments returns the types of the documents for the SDK for TypeScript.
func typeScriptDocuments(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `// %s

import type { Document, Raw } from "./json.js";
import type { TaskExecutionError } from "./sessiondocuments.js";

// The documents that operations send and return. Documents may have more members than these.
`, fromSchemas)
	for _, each := range typeScriptWords {
		words := wrapped(`"`+strings.Join(schemaAt(t, each.schema).words(), `" | "`)+`"`, 116)
		fmt.Fprintf(&b, "\n%sexport type %s = %s;\n", jsDoc("", each.about, nil), each.name, strings.Join(words, "\n  "))
	}
	b.WriteString(`
/** The role of an agent: worker, planner, reviewer, or one that the configuration names. */
export type Role = string;

/** A number, where 1 is the most urgent; or critical, high, normal or low. */
export type Priority = number | string;

/**
 * A dependency of a task to submit: the id of a task that must be done first, or a TypedDependency.
 */
export type Dependency = string | TypedDependency;

/** The trace that a task belongs to. Pass it on with the work that you delegate. */
export interface TaskTrace<Baggage = { [key: string]: unknown }> {
  traceId?: string;
  spanId?: string;
  /** Values that travel with the trace. */
  baggage?: Baggage;
}
`)
	b.WriteString(typeScriptInterfaces(t, slices.Concat(documents, workDocuments)))
	return b.String()
}

// typeScriptSessionDocuments returns the types of the documents in sessions.
func typeScriptSessionDocuments(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("// %s\n\n// The payloads of session messages. Their keys are those of the protocol.\n", fromSchemas) + typeScriptInterfaces(t, sessionDocuments)
}

// typeScriptInterfaces returns the declarations of documents.
func typeScriptInterfaces(t *testing.T, of []document) string {
	t.Helper()
	var b strings.Builder
	for _, d := range of {
		if d.typescript == "" {
			continue
		}
		s := schemaAt(t, d.schema)
		extends := ""
		if d.extends != "" {
			extends = " extends " + d.extends
		}
		fmt.Fprintf(&b, "\n%sexport interface %s%s {\n", jsDoc("", d.aboutOf(s), nil), d.typescript, extends)
		for _, m := range s.Properties {
			if about := m.schema.Description; about != "" {
				b.WriteString(jsDoc("  ", about, nil))
			}
			b.WriteString("  " + typeScriptMember(t, d, s, m) + ";\n")
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// typeScriptOperations returns the methods of the SDK for TypeScript.
func typeScriptOperations(t *testing.T) string {
	t.Helper()
	var names []string
	var body strings.Builder
	for _, c := range calls(t) {
		method := typeScriptMethod(t, c)
		body.WriteString(method)
		for _, d := range documents {
			for _, name := range []string{d.typescript, "Dependency"} {
				if name != "" && strings.ContainsAny(after(method, name), " =,)>[") {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return fmt.Sprintf(`// %s

import type {
  %s,
} from "../wire/documents.js";
import { asking, dependency, submission } from "../wire/envelope.js";
import { type Heard, listOf, partOf, type Raw } from "../wire/json.js";
import type { Options } from "./waiting.js";

/** The requests of a connection and the events of coding agents: one method each. */
export abstract class Operations {
  /** Sends a request for any operation. */
  abstract ask<T = { [key: string]: unknown }>(operation: string, payload?: unknown, options?: Options): Promise<Heard<T>>;

  /** Sends any event. */
  abstract tell(event: string, payload?: unknown): Promise<void>;
%s}
`, fromOperations, strings.Join(wrapped(strings.Join(slices.Compact(names), ", "), 116), "\n  "), body.String())
}

// after returns the character after a type name in the declarations of a method, or "".
func after(method, name string) string {
	for _, before := range []string{": ", "<"} {
		if _, rest, ok := strings.Cut(method, before+name); ok && strings.ContainsRune(" =,)>[", rune(rest[0])) {
			return rest[:1]
		}
	}
	return ""
}

// typeScriptMethod returns a method.
func typeScriptMethod(t *testing.T, c call) string {
	t.Helper()
	name, head, payload, about := c.typeScriptName(), c.whole, c.payload, []string(nil)
	if head == "" {
		head, payload, about = typeScriptParameters(t, c)
	} else if payload == "" {
		payload, _, _ = strings.Cut(head, ":")
	}
	if event, ok := strings.CutPrefix(c.operation, "event:"); ok {
		return fmt.Sprintf("\n%s  %s(%s): Promise<void> {\n    return this.tell(%q, %s);\n  }\n", jsDoc("  ", c.about(), about), name, head, event, payload)
	}
	if head != "" {
		head += ", "
	}
	kind := documents[slices.IndexFunc(documents, func(d document) bool { return d.schema == c.ref })].typescript
	answer, modifier := "Heard<"+kind+">", "async "
	request := fmt.Sprintf("this.ask(%q, %s, options)", c.operation, payload)
	body := "return " + request
	inner := slices.IndexFunc(c.answer.Properties, func(m member) bool { return m.schema.Items != nil && m.schema.Items.Ref != "" })
	switch {
	case c.list:
		answer = "Heard<Heard<" + kind + ">[]>"
		body = fmt.Sprintf("return listOf(await %s, %q)", request, c.part)
	case c.part != "":
		body = fmt.Sprintf("return partOf(await %s, %q)", request, c.part)
	case inner >= 0:
		list := c.answer.Properties[inner].name
		request = strings.Replace(request, "this.ask(", "this.ask<"+kind+">(", 1)
		body = fmt.Sprintf("const answer = await %s;\n    answer.%[2]s = listOf(answer, %[2]q);\n    return answer", request, list)
	default:
		modifier = ""
	}
	return fmt.Sprintf("\n%s  %s%s(%soptions?: Options): Promise<%s> {\n    %s;\n  }\n", jsDoc("  ", c.about(), about), modifier, name, head, answer, body)
}

// typeScriptParameters returns the positional parameters of a method, its payload, and the
// documentation of the parameters.
func typeScriptParameters(t *testing.T, c call) (head, payload string, about []string) {
	t.Helper()
	positional, _ := c.parameters()
	var parameters, sent []string
	for _, m := range positional {
		kind := typeScriptType(t, c.operation, m.name, "", m.schema, true)
		about = append(about, "@param "+m.name+" "+m.schema.Description)
		switch {
		case c.request.needs(m.name):
			parameters, sent = append(parameters, m.name+": "+kind), append(sent, m.name)
		case kind == "string":
			parameters, sent = append(parameters, m.name+"?: "+kind), append(sent, m.name+": "+m.name+" || undefined")
		default:
			parameters, sent = append(parameters, m.name+"?: "+kind), append(sent, m.name+": "+m.name+" ?? undefined")
		}
	}
	if len(sent) == 0 {
		return "", "{}", nil
	}
	return strings.Join(parameters, ", "), "{ " + strings.Join(sent, ", ") + " }", about
}

// jsDoc returns a comment.
func jsDoc(indent, text string, more []string) string {
	if one := indent + "/** " + text + " */\n"; len(more) == 0 && len(one) <= pythonWidth+1 {
		return one
	}
	width := pythonWidth - len(indent) - len(" * ")
	lines := wrapped(text, width)
	if len(more) > 0 {
		lines = append(lines, "")
	}
	for _, each := range more {
		for i, line := range wrapped(each, width-2) {
			if i > 0 {
				line = "  " + line
			}
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	b.WriteString(indent + "/**\n")
	for _, line := range lines {
		b.WriteString(strings.TrimRight(indent+" * "+line, " ") + "\n")
	}
	b.WriteString(indent + " */\n")
	return b.String()
}

// typeScriptName returns the name of a method in TypeScript.
func (c call) typeScriptName() string {
	if c.name != "" {
		return c.name
	}
	return camel(c.operation)
}

// camel returns a name in the style of TypeScript.
func camel(name string) string {
	words := strings.Split(name, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}
