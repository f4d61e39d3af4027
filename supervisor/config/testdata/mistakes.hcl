variable "model" {
  type = string
}

variable "token" {
  type      = string
  default   = 12
  sensitve  = true
}

locals {
  a = local.b
  b = local.a
}

secret "key" {
  file = "key.txt"
  env  = "KEY"
}

orchestrator {
  shutdown = 10
}

http {
  listen   = ["127.0.0.1:7433", "0.0.0.0:80", "nowhere"]
  max_body = "16 mib"
}

store {
  kind = "sqllite"
}

store {
  durable = "perhaps"
}

agnet "typo" {}

defaults {
  restrat {}
  stop {
    signal = "TERM"
  }
  limits {
    mailbox = 1.5
    memory  = "64k"
  }
}

agent "coder" {
  command    = "node coder.mjs"
  dir        = "no/such/folder"
  depends_on = ["planer", "reviewer"]
  env        = { TOKEN = env("NO_SUCH_VARIABLE"), "A=B" = 1 }
  replicas   = -1

  restart {
    delay  = "soon"
    factor = 0.5
    jitter = 2
    permanent = [1, 300]
  }
}

agent "planner" {
  command     = []
  comand      = ["x"]
  description = "uses ${secret.key}"
  protocol    = native
  role        = ["worker"]
}

agent "reviewer" {
  command    = [var.modle, locl.a, upperr("x")]
  depends_on = ["tester"]
  pty        = true
  stdin      = "null"
}

agent "tester" {
  depends_on = ["reviewer"]
  actor      = ""
}

agent "tester" {
  command = ["true"]
}

agent "-bad name" {
  command = ["true"]
}

session "s" {
  on_max = "explode"
  member "codre" { type = "developer" }
}
