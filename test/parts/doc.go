// Command parts runs a tier of tests, such as `parts test`: the parts of parts.go, side by side in two lanes. It prints one line for each
// part as it ends, then each failure with the command that runs it alone, and a last line of counts. It never changes the checkout, and an
// interrupt leaves no process, mount or folder.
package main
