# Claude writes, Codex reviews, you decide.
# The agents work in the folder work: a git worktree, or any other folder.
# What each setting means: orchestrator help real-agents

# The kernel refuses the agents all changes but those at write, and the files at hide. Where it cannot do
# this, they do not start, and up says why. best_effort = true in this block would start them unconfined.
defaults {
  confine {
    hide = ["~/.ssh", "~/.gnupg", "~/.aws", "~/.kube", "~/.config/gh", "~/.netrc", "~/.git-credentials"]
  }
}

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
  dir     = "work"
  confine {
    write = []
  }
}

agent "coder" {
  protocol   = "claude"
  dir        = "work"
  permission = "edits"                                  # it may change files there; you are asked about other commands
  allow      = ["Bash(git diff:*)", "Bash(git status)"] # but not before these
  capabilities { max_concurrent_tasks = 0 }             # only the lead gives it tasks
  confine {
    write = ["work", "~/.claude"]
  }
}

agent "reviewer" {
  protocol     = "codex"
  dir          = "work"
  permission   = "plan" # it reads, and changes nothing
  allow        = ["Bash(git diff:*)", "Bash(git log:*)", "Bash(git show:*)", "Bash(git status)", "Bash(ls:*)", "Bash(cat:*)", "Bash(grep:*)"]
  instructions = "Find what is wrong, with file and line."
  capabilities { max_concurrent_tasks = 0 }
  confine {
    write = ["~/.codex"]
  }
}
