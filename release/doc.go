// Command release makes what is shipped, from a checkout: container images without a base image, archives of the programs that people
// run, and a software bill of materials for each. It also checks the versions of modules that go into them. The same commit gives the same
// bytes, wherever it is built.
package main
