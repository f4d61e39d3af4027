# Claude splits a task into parts, and three times Codex does the parts.
# What each setting means: orchestrator help real-agents
agent "planner" {
  protocol     = "claude"
  role         = "planner" # it gets the tasks that are added with --role planner
  permission   = "ask"     # you are asked before it changes anything
  instructions = "Do not do your task yourself. Split it into parts that change different files. Add each part with task_add and the role worker; say in needs which parts must be done before. Then complete your task with a list of the parts."
}

agent "worker" {
  protocol   = "codex"
  permission = "edits" # you are asked about what the sandbox does not allow
  replicas   = 3       # worker-0, worker-1 and worker-2, all in this folder
}
