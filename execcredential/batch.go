package execcredential

import (
	"fmt"
	"path/filepath"
	"strings"
)

// checkBatch returns a *PolicyError for a batch file with arguments that are not only arguments. Windows runs one by cmd.exe, which takes
// these characters for its own wherever they stand, in quotes too: a user who chooses an argument would choose what runs.
func checkBatch(command, path string, args []string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".bat", ".cmd":
	default:
		return nil
	}
	for i, arg := range args {
		if strings.ContainsAny(arg, "\"%!^&|<>\r\n") {
			return &PolicyError{Command: command, Path: path, Reason: fmt.Sprintf(`it is a batch file, and argument %d has one of " %% ! ^ & | < > or a line break, which cmd.exe does not leave alone; name a program that is not a batch file`, i+1)}
		}
	}
	return nil
}
