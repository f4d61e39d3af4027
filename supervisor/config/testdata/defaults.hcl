# Everything the language has, each attribute set to what it is anyway.
# testdata is this file's folder, so it is the default name.

orchestrator {
  name      = "testdata"
  state_dir = ".orchestrator"
  shutdown  = "40s"
}

http {
  listen   = []
  hosts    = ["localhost", "127.0.0.1", "::1"]
  max_body = "16MiB"
  rate     = 200
}

log {
  level  = "info"
  format = "auto"
}

store {
  kind    = "sqlite"
  path    = "events.db"
  durable = true
  keep    = "forever"
}

protocol {
  max_line              = "16MiB"
  max_depth             = 64
  rate                  = 100
  burst                 = 100
  request_timeout       = "30s"
  on_dependency_failure = "auto"
  strict_results        = true
}

scheduler {
  on_create          = false
  on_online          = true
  assign_offline     = true
  count_assigned     = false
  max_attempts       = 3
  verify_attempts    = 2
  delegation_retries = 0
}

bus {
  heartbeat = "60s"
  stale     = "180s"
  topics    = []
}

defaults {
  inherit_env = "ordinary"
  wrap        = []
  user        = ""

  restart {
    policy      = "on-failure"
    delay       = "500ms"
    factor      = 2.0
    max_delay   = "30s"
    jitter      = 0.2
    reset_after = "60s"
    burst       = 5
    window      = "2m"
    permanent   = [64, 78, 126, 127]
  }

  stop {
    close_stdin = "30s"
    signal      = "SIGTERM"
    grace       = "5s"
  }

  health {
    silence       = "0s"
    write_timeout = "10s"
    on_stalled    = "mark"
  }

  limits {
    mailbox       = 1024
    mailbox_bytes = "32MiB"
    open_files    = 0
    memory        = "0"
    processes     = 0
    cpu           = 0
    open_tasks    = 1000
    stored        = "1GiB"
    rate_bytes    = "8MiB"
    connections   = 64
  }

  output {
    dir      = "logs"
    max_size = "16MiB"
    keep     = 8
    tail     = 200
  }
}

agent "worker" {
  command     = ["./worker"]
  wrap        = []
  user        = ""
  description = ""
  dir         = "."
  env         = {}
  env_file    = []
  inherit_env = "ordinary"
  protocol    = "native"
  stdin       = "pipe"
  role        = "worker"
  actor       = "auto"
  pty         = false
  operator    = false
  manage      = false
  replicas    = 1
  depends_on  = []
  autostart   = true
  on_exit     = "auto"
  verify      = []
  verify_env  = []

  permission   = "ask"
  allow        = []
  model        = ""
  instructions = ""
  on_turn_end  = "remind"
  resume       = true
  wire_log     = true

  capabilities {
    fixed                = false
    languages            = []
    tools                = []
    environments         = []
    tags                 = []
    names                = []
    max_concurrent_tasks = 1
  }
}
