package wire

import "time"

// Notification is what an agent is told without having asked.
type Notification struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Payload   any    `json:"payload"`
}

// ShutdownNotice is the payload of notify:shutdown.
type ShutdownNotice struct {
	GracePeriod int64  `json:"gracePeriod"` // milliseconds
	Reason      string `json:"reason"`
}

// Shutdown makes the notification that an agent's time ends in grace.
func Shutdown(id string, at time.Time, grace time.Duration, reason string) Notification {
	return Notification{
		Type:      "notify:" + NoticeShutdown,
		ID:        id,
		Timestamp: Timestamp(at),
		Payload:   ShutdownNotice{GracePeriod: grace.Milliseconds(), Reason: reason},
	}
}

// Timestamp spells a time as every message and document does: UTC, RFC 3339,
// milliseconds.
func Timestamp(at time.Time) string { return at.UTC().Format(timeLayout) }

const timeLayout = "2006-01-02T15:04:05.000Z07:00"
