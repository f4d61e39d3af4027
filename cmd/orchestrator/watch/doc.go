// Package watch is the full screen: what every agent does, tasks, questions, messages
// and output, kept up to date, and answered and commanded by keys.
//
// It is a client as any other. What it shows it asks for, what it is told to do it
// has a verb of the command line do, and nothing that happens to it touches what it
// shows: it may be left, killed or cut off at any time. What stands on the screen
// when the orchestrator cannot be reached is the last that was heard, and says so.
//
// One goroutine has the model: that of the keys. All that may take time is done by
// goroutines of the feed, which tell the model what came of it, so that whatever an
// orchestrator does the keys are heard. They end before Run returns.
package watch
