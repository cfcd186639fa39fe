package credential

import "golang.org/x/sys/windows"

// systemFolder returns the folder of the programs of the system. The variable SystemRoot may be that of a kubeconfig.
func systemFolder() (string, error) { return windows.GetSystemDirectory() }
