# A small team that builds the web site of a lighthouse in twenty seconds. It needs
# no model and no network. Run it again with
#
#   orchestrator up --exit-when-idle
#
# in this folder, and change what you like. With --var reviewer=harsh nothing is
# ever right, and the exit code is 1.
#
# The whole language: orchestrator help config

orchestrator {
  name     = "lighthouse"
  shutdown = "10s"
}

# Each run is a story of its own. Without this block all of them are kept.
store {
  kind = "memory"
}

# Tasks that say what they require are given out as soon as there are any:
#
#   orchestrator task add "Find a better name" --language markdown
scheduler {
  on_create      = true
  count_assigned = true # one at a time: what somebody has not begun is not given to them
}

variable "pace" {
  description = "how long everything takes: 0.1 is ten times as fast"
  default     = "1"
}

variable "patience" {
  description = "how long the question waits for you"
  default     = "5s"
}

variable "out" {
  description = "where the site is built: a folder for it alone, site in the state directory when it is empty"
  default     = ""
}

variable "reviewer" {
  description = "fair, or harsh: then nothing is ever right"
  default     = "fair"
}

# One program plays all of them. What it is told first is its part.
locals {
  play = ["orchestrator", "demo", "play"]
  how  = ["-pace", var.pace, "-out", var.out == "" ? "" : abspath(var.out)]
}

# Who plans, who builds and who judges. What is put together is done when the
# reviewer says so: orchestrator session show site
session "site" {
  require_review = true
  member "architect" { type = "architect" }
  member "writer" { type = "developer" }
  member "designer" { type = "developer" }
  member "reviewer" { type = "reviewer" }
}

agent "architect" {
  description = "says what there is to do, and ends when it is done"
  command     = concat(local.play, ["architect"], local.how)
  depends_on  = ["writer", "designer", "reviewer"]

  restart {
    policy = "never"
  }
  capabilities {
    max_concurrent_tasks = 0 # it gives tasks, and takes none
  }
}

# It crashes in the middle of the tides, once. The task goes back to the queue, and is
# done by whoever is free first.
agent "writer" {
  description = "outlines and writes pages"
  command     = concat(local.play, ["developer", "-stumble"], local.how)
  on_exit     = "requeue"

  capabilities {
    languages = ["markdown", "html"]
  }
}

agent "designer" {
  description = "chooses colours, and writes pages too"
  command     = concat(local.play, ["developer", "-patience", var.patience], local.how)
  on_exit     = "requeue"

  capabilities {
    languages = ["css", "html"]
  }
}

agent "reviewer" {
  description = "reads every page and follows every link"
  command     = concat(local.play, ["reviewer"], var.reviewer == "harsh" ? ["-harsh"] : [], local.how)

  capabilities {
    max_concurrent_tasks = 0 # it judges, and takes no tasks
  }
}
