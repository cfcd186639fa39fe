// Command credence-credential is the provider of exec credentials for kubeconfigs, as small as it can be: it serves what is kept,
// and becomes "credence credential …" for everything else.
package main

import (
	"os"
	"time"

	"github.com/credence-id/credence/internal/app/provider"
)

func main() { os.Exit(provider.Run(os.Args[1:], os.Stdout, os.Stderr, time.Now)) }
