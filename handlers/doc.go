// Package handlers is where decisions will be made: one State and one door to
// it, pure, so that the same inputs always give the same facts. Nothing is
// decided yet; agents are supervised, and what they say is log. It exists so
// that the import law has its subject from the first day.
package handlers
