package wire

import (
	"strconv"

	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// AppendPayload appends a payload as JSON. The most frequent types are encoded by hand, all other
// types by reflection.
func AppendPayload(b []byte, payload any) ([]byte, error) {
	switch p := payload.(type) {
	case Spelled:
		return append(b, p...), nil
	case *TaskReply:
		b = append(b, `{"task":`...)
		return append(p.Task.Append(b), '}'), nil
	case *TaskList:
		b = append(b, `{"tasks":[`...)
		for i := range p.Tasks {
			if i > 0 {
				b = append(b, ',')
			}
			b = p.Tasks[i].Append(b)
		}
		b = append(b, ']')
		if p.More > 0 {
			b = strconv.AppendInt(append(b, `,"more":`...), p.More, 10)
			b = object.AppendText(append(b, `,"cursor":`...), p.Cursor)
		}
		return append(b, '}'), nil
	case *AgentList:
		b = append(b, `{"agents":[`...)
		for i := range p.Agents {
			if i > 0 {
				b = append(b, ',')
			}
			b = p.Agents[i].append(b)
		}
		return append(b, ']', '}'), nil
	case *mail.Message:
		return p.Append(b), nil
	case *mail.Sent:
		return p.Append(b), nil
	case *mail.List:
		return p.Append(b), nil
	}
	text, err := object.Encode(payload)
	return append(b, text...), err
}
