package sdk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The first lines of generated files, after the characters that begin a comment.
const (
	fromOperations = "Code generated from wire.Operations; DO NOT EDIT."
	fromSchemas    = "Code generated from wire/schema; DO NOT EDIT."
)

// pythonWidth is the length of a line of documentation.
const pythonWidth = 100

// pythonTypes are the types of members that differ from the schema, by the names of the document or
// the operation and the member.
var pythonTypes = map[string]string{
	"complete-task result": "Result", "submit-plan plan": "Plan", "complete-task artifacts": "Sequence[TaskArtifact]", "ask-user options": "Sequence[Union[str, Option]]",
	"ask-permission choices": "Sequence[PermissionChoice]",
	"Task context":           "TaskContext", "Task routing": "TaskRouting", "Task observability": "TaskTrace", "submit-task observability": "TaskTrace",
}

// pythonType returns the type of a member of a document or an operation. path leads to its schema.
// Mappings that are sent need not be dictionaries.
func pythonType(t *testing.T, of, name, path string, s *schema, sent bool) string {
	t.Helper()
	if given := pythonTypes[of+" "+name]; given != "" {
		return given
	}
	if s.ref() == "dependency" {
		return "Union[str, Dependency]"
	}
	if found := documentAt(s, path).python; found != "" && s.Items == nil {
		return found
	}
	if strings.HasPrefix(s.ref(), sessionMessage) {
		s = schemaAt(t, s.ref())
	}
	if len(s.words()) > 0 {
		return "str"
	}
	var kinds []string
	for _, kind := range s.types() {
		switch kind {
		case "string":
			kinds = append(kinds, "str")
		case "integer":
			kinds = append(kinds, "int")
		case "number":
			kinds = append(kinds, "float")
		case "boolean":
			kinds = append(kinds, "bool")
		case "array":
			kinds = append(kinds, "List["+pythonType(t, of, "", path, s.Items, sent)+"]")
		case "object":
			kinds = append(kinds, map[bool]string{true: "Mapping[str, Any]", false: "Dict[str, Any]"}[sent])
		}
	}
	switch len(kinds) {
	case 0:
		return "Any"
	case 1:
		return kinds[0]
	}
	return "Union[" + strings.Join(kinds, ", ") + "]"
}

// pythonDocuments returns the types of the documents in answers.
func pythonDocuments(t *testing.T) string {
	t.Helper()
	return pythonFile(t, documents, `"""The documents in the orchestrator's answers, as types for type checkers.

They are plain dictionaries and may have more keys than these. The classes whose names begin with _
list the keys that are always present.
"""`, "Any, Dict, List, Optional, TypedDict, Union", `from .taskdocuments import TaskContext, TaskRouting, TaskTrace
`, []string{"Plan", "Result"}, `
#: A plan or the result of a task: an object, a text, or None.
Result = Union[Dict[str, Any], str, None]
Plan = Result
`)
}

// pythonSessionDocuments returns the types of the documents in sessions.
func pythonSessionDocuments(t *testing.T) string {
	t.Helper()
	return pythonFile(t, sessionDocuments, `"""The documents of a session, as types for type checkers.

A sender may leave out members that have a default. A received document has all members that the
protocol requires.
"""`, "Any, Dict, List, TypedDict", "", nil, "")
}

// pythonTaskDocuments returns the types of the documents of delegated work.
func pythonTaskDocuments(t *testing.T) string {
	t.Helper()
	return pythonFile(t, workDocuments, `"""The documents of delegated work, as types for type checkers."""`, "Any, Dict, List, TypedDict", "", nil, "")
}

// pythonFile returns a file with the types of documents. more are names that the text after the
// list of names declares.
func pythonFile(t *testing.T, of []document, about, typing, imports string, more []string, text string) string {
	t.Helper()
	names := slices.Clone(more)
	var body strings.Builder
	for _, d := range of {
		if d.python != "" {
			names = append(names, d.python)
			body.WriteString(pythonDocument(t, d, schemaAt(t, d.schema)))
		}
	}
	slices.Sort(names)
	list := wrapped(`"`+strings.Join(names, `", "`)+`",`, 112)
	if imports != "" {
		imports = "\n" + imports
	}
	return fmt.Sprintf("# %s\n%s\n\nfrom __future__ import annotations\n\nfrom typing import %s\n%s\n__all__ = [\n    %s\n]\n%s%s",
		fromSchemas, about, typing, imports, strings.Join(list, "\n    "), text, body.String())
}

