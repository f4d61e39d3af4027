# Claude writes, Codex reviews, you decide.
# What each setting means: orchestrator help real-agents
session "change" {
  require_review = true # a task is done when a review approves it
  max_iterations = 3    # reviews of a task; after the last one, you decide
  member "lead" { type = "architect" }
  member "coder" { type = "developer" }
  member "reviewer" { type = "reviewer" }
}

# It takes each task, has it done and reviewed, and then completes it.
agent "lead" {
  command = ["orchestrator", "lead"]
}

agent "coder" {
  protocol   = "claude"
  permission = "edits"                                  # you are asked before it runs a command
  allow      = ["Bash(git diff:*)", "Bash(git status)"] # but not before these
  capabilities { max_concurrent_tasks = 0 }             # only the lead gives it tasks
}

agent "reviewer" {
  protocol     = "codex"
  permission   = "plan" # it reads, and changes nothing
  instructions = "Find what is wrong, with file and line."
  capabilities { max_concurrent_tasks = 0 }
}
