// Package telemetry shows to programs how an orchestrator does: figures for those
// who come and read them, and spans for a collector, if there is one.
//
// The figures are in the text form of Prometheus. Some are counted as things
// happen, a few additions a batch; the rest is looked up when they are read.
// What stands in a label is one of few words, or the name of an agent that is there
// at that moment: nothing that an agent says makes one more.
//
// Spans leave by OTLP, over HTTP and in protobuf, when the environment says where
// to: the variables are those of OpenTelemetry. Without one nothing is made and
// nothing runs. There is one for each
//
//   - task, from its creation to its end: below the one of the task that it comes
//     from, or below what its creator has said (trace_id, span_id);
//   - assignment of a task to an agent, below the task. It says how often the task was
//     tried again before, and when one that was handed on was brought to the agent;
//   - request, below the assignment of its agent if that has just one;
//   - batch of facts, from the moment when the record is given it to the moment
//     when it is durable.
//
// Their ids are made of what stands in the record, so that an orchestrator that is
// started again goes on with the same trees: it reads the record again from where
// the oldest open task begins. A span leaves when it ends. One that had ended, and
// not left, when an orchestrator was killed is lost.
//
//	recorded batches, requests - queue - one goroutine: open work - spans
//	                                                  spans - queue - sender - collector
//
// Both queues are bounded and they are never waited for. A span for which there is no
// room is dropped and counted; a batch is read again from the record.
//
// The package decides nothing, and nothing waits for it. It knows nothing of
// agents, tasks or sessions but what the record says.
package telemetry
