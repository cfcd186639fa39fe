// Package screen is the input and output of the commands: standard streams, tables, JSON and YAML, and the note on what is being waited
// for. In go values; out comes text for people or programs. Everything that it writes to standard error passes a guard that redacts
// tokens. It knows nothing of what it prints.
package screen
