"""An agent that corrects what others write, and says for whom it has."""

from orchestrator_agent import Connection, Delegated


def correct(job: Delegated):
    job.progress("reading")
    return {"by": "corrector", "text": job.payload["draft"].upper(), "trace": job.request["observability"]["traceId"]}


Connection().serve({"correct": correct})
