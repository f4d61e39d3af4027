// An agent is any program. What it prints is its log. The types stand in
// comments, so that every Node.js runs it as it is: no packages, no build.
console.log("hello, I am", process.env.ORC_AGENT_ID);

/** @param {{ type: string, payload: { reason?: string } }} message */
function hear(message) {
  if (message.type === "notify:shutdown") console.log("asked to stop:", message.payload.reason);
  else console.log("told:", message.type);
}

// What arrives on stdin are messages, one JSON object a line. The last one is
// notify:shutdown; then stdin ends, and so should the agent.
let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) hear(JSON.parse(line));
}).on("end", () => console.log("goodbye"));
