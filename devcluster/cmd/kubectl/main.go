// Command kubectl is the real kubectl, built from its library.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins of kubeconfig files
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// kubectl logs while its command is made, before the flags are parsed.
	if _, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args)); err != nil {
		util.CheckErr(err)
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
