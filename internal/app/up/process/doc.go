// Package process runs other programs for as long as this one lives: it starts each in a process group of its own, writes
// its output to a file, restarts it when it ends by itself, ends all of them in reverse order, and reports why one ended.
// In go a program with its arguments and log file, out come process ids, exits and their causes. It never interprets what
// a program does, and never signals a process that it did not start or that does not name the directory it is given.
package process