// pythonDocument returns a class, and the class of its required keys if some are optional.
func pythonDocument(t *testing.T, d document, s *schema) string {
	t.Helper()
	var needed, others []member
	for _, m := range s.Properties {
		if d.needed == "" && s.needs(m.name) || slices.Contains(strings.Fields(d.needed), m.name) {
			needed = append(needed, m)
		} else {
			others = append(others, m)
		}
	}
	doc := pythonText("    ", d.aboutOf(s))
	switch {
	case len(others) == 0:
		return fmt.Sprintf("\n\nclass %s(TypedDict):\n%s\n%s", d.python, doc, pythonMembers(t, d, needed))
	case d.extends != "":
		return fmt.Sprintf("\n\nclass %s(%s, total=False):\n%s\n%s", d.python, d.extends, doc, pythonMembers(t, d, others))
	}
	if len(needed) == 0 {
		return fmt.Sprintf("\n\nclass %s(TypedDict, total=False):\n%s\n%s", d.python, doc, pythonMembers(t, d, others))
	}
	return fmt.Sprintf("\n\nclass _%[1]s(TypedDict):\n%[2]s\n\nclass %[1]s(_%[1]s, total=False):\n%[3]s\n%[4]s",
		d.python, strings.TrimPrefix(pythonMembers(t, d, needed), "\n"), doc, pythonMembers(t, d, others))
}

func pythonMembers(t *testing.T, d document, of []member) string {
	t.Helper()
	var b strings.Builder
	for _, m := range of {
		kind := pythonType(t, d.python, m.name, d.schema+"/"+m.name, m.schema, false)
		if m.schema.nullable() && !d.sent {

			kind = "Optional[" + kind + "]"
		}
		if about := pythonAbout(m.schema); about != "" {
			b.WriteString("    #: " + strings.Join(wrapped(about, pythonWidth-len("    #: ")), "\n    #: ") + "\n")
		}
		fmt.Fprintf(&b, "    %s: %s\n", m.name, kind)
	}
	return b.String()
}

// pythonAbout returns the description of a member, with the texts that it may be.
func pythonAbout(s *schema) string {
	words := s.words()
	if len(words) == 0 || strings.Contains(s.Description, words[0]) {
		return s.Description
	}
	return s.Description + " One of " + strings.Join(words, ", ") + "."
}

// pythonText returns a text as a docstring.
func pythonText(indent, text string) string {
	if one := indent + `"""` + text + `"""` + "\n"; len(one) <= pythonWidth+1 {
		return one
	}
	lines := wrapped(`"""`+text+`"""`, pythonWidth-len(indent))
	return indent + strings.Join(lines, "\n"+indent) + "\n"
}

// pythonOperations returns the methods of the SDK for Python.
func pythonOperations(t *testing.T) string {
	t.Helper()
	all := calls(t)
	types := []string{"Dependency", "Option", "PermissionChoice", "Plan", "Result", "TaskArtifact"}
	var body strings.Builder
	for _, c := range all {
		if !c.event {
			types = append(types, pythonAnswer(c))
		}
		body.WriteString(pythonMethod(t, c))
	}
	slices.Sort(types)
	types = slices.Compact(types)
	return fmt.Sprintf(`# %s
"""The operations of the orchestrator and the events of coding agents, one method each."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union, cast

from .._wire.documents import (
    %s,
)
from .._wire.lines import each_option, without_none
from .._wire.taskdocuments import TaskTrace

__all__ = ["Operations"]


class Operations:
    """The requests of a connection, and the events of coding agents. A method for a request waits for
    the answer, and raises Refused if the request is refused. An event has no answer."""

    def ask(
        self, operation: str, payload: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Sends a request for any operation."""
        raise NotImplementedError

    def tell(self, event: str, payload: Optional[Mapping[str, Any]] = None) -> None:
        """Sends any event."""
        raise NotImplementedError

    def _one(self, operation: str, key: str, **payload: Any) -> Any:
        return self.ask(operation, without_none(**payload)).get(key) or {}

    def _list(self, operation: str, key: str, **payload: Any) -> Any:
        return self.ask(operation, without_none(**payload)).get(key) or []
%s`, fromOperations, strings.Join(wrapped(strings.Join(types, ", "), 110), "\n    "), body.String())
}

// pythonAnswer returns the document that a method returns, alone or in a list.
func pythonAnswer(c call) string {
	return documents[slices.IndexFunc(documents, func(d document) bool { return d.schema == c.ref })].python
}

