# A team of three. The planner asks you something and gives out two tasks; the writer
# does the first, and the reviewer the second, with what the writer has made.
# An agent is any program: to use one of yours, change a command.
agent "planner" {
  command = ["sh", "agents/planner.sh"]
  role    = "planner"
}

agent "writer" {
  command = ["sh", "agents/writer.sh"]
  role    = "writer"
}

agent "reviewer" {
  command = ["sh", "agents/reviewer.sh"]
  role    = "reviewer"
}
