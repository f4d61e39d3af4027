// An agent is any program. It reads messages on stdin and prints messages on stdout,
// each of them a JSON object in a line of its own. What else it prints is its log.
// The types stand in comments, so that every Node.js runs it as it is.
console.log("hello, I am", process.env.ORC_AGENT_ID);

/** @param {{ type: string, payload: { taskId: string } }} message */
function hear(message) {
  if (message.type !== "notify:task-assigned") return;
  const taskId = message.payload.taskId;
  const result = { greeting: "hello, world" }; // the work is done here
  const timestamp = new Date().toISOString();
  console.log(JSON.stringify({ type: "request:complete-task", id: "done-" + taskId, timestamp, payload: { taskId, result } }));
}

let rest = ""; // of a line that has not come to its end
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) hear(JSON.parse(line));
}); // stdin ends when the agent is to end
