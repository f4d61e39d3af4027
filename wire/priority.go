package wire

import (
	"fmt"

	"orchestrator/wire/object"
)

// readPriority is an optional number or text, as it was written.
func readPriority(o *object.Reader, key string) Raw {
	value := o.Find(key)
	switch {
	case value == nil:
		return nil
	case value[0] == '"':
		if object.IsBlank(o.Text(key)) {
			o.Refuse(key, "must not be empty")
		}
		return object.Clone(value)
	}
	_, raw := o.Number(key)
	return raw
}

// OddPriority returns the warning about a priority that is none of those with a meaning, or
// nil. It is kept as it is, and counts as Urgency says.
func OddPriority(given Raw) *Oddity {
	if len(given) == 0 {
		return nil
	}
	counts := [...]string{"critical", "high", "normal", "low"}[Urgency(given)]
	if given[0] == '"' {
		switch word, _ := object.Text(given); word {
		case "critical", "urgent", "high", "normal", "medium", "low":
			return nil
		}
	} else {
		var number float64
		if object.Decode(given, &number) == nil && number >= 1 && number <= 5 {
			return nil
		}
	}
	return &Oddity{
		Kind: EventDocumentOdd, Pointer: "/payload/priority",
		Text: fmt.Sprintf("%.80s is not a number from 1 to 5, nor critical, high, normal or low: it counts as %s", given, counts),
	}
}

// PriorityWord is a priority for those who use words: their own, or that of its
// class.
func PriorityWord(given Raw) string {
	if len(given) > 0 && given[0] == '"' {
		word, _ := object.Text(given)
		return word
	}
	return [...]string{"critical", "high", "normal", "low"}[Urgency(given)]
}

// Urgency is the class of a priority: 0 is the most urgent of four, and 2 what
// no agent gave.
func Urgency(priority Raw) uint8 {
	if len(priority) == 0 {
		return 2
	}
	if priority[0] == '"' {
		word, _ := object.Text(priority)
		switch word {
		case "critical", "urgent":
			return 0
		case "high":
			return 1
		case "low":
			return 3
		}
		return 2
	}
	var value float64
	if object.Decode(priority, &value) != nil {
		return 2
	}
	switch {
	case value <= 1:
		return 0
	case value <= 2:
		return 1
	case value <= 3:
		return 2
	}
	return 3
}
