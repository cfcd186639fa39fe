// Package progress shows a person what a long operation is doing and how long each part of it takes. In go the beginnings
// and ends of steps, out come lines (or, on a terminal, lines below which the running steps are shown), the same as JSON
// for another process, and the times of all parts. It never decides anything and never exits.
package progress
