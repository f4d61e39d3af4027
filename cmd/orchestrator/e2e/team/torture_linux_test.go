package team

// The tortures test the whole program, with real agents, in situations that break process
// supervisors. TestTorture0… are the ten tests that were run with nine well-known supervisors;
// TestTortureN… is row N of the table of acceptance tests.
//
// Some rows cannot be tested here:
//
//   - Row 20, a clock that is set back: a test must not set the clock of its machine.
//     TestClockIsMonotonic of package supervisor checks that all times are monotonic.
//   - Row 8, the part about a thousand messages: see TestDeafAgentIsMarkedAndRecovers of package
//     supervisor. The other parts are tested here.
