// Package telemetry exports metrics, and spans if a collector is configured.
//
// The metrics are in the text format of Prometheus. Some are updated by events, with a few additions for each batch.
// The rest are computed when they are read. A label is one of a few words or the name of a present agent, so agents
// cannot add labels.
//
// Spans are sent by OTLP over HTTP, as protobuf, if the environment specifies an endpoint in the variables of
// OpenTelemetry. Otherwise no spans are created and no goroutine runs. One span describes each
//
//   - task, from its creation to its end. Its parent is the span of the task that it comes
//     from, or the span that its creator has given (trace_id, span_id);
//   - assignment of a task to an agent, below the task. It has the number of earlier tries,
//     and the time at which a delegated task was delivered to the agent;
//   - request, below the assignment of its agent if the agent has exactly one;
//   - batch of facts, from the start of its commit until it is durable.
//
// The ids of spans are derived from the record, so that a restarted orchestrator continues the
// same traces. It reads the record again from the creation of the oldest open task. A span is
// sent when it ends. A span that had ended but was not sent is lost if the orchestrator is
// killed.
//
//	recorded batches, requests - queue - one goroutine: open work - spans
//	                                                  spans - queue - sender - collector
//
// Both queues have limits, and nothing waits for them. A span that does not fit is dropped and
// counted. A batch that does not fit is read again from the record.
//
// The package makes no decisions, and nothing waits for it. It knows agents, tasks and sessions
// only from the record.
package telemetry
