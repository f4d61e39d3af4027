# The team: one agent. Everything else has a default: orchestrator help config
agent "hello" {
  command = ["node", "agents/hello.mjs"]
}
