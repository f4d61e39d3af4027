orchestrator {
  name = "edition"
}

defaults {
  restart {
    policy = "on-failure"
    burst  = 3
  }
}

agent "hello" {
  command = ["sh", "worker.sh"]
  capabilities {
    names = ["greet"]
  }
}

agent "asker" {
  command     = ["sh", "asker.sh"]
  role        = "planner"
  description = "asks, and stays"
}

agent "idle" {
  command   = ["cat"]
  autostart = false
  role      = "reviewer"
}

session "change" {
  member "asker" {
    type = "architect"
  }
  member "hello" {
    type = "developer"
  }
  member "idle" {
    type = "reviewer"
  }
}
