// Package objects writes the objects that a command makes, and prints them. In go objects in the order of their writing, and how stored ones
// are changed; out come objects in the API server, lines with what was done, or manifests for Git. It reads all before the first
// write, and decides nothing about contents.
package objects
