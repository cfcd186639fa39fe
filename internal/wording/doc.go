// Package wording words times, counts and lists for people, and makes the texts of others safe to show. In go values and texts that may
// come from anyone; out come texts without tokens, and without characters that would change a terminal. It reads and writes nothing.
package wording
