// An agent that does tasks. What the function returns is the result, and what it throws fails
// the task. Before connect, what it prints is its log; from then on, use console.error for it.
// As TypeScript, with Node 22.18 or later, the file can be called hello.mts.
import { connect } from "./orchestrator-agent/index.js";

console.log("hello, I am", process.env.ORC_AGENT_ID);

await connect().work(async (job) => {
  return { greeting: "hello, world", task: job.task.name }; // the work is done here
}); // it returns when the agent is to end
