# Claude splits a task into parts, and three times Codex does the parts.
# The agents work in the folder work: a git worktree, or any other folder.
# What each setting means: orchestrator help real-agents

# The kernel refuses the agents all changes but those at write, and the files at hide. Where it cannot do
# this, they do not start, and up says why. best_effort = true in this block would start them unconfined.
defaults {
  confine {
    hide = ["~/.ssh", "~/.gnupg", "~/.aws", "~/.kube", "~/.config/gh", "~/.netrc", "~/.git-credentials"]
  }
}
agent "planner" {
  protocol     = "claude"
  dir          = "work"
  role         = "planner" # it gets the tasks that are added with --role planner
  permission   = "ask"     # you are asked before it changes anything
  instructions = "Do not do your task yourself. Split it into parts that change different files. Add each part with task_add and the role worker; say in needs which parts must be done before. Then complete your task with a list of the parts."
  confine {
    write = ["work", "~/.claude"]
  }
}

agent "worker" {
  protocol   = "codex"
  dir        = "work"
  permission = "edits" # it may change files there; you are asked about other commands
  allow      = ["Bash(git diff:*)", "Bash(git status)", "Bash(ls:*)", "Bash(cat:*)", "Bash(grep:*)"]
  replicas   = 3 # worker-0, worker-1 and worker-2, all in this folder
  confine {
    write = ["work", "~/.codex"]
  }
}
