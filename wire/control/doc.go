// Package control has the documents for operating a running orchestrator: its status, its agents
// and their output, and the requests that start and stop agents, reload the configuration and end
// the orchestrator.
package control
