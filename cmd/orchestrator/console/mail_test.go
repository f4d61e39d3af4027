package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// mailed returns the event of a message.
func mailed(from, to, topic, payload string, answers int64) wire.Event {
	m := &wire.Mail{Seq: 42, From: from, To: to, Topic: topic, Payload: wire.Raw(payload)}
	if answers != 0 {
		m.ReplyTo = &answers
	}
	return wire.Event{Kind: events.MessageSent, Text: from + " -> " + to + "  " + topic, Mail: m}
}

// correspondence has the events about messages.
var correspondence = []wire.Event{
	mailed("GO", "GO", mail.TopicAgentSpawned, `{"agent":"shop"}`, 0),
	mailed("PO:shop", "PO:coder", mail.TopicDirect, `{"text":"hello"}`, 0),
	{Kind: events.MessageAcked, Text: "PO:coder has dealt with its mail up to 42"},
	{Kind: events.ActorSeen, Text: "PO:shop is there"},
	{Kind: events.ActorStale, Text: "PO:shop sends no heartbeat any more"},
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"agent.stale","actor":"PO:shop","agent":"shop","last_seen":"2026-11-20T14:30:00.000Z"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertResolved, `{"alert":"agent.stale","actor":"PO:shop","agent":"shop","text":"its heartbeat is back"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"agent.crashed","actor":"PO:shop","agent":"shop","exit_code":3}`, 0),
	mailed("Bus", "GO", mail.TopicAlertResolved, `{"alert":"agent.crashed","actor":"PO:shop","agent":"shop"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"message.failed","actor":"HO:attic","text":"no \u001b[2Jink"}`, 41),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"message.failed","actor":"HO:attic"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"disk.full","actor":"Bus","text":"no room"}`, 0),
	mailed("PO:shop", "GO", mail.TopicAlertFired, `{"alert":"agent.stale","actor":"PO:coder"}`, 0),
	mailed("PO:shop", "PO:coder", mail.TopicAlertFired, `{"alert":"agent.stale"}`, 0),
	mailed("Bus", "GO", mail.TopicUnknown, `{"topic":"odd.thing","from_actor":"PO:shop","to_actor":"GO","seq":7}`, 7),
	mailed("Bus", "GO", mail.TopicUnknown, `{"topic":"odd.thing","from_actor":"PO:shop","to_actor":"GO","seq":9}`, 9),
	mailed("PO:shop", "GO", mail.TopicUnknown, `{"topic":"other"}`, 0),
	{Kind: events.MessageSent, Text: "cannot be read"},
	{Kind: events.ActorTokenIssued, Text: "HO:attic has a new token a1b2c3d4"},
}

// The console shows alerts, unknown topics and each crash once, and not every message.
func TestConsoleShowsAlerts(t *testing.T) {
	require.Equal(t, `14:33:02 shop    ! PO:shop sends no heartbeat (agent.stale)
14:33:02 shop    ok PO:shop is not missed any more: its heartbeat is back (agent.stale)
14:33:02 ! HO:attic could not deal with message 41: no \x1b[2Jink (message.failed)
14:33:02 ! HO:attic could not deal with a message (message.failed)
14:33:02 ! Bus: no room (disk.full)
14:33:02 ! PO:shop: {"alert":"agent.stale","actor":"PO:coder"} (alert.fired)
14:33:02 . PO:shop uses the topic odd.thing, which is not registered (bus.topics)
14:33:02 . HO:attic has a new token a1b2c3d4
`, shown(false, false, correspondence...))
}

// With --quiet, only trouble is shown.
func TestConsoleKeepsCalmAboutMessages(t *testing.T) {
	require.Equal(t, `14:33:02 shop    ! PO:shop sends no heartbeat (agent.stale)
14:33:02 ! HO:attic could not deal with message 41: no \x1b[2Jink (message.failed)
14:33:02 ! HO:attic could not deal with a message (message.failed)
14:33:02 ! Bus: no room (disk.full)
14:33:02 ! PO:shop: {"alert":"agent.stale","actor":"PO:coder"} (alert.fired)
`, shown(false, true, correspondence...))
}

// Only trouble is highlighted.
func TestConsolePaintsAlerts(t *testing.T) {
	screen := shown(true, false, correspondence...)
	require.Contains(t, screen, "\x1b[33m!\x1b[0m PO:shop sends no heartbeat")
	require.Contains(t, screen, "\x1b[32mok\x1b[0m PO:shop is not missed")
	require.Contains(t, screen, "\x1b[2mPO:shop uses the topic odd.thing")
	require.Contains(t, screen, "\x1b[2mHO:attic has a new token")
}
