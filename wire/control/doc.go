// Package control has the documents with which a running orchestrator is operated: its status,
// its agents and their output, and the requests that start and stop agents, reload the
// configuration and end everything.
package control
