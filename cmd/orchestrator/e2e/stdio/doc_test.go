package stdio

// Tests of messages between agents, people and the orchestrator, with the real program. The
// agents are scripted agents: real processes whose stdout the test writes, byte for byte, and whose
// stdin it reads.
