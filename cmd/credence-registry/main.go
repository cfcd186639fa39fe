// Command credence-registry keeps passwords of registries fresh in Secrets that images are pulled with. It is a program of its own so that the
// agent has no code that speaks to registries, and this one no right to tokens.
package main

import (
	"github.com/credence-id/credence/internal/app/registry"
	"github.com/credence-id/credence/internal/app/serving"
)

func main() { serving.Main(registry.NewCommand()) }
