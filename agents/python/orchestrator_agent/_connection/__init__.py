"""The two streams: requests and answers, events, queues of what has arrived, and waiting. It imports
only _wire."""
