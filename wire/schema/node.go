package schema

// A Node is a JSON Schema, or a part of one, with its members in order. A value is a Node, a list
// of values, a string, a Literal, a bool or nil.
type Node []Member

// A Member is a keyword of a Node.
type Member struct {
	Key   string
	Value any
}

// A Literal is JSON text, such as a number digit for digit.
type Literal string

// Type returns the schema of values of any of the types.
func Type(types ...string) Node {
	if len(types) == 1 {
		return Node{{"type", types[0]}}
	}
	return Node{{"type", list(types)}}
}

// Const returns the schema of one value.
func Const(value any) Node { return Node{{"const", value}} }

// Enum returns the schema of the words.
func Enum(words ...string) Node { return Node{{"enum", list(words)}} }

// Pattern returns the schema of texts that match a regular expression.
func Pattern(pattern string) Node { return Node{{"pattern", pattern}} }

// Limit returns a keyword with a value as JSON text.
func Limit(keyword string, value Literal) Node { return Node{{keyword, value}} }

// ListOf returns the schema of lists of items.
func ListOf(item Node) Node { return Node{{"type", "array"}, {"items", item}} }

// Ref returns a reference to the schema of a document, or to a part such as #/$defs/time.
func Ref(name string) Node {
	if name[0] != '#' {
		name = "urn:orchestrator:" + name
	}
	return Node{{"$ref", name}}
}

// Need returns the rule that the members are present.
func Need(keys ...string) Node { return Node{{"required", list(keys)}} }

// May returns the rule that a member fits a schema if it is present.
func May(key string, is Node) Node { return Node{{"properties", Node{{key, is}}}} }

// Has returns the rule that a member is present and fits a schema.
func Has(key string, is Node) Node { return append(May(key, is), Need(key)...) }

// If returns the rule that documents that fit one schema also fit another.
func If(fits, then Node) Node { return Node{{"if", fits}, {"then", then}} }

// Not returns the rule that a document does not fit a schema.
func Not(fits Node) Node { return Node{{"not", fits}} }

// AnyOf returns the rule that a document fits one of the schemas at least.
func AnyOf(of ...Node) Node { return Node{{"anyOf", nodes(of)}} }

// OneOf returns the rule that a document fits exactly one of the schemas.
func OneOf(of ...Node) Node { return Node{{"oneOf", nodes(of)}} }

// AllOf returns the rule that a document fits all of the schemas.
func AllOf(of ...Node) Node { return Node{{"allOf", nodes(of)}} }

// And returns a schema with the keywords of several.
func And(of ...Node) (all Node) {
	for _, node := range of {
		all = append(all, node...)
	}
	return all
}

// About returns a schema with a description.
func About(description string, of Node) Node {
	return append(Node{{"description", description}}, of...)
}

func list(words []string) []any {
	all := make([]any, 0, len(words))
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

func nodes(of []Node) []any {
	all := make([]any, 0, len(of))
	for _, node := range of {
		all = append(all, node)
	}
	return all
}

// Formats are the forms of texts that many documents share. The schema tag of a field names one.
var Formats = map[string]Node{
	"nonblank": About("A text that is not blank.", Pattern(Nonblank)),
	"stamp":    Pattern(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$`),
	"time": About("An ISO 8601 time. Without a zone it is UTC. The day must exist in the calendar, which the pattern cannot express.",
		Pattern("^("+extended+"|"+compact+")$")),
	"id": About("An id: a text of at most 200 bytes that is not blank and has no control characters.",
		And(Limit("maxLength", "200"), Pattern(printed))),
	"label":     And(Limit("maxLength", "4096"), Pattern(printed)),
	"plain":     And(Limit("maxLength", "4096"), Pattern("^[^\u0000-\u001f\u007f-\u009f]*$")),
	"messageID": And(Limit("maxLength", "200"), Pattern(`^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|msg-[0-9]+(-[0-9a-zA-Z]+)?)$`)),
	"word":      Pattern(`^[A-Za-z0-9_]+$`),
	"secret":    Pattern("^orc_"),
	"priority":  And(Limit("minimum", "-1.7976931348623157e+308"), Limit("maximum", "1.7976931348623157e+308"), Pattern(Nonblank)),
	"digits":    Pattern("^[1-9][0-9]{0,14}$"),
	"key":       And(Limit("maxLength", "200"), Pattern("^[^\u0000-\u001f\u007f-\u009f]+$")),
	"person":    Pattern("^[^\u0000-\u001f\u007f-\u009f]*[^ \u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"),
	"session":   Pattern("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
	"topic":     And(Limit("maxLength", "200"), Limit("pattern", `"^`+topicWord+`(\\.`+topicWord+`)*$"`)),
	"actor":     actor(""),
	"addressee": actor("broadcast|Bus|Governor|"),
	"recipient": actor("[A-Za-z0-9][A-Za-z0-9._-]{0,62}|"),
}

// topicWord matches a word of a topic.
const topicWord = `[^.*\u0000- \u007f-\u00a0\u2000-\u200f\u2028-\u202f\u3000\ufeff]+`

// actor returns the schema of the ids of actors, and of other texts, each with a bar behind it.
func actor(others Literal) Node {
	const word = `[^:\u0000- \u007f-\u00a0\u2000-\u200f\u2028-\u202f\u3000\ufeff]+`
	return And(Limit("maxLength", "200"), Limit("pattern", `"^(`+others+`GO|(HO|PO|IO|W):`+word+`|S:`+word+`:`+word+`)$"`))
}

// Nonblank matches texts with a character that is not blank.
const Nonblank = `[^ \t\n\r\f]`

// printed matches texts without control characters that are not blank.
const (
	printed = "^[^\u0000-\u001f\u007f-\u009f]*[^\u0000- \u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
)

// An ISO 8601 time has an extended and a compact form.
const (
	date     = `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	extended = date + `(T([01][0-9]|2[0-3]):[0-5][0-9]((:[0-5][0-9]([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)|(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?))?`
	compact  = `[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3])[0-5][0-9])`
)
