// Package reports tells the identity cluster how delivery goes. In go what the agent knows of each Secret, out comes one report for
// each identity, at most one a minute, and none where nothing has changed. It reads and changes no Secret.
package reports
