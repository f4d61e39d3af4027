package wire

// ShutdownNotice is the payload of notify:shutdown.
type ShutdownNotice struct {
	GracePeriod int64  `json:"gracePeriod"` // milliseconds
	Reason      string `json:"reason"`
}
