// Command orchestrator runs a team of agents from one file and answers questions about it.
package main

import "orchestrator/cmd/orchestrator/app"

func main() { app.Main() }
