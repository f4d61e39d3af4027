# A small team that shows what an orchestrator is for. Run it with
#
#   go run ./cmd/orchestrator up
#
# and stop it with Ctrl-C. The whole language: orchestrator help config

orchestrator {
  name     = "demo"
  shutdown = "10s"
}

# Tasks that say what they require are given out as soon as there are any:
#
#   orchestrator task add "Fix the leak" --language go --tool git
scheduler {
  on_create = true
}

# Submits three tasks, one after the other, and waits until they are done.
agent "planner" {
  description = "has work to give"
  command     = ["go", "run", "./fixtures/planner", "-payload", "{\"ms\": 2000}", "spec", "build", "ship"]
  role        = "planner"

  restart {
    policy = "never"
  }
}

# Two who do it. Give them more: orchestrator task add "Say hello"
agent "worker" {
  description = "does tasks"
  command     = ["go", "run", "./fixtures/worker"]
  replicas    = 2

  capabilities {
    languages    = ["go", "sh"]
    tools        = ["git"]
    environments = ["linux"]
  }
}

# Says a line now and then. phoenix and family start after it.
agent "ticker" {
  description = "a steady worker"
  command     = ["go", "run", "./fixtures/ticker", "-times", "0", "-every", "1s"]

  restart {
    policy = "always"
  }

  capabilities {
    max_concurrent_tasks = 0 # it knows nothing of tasks
  }
}

# Crashes twice before it does its work: watch the delays grow.
agent "phoenix" {
  description = "crashes twice, then works"
  command     = ["go", "run", "./fixtures/phoenix"]
  depends_on  = ["ticker"]

  capabilities {
    max_concurrent_tasks = 0 # it knows nothing of tasks
  }
}

# Ends, and leaves a stubborn grandchild behind. It does not stay for long.
agent "family" {
  description = "leaves a process behind"
  command     = ["go", "run", "./fixtures/family"]
  depends_on  = ["ticker"]

  capabilities {
    max_concurrent_tasks = 0 # it knows nothing of tasks
  }
}

# Two agents from one block. They are told when it is time to go.
agent "listener" {
  description = "hears the end coming"
  command     = ["go", "run", "./fixtures/listener"]
  replicas    = 2

  capabilities {
    max_concurrent_tasks = 0 # it knows nothing of tasks
  }
}
