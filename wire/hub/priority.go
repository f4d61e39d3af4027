package hub

import (
	"fmt"

	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// PriorityIn reads an optional number or text and returns it as it was written.
func PriorityIn(o *object.Reader, key string) object.Raw {
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

// OddPriority returns a warning about a priority that has no defined meaning, or nil. Such a
// priority is stored, and counts by its Urgency.
func OddPriority(given object.Raw) *Oddity {
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
		Kind: events.DocumentOdd, Pointer: "/payload/priority",
		Text: fmt.Sprintf("%.80s is not a number from 1 to 5, nor critical, high, normal or low: it counts as %s", given, counts),
	}
}

// PriorityWord returns a priority as a word: the given word, or the word of its class.
func PriorityWord(given object.Raw) string {
	if len(given) > 0 && given[0] == '"' {
		word, _ := object.Text(given)
		return word
	}
	return [...]string{"critical", "high", "normal", "low"}[Urgency(given)]
}

// Urgency returns the class of a priority, from 0, the most urgent, to 3. A missing priority has
// class 2.
func Urgency(priority object.Raw) uint8 {
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
