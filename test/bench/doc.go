// Package bench measures the running programs from outside: how long they take to be ready, and what memory they hold. In
// goes the folder of the programs (CREDENCE_BIN), out come benchmark results; it never judges by elapsed time.
package bench
