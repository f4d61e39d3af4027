// An agent that writes, and has what it has written corrected by another one.
import { connect } from "@orchestrator/agent";

await connect().serve({
  write: async (job) => {
    await job.progress("the first draft");
    const correcting = await job.delegate({ type: "correct", payload: { draft: `${job.payload.title}, by me` } });
    const { result } = await correcting.wait();
    job.artifact({ name: "draft.md", type: "text/markdown", content: "# Draft\n" });
    return { by: "writer", text: result };
  },
});