// pythonMethod returns a method.
func pythonMethod(t *testing.T, c call) string {
	t.Helper()
	positional, named := c.parameters()
	parameters, sent, about := []string{"self"}, []string{}, []string{}
	add := func(m member) {
		name, keyword := snake(m.name), m.name == "class" // a word of the language
		if keyword {
			name += "_"
		}
		parameter, value := pythonParameter(t, c, m, name)
		parameters = append(parameters, parameter)
		if keyword {
			sent = append(sent, fmt.Sprintf("**{%q: %s}", m.name, value))
		} else {
			sent = append(sent, m.name+"="+value)
		}
		about = append(about, name+": "+m.schema.Description)
	}
	for _, m := range positional {
		add(m)
	}
	if len(named) > 0 {
		parameters = append(parameters, "*")
	}
	for _, m := range named {
		add(m)
	}
	kind := "None"
	switch {
	case c.event:
	case c.list:
		kind = "List[" + pythonAnswer(c) + "]"
	default:
		kind = pythonAnswer(c)
	}
	var b strings.Builder
	head := fmt.Sprintf("    def %s(%s) -> %s:\n", c.pythonName(), strings.Join(parameters, ", "), kind)
	if len(head) > 120 {
		head = fmt.Sprintf("    def %s(\n        %s,\n    ) -> %s:\n", c.pythonName(), strings.Join(parameters, ",\n        "), kind)
	}
	b.WriteString("\n" + head + pythonDoc(c.about(), about) + pythonBody(c, kind, sent))
	return b.String()
}

// pythonParameter returns a parameter of a method, and the value that is sent for it.
func pythonParameter(t *testing.T, c call, m member, name string) (parameter, value string) {
	t.Helper()
	kind := pythonType(t, c.operation, m.name, "", m.schema, true)
	value = name
	if given := c.python[m.name]; given != "" {
		value = given
	}
	switch {
	case c.request.needs(m.name) && c.python[m.name] == "":
		return name + ": " + kind, value
	case kind == "bool" && c.python[m.name] == "":
		return name + ": bool = False", name + " or None"
	case kind == "Any" || kind == "Result":
		return name + ": " + kind + " = None", value
	}
	return name + ": Optional[" + kind + "] = None", value
}

// pythonDoc returns the documentation of a method and its parameters.
func pythonDoc(about string, parameters []string) string {
	if len(parameters) == 0 {
		return pythonText("        ", about)
	}
	lines := wrapped(`"""`+about, pythonWidth-8)
	lines = append(lines, "")
	for _, each := range parameters {
		for i, line := range wrapped(each, pythonWidth-12) {
			if i > 0 {
				line = "    " + line
			}
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	for _, line := range append(lines, `"""`) {
		b.WriteString(strings.TrimRight("        "+line, " ") + "\n")
	}
	return b.String()
}

// pythonBody returns the statement of a method.
func pythonBody(c call, kind string, sent []string) string {
	if event, ok := strings.CutPrefix(c.operation, "event:"); ok {
		arguments := strings.Join(sent, ", ")
		if one := fmt.Sprintf("        self.tell(%q, without_none(%s))\n", event, arguments); len(one) <= 120 {
			return one
		}
		return fmt.Sprintf("        self.tell(%q, without_none(\n            %s,\n        ))\n", event, strings.Join(wrapped(arguments, 105), "\n            "))
	}
	request := fmt.Sprintf("self.ask(%q, without_none(%s))", c.operation, strings.Join(sent, ", "))
	switch {
	case c.list:
		request = fmt.Sprintf("self._list(%s)", strings.Join(append([]string{fmt.Sprintf("%q, %q", c.operation, c.part)}, sent...), ", "))
	case c.part != "":
		request = fmt.Sprintf("self._one(%s)", strings.Join(append([]string{fmt.Sprintf("%q, %q", c.operation, c.part)}, sent...), ", "))
	case len(sent) == 0:
		request = fmt.Sprintf("self.ask(%q)", c.operation)
	}
	if one := fmt.Sprintf("        return cast(%s, %s)\n", kind, request); len(one) <= 120 {
		return one
	}
	open, arguments, _ := strings.Cut(strings.TrimSuffix(request, ")"), "(")
	return fmt.Sprintf("        return cast(%s, %s(\n            %s,\n        ))\n", kind, open, strings.Join(wrapped(arguments, 105), "\n            "))
}

// pythonName returns the name of a method in Python.
func (c call) pythonName() string {
	if c.event {
		return snake(c.name)
	}
	return snake(c.operation)
}

// snake returns a name in the style of Python.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '-':
			r = '_'
		case unicode.IsUpper(r):
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
