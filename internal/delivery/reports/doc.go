// Package reports writes the state of delivery to the identity cluster. In go the agent's state of each Secret, out comes one report for
// each identity, at most one a minute, and only after a change. It reads and changes no Secret.
package reports
