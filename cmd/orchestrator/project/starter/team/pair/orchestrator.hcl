# Claude and Codex share the tasks of one folder, and write mail to each other.
# The agents work in the folder work: a git worktree, or any other folder.
# What each setting means: orchestrator help real-agents

# The kernel refuses the agents all changes but those at write, and the files at hide. Where it cannot do
# this, they do not start, and up says why. best_effort = true in this block would start them unconfined.
defaults {
  confine {
    hide = ["~/.ssh", "~/.gnupg", "~/.aws", "~/.kube", "~/.config/gh", "~/.netrc", "~/.git-credentials"]
  }
}
agent "ann" {
  protocol     = "claude"
  dir          = "work"
  permission   = "edits"                                  # it may change files there; you are asked about other commands
  allow        = ["Bash(git diff:*)", "Bash(git status)"] # but not before these
  instructions = "You share this folder with the agent ben. Before you change a file, tell ben with message_send which one, and why. Leave files alone that ben works on."
  confine {
    write = ["work", "~/.claude"]
  }
}

agent "ben" {
  protocol     = "codex"
  dir          = "work"
  permission   = "edits"
  allow        = ["Bash(git diff:*)", "Bash(git status)", "Bash(ls:*)", "Bash(cat:*)", "Bash(grep:*)"]
  instructions = "You share this folder with the agent ann. Before you change a file, tell ann with message_send which one, and why. Leave files alone that ann works on."
  confine {
    write = ["work", "~/.codex"]
  }
}
