// Package logtest has the rules that every implementation of eventlog.Log must pass. A package
// with an implementation calls Run in a test.
//
// The rules use only the methods of a Log. A test of the file or the server behind a log belongs
// to its package.
//
//	content.go  facts come back in order, once; refusals
//	use.go      readers beside a writer, states, contexts, closing and opening again
//	find.go     searches
//	trim.go     removing old facts
//	objects.go  objects of a shared log; RunObjects has the rules for them
//	shared.go   RunShared, which applies the rules to a log that several hubs share
//	engine.go   an engine in memory for a log that several hubs share
//	series/     the facts that tests write; it does not know the package eventlog, because the
//	            tests use it
package logtest

import (
	"testing"

	"orchestrator/supervisor/eventlog"
)

// A Log has the methods that the rules need of an implementation.
type Log interface {
	eventlog.Log
	Last() int64
	Close() error
}

// A Subject is an implementation that must pass the rules.
type Subject struct {
	Name string

	// Open opens the log of a test, which is empty at first. The rules close it only where they
	// test that, so Open should register the cleanup.
	Open func(t *testing.T) Log

	// Remembers tells the rules that every Open in a test opens the same log, with its content,
	// also while another one is open.
	Remembers bool

	// KeepsAll tells the rules that Trim removes no facts.
	KeepsAll bool
}

const (
	maxFact   = 32 << 20 // bytes of the largest fact; see eventlog.ErrInvalid
	partBytes = 1 << 20  // bytes of a part of a state; its end may be lost at the borders of parts
)

// Run checks that a subject passes the rules.
func Run(t *testing.T, subject Subject) {
	rules := []struct {
		name string
		test func(t *testing.T, subject Subject)
	}{
		{"an empty log", conformEmpty},
		{"facts come back as they went in", conformRoundTrip},
		{"order and numbers", conformOrder},
		{"the fence", conformFence},
		{"one of many wins each number", conformRace},
		{"keys", conformKeys},
		{"what cannot be kept", conformInvalid},
		{"every character of text", conformText},
		{"a huge payload", conformHuge},
		{"readers beside a writer", conformReaders},
		{"a reader who writes and reads", conformNested},
		{"a reader who stops", conformStop},
		{"mail is found", conformMail},
		{"archived tasks are found", conformArchived},
		{"records that refer to artifacts are found", conformRefs},
		{"facts are removed from the front", conformTrim},
		{"a key is found", conformFindKey},
		{"any search", conformFindAny},
		{"searches beside a writer", conformFindReaders},
		{"a search that writes and searches", conformFindNested},
		{"large letters", conformFindLarge},
		{"a search that is over", conformFindOver},
		{"names of any text", conformFindText},
		{"states", conformStates},
		{"a cancelled context", conformContext},
		{"closed", conformClosed},
		{"opened again", conformReopen},
	}
	t.Run(subject.Name, func(t *testing.T) {
		for _, rule := range rules {
			t.Run(rule.name, func(t *testing.T) { rule.test(t, subject) })
		}
	})
}
