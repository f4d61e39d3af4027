package api

// pidAt finds no process: this system has no list of connections that a user may read.
func pidAt(string) int { return 0 }
