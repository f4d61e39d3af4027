# A small team that builds the website of a lighthouse in twenty seconds. It needs
# no model and no network. Run it again with
#
#   orchestrator up --exit-when-idle
#
# in this folder, and change what you like. With --var reviewer=harsh, the reviewer
# rejects everything, and the exit code is 1.
#
# The whole language: orchestrator help config

orchestrator {
  name     = "lighthouse"
  shutdown = "10s"
}

# Keep each run in memory. Without this block, runs are stored on disk.
store {
  kind = "memory"
}

# Tasks with requirements are assigned when they are created:
#
#   orchestrator task add "Find a better name" --language markdown
scheduler {
  on_create      = true
  count_assigned = true # an assigned task counts before it starts, so agents get one at a time
}

variable "pace" {
  description = "scale of all times: 0.1 is ten times as fast"
  default     = "1"
}

variable "patience" {
  description = "how long the question waits for you"
  default     = "5s"
}

variable "out" {
  description = "folder for the site only; when empty, the folder site in the state directory"
  default     = ""
}

variable "reviewer" {
  description = "fair, or harsh to reject everything"
  default     = "fair"
}

# One program plays all agents. Its first argument is the role.
locals {
  play = ["orchestrator", "demo", "play"]
  how  = ["-pace", var.pace, "-out", var.out == "" ? "" : abspath(var.out)]
}

# The architect plans, the developers build, the reviewer reviews. The assembled site
# is done when the reviewer approves it: orchestrator session show site
session "site" {
  require_review = true
  member "architect" { type = "architect" }
  member "writer" { type = "developer" }
  member "designer" { type = "developer" }
  member "reviewer" { type = "reviewer" }
}

agent "architect" {
  description = "submits the tasks, and exits when the site is approved"
  command     = concat(local.play, ["architect"], local.how)
  depends_on  = ["writer", "designer", "reviewer"]

  restart {
    policy = "never"
  }
  capabilities {
    max_concurrent_tasks = 0 # it submits tasks and takes none
  }
}

# The writer crashes once, in the middle of the tides page. The task goes back to the
# queue for the first free agent.
agent "writer" {
  description = "outlines and writes pages"
  command     = concat(local.play, ["developer", "-stumble"], local.how)
  on_exit     = "requeue"

  capabilities {
    languages = ["markdown", "html"]
  }
}

agent "designer" {
  description = "chooses colours and writes pages"
  command     = concat(local.play, ["developer", "-patience", var.patience], local.how)
  on_exit     = "requeue"

  capabilities {
    languages = ["css", "html"]
  }
}

agent "reviewer" {
  description = "reads every page and checks every link"
  command     = concat(local.play, ["reviewer"], var.reviewer == "harsh" ? ["-harsh"] : [], local.how)

  capabilities {
    max_concurrent_tasks = 0 # it reviews and takes no tasks
  }
}
