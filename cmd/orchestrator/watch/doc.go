// Package watch shows agents, tasks, questions, messages and output on the full screen.
// Keys answer questions and run commands.
//
// Watch is a client of the API. It reads what it shows, and runs commands of the command
// line for what the user asks. Quitting or killing it has no effect on the orchestrator.
// While the orchestrator does not answer, the screen shows the last known state and says
// so.
//
// The goroutine that handles keys owns the model. Anything slow runs in goroutines of the
// feed, which send their results to the model, so keys never wait for the orchestrator. All
// of them end before Run returns.
package watch
