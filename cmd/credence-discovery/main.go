// Command credence-discovery serves the public documents of an issuer. It is a program of its own so that what faces the
// world has no code that reads a key, and takes a fraction of the memory of credence-server.
package main

import (
	"github.com/credence-id/credence/internal/app/discovery"
	"github.com/credence-id/credence/internal/app/serving"
)

func main() { serving.Main(discovery.NewCommand()) }
