# Claude and Codex share the tasks of one folder, and write mail to each other.
# What each setting means: orchestrator help real-agents
agent "ann" {
  protocol     = "claude"
  permission   = "edits"                                  # you are asked before it runs a command
  allow        = ["Bash(git diff:*)", "Bash(git status)"] # but not before these
  instructions = "You share this folder with the agent ben. Before you change a file, tell ben with message_send which one, and why. Leave files alone that ben works on."
}

agent "ben" {
  protocol     = "codex"
  permission   = "edits"
  instructions = "You share this folder with the agent ann. Before you change a file, tell ann with message_send which one, and why. Leave files alone that ann works on."
}
