// Package hitlog is the hit log: one JSON line for every counted navigation and
// for every refusal, written through log/slog by every adapter and read back by
// the sizing, replay and report commands. Its field names are an interface.
//
// A store's failure has an event of its own and never looks like a limit.
package hitlog
